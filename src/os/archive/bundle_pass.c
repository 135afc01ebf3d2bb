/* bundle_pass.c - reads entry by entry, and checks each before the visitor gets it. */
#include "os/archive/bundle_pass.h"

#include "base/mem.h"
#include "base/text.h"
#include "os/archive/bundle_names.h"
#include "os/archive/tar.h"

/* Max zeros after the last entry, unpacked. GNU tar writes up to 10 KiB, or as many as
 * --blocking-factor sets. */
enum { TAIL_MAX = 16 << 20 };

struct pass {
    struct bundle *bundle;
    struct bundle_visitor *visitor;
    struct failure *why;
    struct bundle_names names;
    uint64_t unpacked;
    struct tar tar;
};

static enum err count(struct pass *pass, uint64_t more)
{
    const struct bundle_limits *limits = &pass->bundle->limits;
    if (more > limits->unpacked_max || pass->unpacked + more > limits->unpacked_max)
        return explain(
            pass->why, ERR_TOO_LARGE,
            "the files together are too large (max %llu bytes, setting deploy-unpacked)",
            (unsigned long long)limits->unpacked_max);
    return OK;
}

static enum err check_ratio(struct pass *pass)
{
    uint32_t ratio = pass->bundle->limits.ratio_max;
    if (!ratio || pass->unpacked < bundle_ratio_from ||
        pass->unpacked / ratio < pass->tar.gunzip.packed)
        return OK;
    return explain(pass->why, ERR_TOO_LARGE,
                   "the files are too large for the archive (max %u times its size)",
                   ratio);
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

static enum err take_content(struct pass *pass)
{
    struct slice piece = { 0 };
    for (;;) {
        enum err err = tar_read(&pass->tar, &piece, pass->why);
        if (err || !piece.len)
            return err;
        err = take_data(pass, piece);
        if (err)
            return err;
    }
}

static enum err take_file(struct pass *pass, const struct tar_entry *entry,
                          struct slice name)
{
    struct bundle_visitor *visitor = pass->visitor;
    enum err err = count(pass, entry->size);
    err = err ? err : bundle_names_add(&pass->names, name, false, pass->why);
    if (!err && visitor->file)
        err = visitor->file(visitor, name, entry->executable, pass->why);
    err = err ? err : take_content(pass);
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

static enum err take_entry(struct pass *pass, const struct tar_entry *entry)
{
    struct slice name;
    enum err err = check_canceled(pass);
    err = err ? err : bundle_name_read(entry->name, &name, pass->why);
    if (err)
        return err;
    if (entry->kind)
        return explain(pass->why, ERR_INVALID, "\"%.*s\" is %s", SLICE_ARG(text_clip(name)),
                       entry->kind);
    if (entry->is_folder)
        return take_folder(pass, name);
    if (!name.len || entry->name[strlen(entry->name) - 1] == '/')
        return explain(pass->why, ERR_INVALID, "a file has the name of a folder");
    return take_file(pass, entry, name);
}

static bool is_zero(const char *bytes, size_t len)
{
    return !len || (!bytes[0] && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Reads the zeros up to the end of the file. They are followed by gzip's trailer, whose
 * checksum gunzip.c compares. */
static enum err read_tail(struct pass *pass)
{
    uint64_t len = 0;
    for (;;) {
        size_t got;
        struct tar *tar = &pass->tar;
        enum err err = check_canceled(pass);
        err = err ? err
                  : gunzip_read(&tar->gunzip, tar->bytes, TAR_READ_SIZE, &got, pass->why);
        if (err || !got)
            return err;
        if (!is_zero(tar->bytes, got))
            return explain(pass->why, ERR_INVALID,
                           "cannot read the archive: data follows its end");
        len += got;
        if (len > TAIL_MAX)
            return explain(pass->why, ERR_TOO_LARGE,
                           "too many zeros follow the end of the archive (max %d)",
                           TAIL_MAX);
    }
}

static enum err read_all(struct pass *pass)
{
    bool ended = false;
    while (!pass->visitor->done) {
        struct tar_entry entry;
        enum err err = tar_next(&pass->tar, &entry, &ended, pass->why);
        if (err || ended)
            return err ? err : read_tail(pass);
        err = take_entry(pass, &entry);
        if (err)
            return err;
    }
    return OK;
}

enum err bundle_pass(struct bundle *bundle, struct bundle_visitor *visitor,
                     struct bundle_content *content, struct failure *why)
{
    struct pass *pass = mem_new(struct pass);
    pass->bundle = bundle;
    pass->visitor = visitor;
    pass->why = why;
    bundle_names_init(&pass->names, bundle->limits.files_max);
    tar_init(&pass->tar, bundle->file, &bundle->canceled, &bundle->limits);
    enum err err = read_all(pass);
    if (!err && content)
        *content = (struct bundle_content){ pass->names.files, pass->names.folders,
                                            pass->unpacked, pass->tar.gunzip.packed };
    tar_finish(&pass->tar);
    bundle_names_finish(&pass->names);
    free(pass);
    return err;
}
