/* bundle_pass.c - libarchive reads, and every entry is judged before it is handed on.
 *
 * Also what libarchive only warns of is refused: it means that it guessed. Names are
 * read in the locale C.UTF-8, which is the thread's for the pass: in any other libarchive
 * changes them. */
#include "archive/bundle_pass.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <unistd.h>

#include "archive/bundle_names.h"
#include "base/mem.h"
#include "base/text.h"

enum { READ_SIZE = 65536, FILTERS = 2 /* gzip, and what reads the file */ };

struct pass {
    struct bundle *bundle;
    struct bundle_visitor *visitor;
    struct failure *why;
    struct archive *reader;
    struct bundle_names names;
    uint64_t unpacked, packed;
    off_t at;  /* in the file: others who have the descriptor may read, too */
    bool lost; /* the file could not be read */
    char packed_bytes[READ_SIZE];
};

static ssize_t on_packed(struct archive *reader, void *owner, const void **bytes)
{
    struct pass *pass = owner;
    ssize_t got;
    do
        got = pread(pass->bundle->file, pass->packed_bytes, READ_SIZE, pass->at);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        pass->lost = true;
        archive_set_error(reader, errno, "%s", strerror(errno));
        return ARCHIVE_FATAL;
    }
    pass->at += got;
    pass->packed += (uint64_t)got;
    *bytes = pass->packed_bytes;
    return got;
}

static enum err refuse(struct pass *pass)
{
    const char *reason = archive_error_string(pass->reader);
    return explain(pass->why, pass->lost ? ERR_INTERNAL : ERR_INVALID,
                   "the archive cannot be read: %s", reason ? reason : "nobody knows why");
}

static enum err count(struct pass *pass, uint64_t more)
{
    const struct bundle_limits *limits = &pass->bundle->limits;
    if (more > limits->unpacked_max || pass->unpacked + more > limits->unpacked_max)
        return explain(pass->why, ERR_TOO_LARGE,
                       "the files are larger than %llu bytes together (setting "
                       "deploy-unpacked)",
                       (unsigned long long)limits->unpacked_max);
    return OK;
}

static enum err check_ratio(struct pass *pass)
{
    uint32_t ratio = pass->bundle->limits.ratio_max;
    if (!ratio || pass->unpacked < bundle_ratio_from ||
        pass->unpacked / ratio < pass->packed)
        return OK;
    return explain(pass->why, ERR_TOO_LARGE,
                   "the files are more than %u times as large as the archive", ratio);
}

static enum err check_canceled(struct pass *pass)
{
    if (atomic_load(&pass->bundle->canceled))
        return explain(pass->why, ERR_CANCELED, "canceled");
    return OK;
}

static enum err take_data(struct pass *pass, struct slice data)
{
    enum err err = count(pass, data.len);
    if (err)
        return err;
    pass->unpacked += data.len;
    err = check_ratio(pass);
    err = err ? err : check_canceled(pass);
    if (err || !pass->visitor->data || pass->visitor->done)
        return err;
    return pass->visitor->data(pass->visitor, data, pass->why);
}

/* Blocks of a file without holes come one behind the other, from its beginning to its end. */
static enum err take_content(struct pass *pass, uint64_t size)
{
    const void *bytes;
    size_t len;
    la_int64_t offset;
    uint64_t taken = 0;
    for (;;) {
        int status = archive_read_data_block(pass->reader, &bytes, &len, &offset);
        if (status == ARCHIVE_EOF && taken == size)
            return OK;
        if (status != ARCHIVE_OK && status != ARCHIVE_EOF)
            return refuse(pass);
        if (status == ARCHIVE_EOF || offset < 0 || (uint64_t)offset != taken)
            return explain(pass->why, ERR_INVALID, "a file has holes");
        taken += len;
        enum err err = take_data(pass, (struct slice){ bytes, len });
        if (err)
            return err;
    }
}

