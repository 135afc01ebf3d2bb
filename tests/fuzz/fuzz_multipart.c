/* fuzz_multipart - multipart forms: cut anywhere, they give the same fields.
 *
 * Never more bytes are returned than came in. The first byte determines where the body is cut.
 * The boundary is "b". */
#include <assert.h>
#include <stdint.h>

#include "api/artifacts/multipart.h"
#include "base/list.h"
#include "tests/fuzz/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct form_reader {
    struct multipart form;
    struct failure why;
    struct buf read;
    size_t content;
};

static struct form_reader *reader_of(struct multipart *form)
{
    return container_of(form, struct form_reader, form);
}

static enum err on_part(struct multipart *form, struct slice name, bool is_file)
{
    buf_print(&reader_of(form)->read, "%d:", is_file);
    buf_add(&reader_of(form)->read, name);
    buf_add_char(&reader_of(form)->read, '=');
    return OK;
}

static enum err on_content(struct multipart *form, struct slice piece)
{
    assert(piece.len);
    reader_of(form)->content += piece.len;
    buf_add(&reader_of(form)->read, piece);
    return OK;
}

static enum err on_part_end(struct multipart *form)
{
    buf_add_char(&reader_of(form)->read, ';');
    return OK;
}

static enum err read_form(struct slice body, size_t piece, struct buf *out)
{
    struct form_reader reader = {
        .form = { .on_part = on_part, .on_content = on_content, .on_part_end = on_part_end }
    };
    reader.form.why = &reader.why;
    enum err err = multipart_init(&reader.form, SLICE("multipart/form-data; boundary=b"));
    assert(!err);
    for (size_t at = 0; !err && at < body.len; at += piece) {
        size_t left = body.len - at;
        err = multipart_feed(&reader.form,
                             (struct slice){ body.ptr + at, left < piece ? left : piece });
    }
    err = err ? err : multipart_end(&reader.form);
    assert(reader.content <= body.len);
    assert(!err || reader.why.text[0]);
    multipart_finish(&reader.form);
    *out = reader.read;
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = { 0 }, cut = { 0 };
    if (!size)
        return 0;
    struct slice body = { (const char *)data + 1, size - 1 };
    size_t piece = size > 4096 ? size / 8 + data[0] : data[0] % 64 + 1u;
    enum err err = read_form(body, body.len + 1, &whole);
    judge_rest();
    assert(read_form(body, piece, &cut) == err);
    assert(slice_equal(buf_slice(&whole), buf_slice(&cut)));
    buf_finish(&whole);
    buf_finish(&cut);
    struct failure why;
    struct multipart form = { .why = &why };
    if (!multipart_init(&form, body))
        assert(form.divider_len > 4 && form.divider_len < sizeof(form.divider));
    return 0;
}
