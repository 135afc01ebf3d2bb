/* unpack_answer.c - writes and reads records, each preceded by its length. */
#include "supervisor/versions/unpack_answer.h"

#include <errno.h>
#include <unistd.h>

#include "base/text.h"
#include "supervisor/versions/build_output.h"
#include "supervisor/versions/containerfile.h"
#include "supervisor/versions/manifest.h"

enum {
    PACKAGE_BYTES_MAX = 4 << 20,
    HEADER_MAX = 64, /* bytes of a record before its content */
    SENTENCE_MAX = sizeof(((struct failure *)0)->text),
    ANSWER_MAX = MANIFEST_BYTES_MAX + CONTAINERFILE_BYTES_MAX + PACKAGE_BYTES_MAX +
                 SENTENCE_MAX + (UNPACK_FILES + 1) * HEADER_MAX
};

const struct unpack_file_kind unpack_file_kinds[UNPACK_FILES] = {
    [UNPACK_MANIFEST] = { "build.json", MANIFEST_BYTES_MAX },
    [UNPACK_CONTAINERFILE] = { "Containerfile", CONTAINERFILE_BYTES_MAX },
    [UNPACK_PACKAGE] = { "package.json", PACKAGE_BYTES_MAX },
};

/* ---- writing ---- */

static bool write_all(int to, struct slice bytes)
{
    while (bytes.len) {
        ssize_t written = write(to, bytes.ptr, bytes.len);
        if (written < 0 && errno != EINTR)
            return false;
        bytes = slice_from(bytes, written > 0 ? (size_t)written : 0);
    }
    return true;
}

static bool write_record(int to, const char *word, struct slice content)
{
    char header[HEADER_MAX];
    int len = snprintf(header, sizeof(header), "%s %zu\n", word, content.len);
    return write_all(to, (struct slice){ header, (size_t)len }) && write_all(to, content);
}

bool unpack_answer_write_file(int to, enum unpack_file file, struct slice content)
{
    return write_record(to, unpack_file_kinds[file].name, content);
}

bool unpack_answer_write_end(int to, enum err refused, const struct failure *why)
{
    if (!refused)
        return write_record(to, "done", SLICE(""));
    return write_record(to, refused == ERR_STORE_FULL ? "full" : "refused",
                        slice_of(why->text));
}

/* ---- reading ---- */

void unpack_answer_add(struct unpack_answer *answer, struct slice piece)
{
    if (answer->bytes.len + piece.len > ANSWER_MAX)
        answer->too_long = true;
    else
        buf_add(&answer->bytes, piece);
}

void unpack_answer_finish(struct unpack_answer *answer)
{
    buf_finish(&answer->bytes);
    *answer = (struct unpack_answer){ 0 };
}

struct unpack_record {
    struct slice word, content;
};

/* Returns false if there is no complete record. */
static bool take_record(struct slice *rest, struct unpack_record *record)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    uint64_t len;
    if (!end)
        return false;
    struct slice header = { rest->ptr, (size_t)(end - rest->ptr) };
    slice_split(&header, ' ', &record->word);
    *rest = slice_from(*rest, (size_t)(end - rest->ptr) + 1);
    if (!header.ptr || text_to_u64(header, &len) || len > rest->len)
        return false;
    record->content = (struct slice){ rest->ptr, (size_t)len };
    *rest = slice_from(*rest, (size_t)len);
    return true;
}

static bool take_file(struct unpack_answer *answer, const struct unpack_record *record)
{
    for (int i = 0; i < UNPACK_FILES; i++)
        if (slice_is(record->word, unpack_file_kinds[i].name)) {
            bool is_first = !answer->files[i].ptr;
            answer->files[i] = record->content;
            return is_first && record->content.len <= unpack_file_kinds[i].max;
        }
    return false;
}

static enum err refusal(enum err code, struct slice sentence, struct failure *why)
{
    struct buf clean = { 0 };
    build_output_clean(sentence, &clean);
    explain(why, code, "%.*s", SLICE_ARG(buf_slice(&clean)));
    buf_finish(&clean);
    return code;
}

enum err unpack_answer_read(struct unpack_answer *answer, struct failure *why)
{
    struct slice rest = buf_slice(&answer->bytes);
    struct unpack_record record;
    while (!answer->too_long && take_record(&rest, &record)) {
        bool is_last = !rest.len && record.content.len < SENTENCE_MAX;
        if (take_file(answer, &record))
            continue;
        if (is_last && slice_is(record.word, "done"))
            return OK;
        if (is_last && slice_is(record.word, "refused"))
            return refusal(ERR_INVALID, record.content, why);
        if (is_last && slice_is(record.word, "full"))
            return refusal(ERR_STORE_FULL, record.content, why);
        break;
    }
    return explain(why, ERR_INTERNAL, "its response is invalid");
}