static enum err take_file(struct pass *pass, struct archive_entry *entry, struct slice name)
{
    struct bundle_visitor *visitor = pass->visitor;
    la_int64_t size = archive_entry_size(entry);
    if (!archive_entry_size_is_set(entry) || size < 0)
        return explain(pass->why, ERR_INVALID, "'%.*s' has no size",
                       SLICE_ARG(text_clip(name)));
    enum err err = count(pass, (uint64_t)size);
    err = err ? err : bundle_names_add(&pass->names, name, false, pass->why);
    if (!err && visitor->file)
        err = visitor->file(visitor, name, (archive_entry_perm(entry) & 0111) != 0,
                            pass->why);
    err = err ? err : take_content(pass, (uint64_t)size);
    if (!err && visitor->end)
        err = visitor->end(visitor, pass->why);
    return err;
}

static enum err take_folder(struct pass *pass, struct slice name)
{
    struct bundle_visitor *visitor = pass->visitor;
    enum err err = bundle_names_add(&pass->names, name, true, pass->why);
    if (err || !name.len || !visitor->folder)
        return err;
    return visitor->folder(visitor, name, pass->why);
}

static const char *kind_of(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry) || archive_entry_symlink(entry))
        return "a link";
    if (archive_entry_sparse_count(entry))
        return "a file with holes";
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
    case AE_IFDIR: return NULL;
    case AE_IFLNK: return "a link";
    case AE_IFCHR:
    case AE_IFBLK: return "a device";
    case AE_IFIFO: return "a pipe";
    default: return "of a kind that is not known";
    }
}

static enum err take_entry(struct pass *pass, struct archive_entry *entry)
{
    const char *text = archive_entry_pathname(entry), *kind = kind_of(entry);
    struct slice name;
    enum err err = check_canceled(pass);
    err = err ? err : bundle_name_read(text ? text : "", &name, pass->why);
    if (err)
        return err;
    if (kind)
        return explain(pass->why, ERR_INVALID, "'%.*s' is %s", SLICE_ARG(text_clip(name)),
                       kind);
    if (archive_entry_filetype(entry) == AE_IFDIR)
        return take_folder(pass, name);
    if (!name.len || text[strlen(text) - 1] == '/')
        return explain(pass->why, ERR_INVALID, "a file has the name of a folder");
    return take_file(pass, entry, name);
}

static enum err read_all(struct pass *pass)
{
    struct archive *reader = pass->reader;
    if (archive_read_support_filter_gzip(reader) != ARCHIVE_OK ||
        archive_read_support_format_tar(reader) != ARCHIVE_OK ||
        archive_read_open(reader, pass, NULL, on_packed, NULL) != ARCHIVE_OK)
        return refuse(pass);
    while (!pass->visitor->done) {
        struct archive_entry *entry;
        int status = archive_read_next_header(reader, &entry);
        if (status == ARCHIVE_EOF)
            return OK;
        if (status != ARCHIVE_OK)
            return refuse(pass);
        if (archive_filter_count(reader) != FILTERS ||
            archive_filter_code(reader, 0) != ARCHIVE_FILTER_GZIP)
            return explain(pass->why, ERR_INVALID,
                           "the archive is not a tar archive in gzip");
        enum err err = take_entry(pass, entry);
        if (err)
            return err;
    }
    return OK;
}

static enum err read_in_utf8(struct pass *pass)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!utf8)
        return explain(pass->why, ERR_INTERNAL, "there is no locale C.UTF-8");
    locale_t before = uselocale(utf8);
    pass->reader = archive_read_new();
    if (!pass->reader)
        mem_exhausted();
    enum err err = read_all(pass);
    archive_read_free(pass->reader);
    uselocale(before);
    freelocale(utf8);
    return err;
}

enum err bundle_pass(struct bundle *bundle, struct bundle_visitor *visitor,
                     struct bundle_content *content, struct failure *why)
{
    struct pass *pass = mem_new(struct pass);
    pass->bundle = bundle;
    pass->visitor = visitor;
    pass->why = why;
    bundle_names_init(&pass->names, bundle->limits.files_max);
    enum err err = read_in_utf8(pass);
    if (!err && content)
        *content = (struct bundle_content){ pass->names.files, pass->names.folders,
                                            pass->unpacked, pass->packed };
    bundle_names_finish(&pass->names);
    free(pass);
    return err;
}
