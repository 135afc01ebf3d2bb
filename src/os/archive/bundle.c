/* bundle.c - opens, hashes and checks archives, and reads single files from them. */
#include "os/archive/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "os/archive/bundle_pass.h"

enum { READ_SIZE = 65536 };

const struct bundle_limits bundle_limits_default = {
    .files_max = 20000,
    .unpacked_max = UINT64_C(1) << 30,
    .ratio_max = 200,
};

static enum err take(int file, const struct bundle_limits *limits, struct bundle **bundle,
                     struct failure *why)
{
    struct stat found;
    if (file < 0 || fstat(file, &found)) {
        enum err err = explain(why, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL,
                               "cannot open the archive: %s", strerror(errno));
        if (file >= 0)
            close(file);
        return err;
    }
    if (!S_ISREG(found.st_mode)) {
        close(file);
        return explain(why, ERR_INVALID, "the archive is not a file");
    }
    struct bundle *made = mem_new(struct bundle);
    made->file = file;
    made->limits = *limits;
    atomic_init(&made->canceled, false);
    *bundle = made;
    return OK;
}

/* Non-blocking, so that a named pipe cannot block the caller. */
enum err bundle_open(const char *path, const struct bundle_limits *limits,
                     struct bundle **bundle, struct failure *why)
{
    return take(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), limits, bundle, why);
}

enum err bundle_open_fd(int file, const struct bundle_limits *limits,
                        struct bundle **bundle, struct failure *why)
{
    return take(fcntl(file, F_DUPFD_CLOEXEC, 0), limits, bundle, why);
}

int bundle_file(const struct bundle *bundle)
{
    return bundle->file;
}

void bundle_close(struct bundle *bundle)
{
    if (!bundle)
        return;
    close(bundle->file);
    free(bundle);
}

void bundle_cancel(struct bundle *bundle)
{
    atomic_store(&bundle->canceled, true);
}

static enum err hash_file(struct bundle *bundle, EVP_MD_CTX *digest, struct failure *why)
{
    char bytes[READ_SIZE];
    off_t at = 0;
    for (;;) {
        ssize_t got = pread(bundle->file, bytes, sizeof(bytes), at);
        if (atomic_load(&bundle->canceled))
            return explain(why, ERR_CANCELED, "canceled");
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return explain(why, ERR_INTERNAL, "cannot read the archive: %s",
                           strerror(errno));
        if (got == 0)
            return OK;
        at += got;
        if (EVP_DigestUpdate(digest, bytes, (size_t)got) != 1)
            mem_exhausted();
    }
}

enum err bundle_hash(struct bundle *bundle, unsigned char hash[BUNDLE_HASH_LEN],
                     struct failure *why)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    if (!digest || EVP_DigestInit_ex(digest, EVP_sha256(), NULL) != 1)
        mem_exhausted();
    enum err err = hash_file(bundle, digest, why);
    if (!err && EVP_DigestFinal_ex(digest, hash, NULL) != 1)
        mem_exhausted();
    EVP_MD_CTX_free(digest);
    return err;
}

enum err bundle_check(struct bundle *bundle, struct bundle_content *content,
                      struct failure *why)
{
    struct bundle_visitor visitor = { 0 };
    return bundle_pass(bundle, &visitor, content, why);
}

/* --- one file -------------------------------------------------------------------------- */

struct file_reading {
    struct bundle_visitor visitor;
    struct slice name;
    size_t max;
    struct buf *out;
    size_t begin; /* length of out before */
    bool found;
};

static enum err on_file(struct bundle_visitor *visitor, struct slice name, bool executable,
                        struct failure *why)
{
    struct file_reading *reading = container_of(visitor, struct file_reading, visitor);
    (void)executable;
    (void)why;
    reading->found = slice_equal(name, reading->name);
    return OK;
}

static enum err on_data(struct bundle_visitor *visitor, struct slice data,
                        struct failure *why)
{
    struct file_reading *reading = container_of(visitor, struct file_reading, visitor);
    if (!reading->found)
        return OK;
    if (reading->out->len - reading->begin + data.len > reading->max)
        return explain(why, ERR_TOO_LARGE, "\"%.*s\" is too large (max %zu bytes)",
                       SLICE_ARG(text_clip(reading->name)), reading->max);
    buf_add(reading->out, data);
    return OK;
}

static enum err on_end(struct bundle_visitor *visitor, struct failure *why)
{
    (void)why;
    visitor->done = container_of(visitor, struct file_reading, visitor)->found;
    return OK;
}

enum err bundle_read_file(struct bundle *bundle, struct slice name, size_t max,
                          struct buf *out, struct failure *why)
{
    struct file_reading reading = {
        .visitor = { .file = on_file, .data = on_data, .end = on_end },
        .name = name,
        .max = max,
        .out = out,
        .begin = out->len,
    };
    enum err err = bundle_pass(bundle, &reading.visitor, NULL, why);
    if (err)
        out->len = reading.begin;
    if (!err && !reading.found)
        err = explain(why, ERR_NOT_FOUND, "\"%.*s\" is missing in the archive",
                      SLICE_ARG(text_clip(name)));
    return err;
}
