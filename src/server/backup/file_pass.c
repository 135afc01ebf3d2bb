/* file_pass.c - one loop that hashes a file and may copy it.
 *
 *   read 256 KiB ─► SHA-256 ─► write, sync now and then (throttled_sync.h) ─► … */
#include "server/backup/file_pass.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "store/sqlite/snapshot/throttled_sync.h"

enum { PIECE = 256 << 10, HASH_BYTES = 32 };

struct file_pass {
    int from, to; /* to -1: only hash */
    const char *name, *to_name;
    uint64_t bytes;
    struct throttled_sync sync;
    EVP_MD_CTX *hash;
    char *piece;
};

static enum err not_read(const char *name, struct failure *why)
{
    return explain(why, ERR_STORE, "cannot read %s: %s", name, strerror(errno));
}

static enum err not_written(const char *name, struct failure *why)
{
    return explain(why, ERR_STORE, "cannot write %s: %s", name, strerror(errno));
}

/* Opens without blocking: opening a named pipe would never return. */
static enum err open_source(int folder, const char *name, int *fd, struct failure *why)
{
    struct stat found;
    *fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno == ENOENT)
        return explain(why, ERR_NOT_FOUND, "%s is missing", name);
    if (*fd < 0 && errno == ELOOP)
        return explain(why, ERR_INVALID,
                       "%s is a symbolic link; put the file there instead", name);
    if (*fd < 0 || fstat(*fd, &found))
        return not_read(name, why);
    return S_ISREG(found.st_mode)
               ? OK
               : explain(why, ERR_INVALID, "%s is not a regular file", name);
}

static bool write_all(int fd, const char *piece, size_t len)
{
    while (len) {
        ssize_t count = write(fd, piece, len);
        if (count < 0 && errno != EINTR)
            return false;
        piece += count > 0 ? count : 0;
        len -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

static enum err pass_on(struct file_pass *pass, size_t len, struct failure *why)
{
    EVP_DigestUpdate(pass->hash, pass->piece, len);
    pass->bytes += len;
    if (pass->to < 0)
        return OK;
    if (!write_all(pass->to, pass->piece, len))
        return not_written(pass->to_name, why);
    return throttled_sync_wrote(&pass->sync, pass->to, len)
               ? OK
               : not_written(pass->to_name, why);
}

static enum err run(struct file_pass *pass, const volatile sig_atomic_t *stopped,
                    struct failure *why)
{
    enum err err = OK;
    for (ssize_t count = 1; !err && count;) {
        if (*stopped)
            return explain(why, ERR_CANCELED, "stopped");
        count = read(pass->from, pass->piece, PIECE);
        if (count > 0)
            err = pass_on(pass, (size_t)count, why);
        else if (count < 0 && errno != EINTR)
            err = not_read(pass->name, why);
    }
    return err;
}

static enum err file_pass_begin(struct file_pass *pass,
                                const volatile sig_atomic_t *stopped,
                                struct file_facts *facts, struct failure *why)
{
    unsigned char hash[HASH_BYTES];
    pass->piece = mem_alloc(PIECE);
    pass->hash = EVP_MD_CTX_new();
    enum err err = pass->hash && EVP_DigestInit_ex(pass->hash, EVP_sha256(), NULL)
                       ? run(pass, stopped, why)
                       : explain(why, ERR_INTERNAL, "cannot hash %s", pass->name);
    if (!err) {
        EVP_DigestFinal_ex(pass->hash, hash, NULL);
        text_to_hex(hash, HASH_BYTES, facts->sha256);
        facts->bytes = pass->bytes;
    }
    EVP_MD_CTX_free(pass->hash);
    free(pass->piece);
    return err;
}

enum err file_pass_hash(int folder, const char *name, const volatile sig_atomic_t *stopped,
                        struct file_facts *facts, struct failure *why)
{
    struct file_pass pass = { .to = -1, .name = name };
    enum err err = open_source(folder, name, &pass.from, why);
    if (!err)
        err = file_pass_begin(&pass, stopped, facts, why);
    if (pass.from >= 0)
        close(pass.from);
    return err;
}

static int make(int folder, const char *name)
{
    return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

enum err file_pass_copy(int folder, const char *name, int to_folder, const char *to_name,
                        const volatile sig_atomic_t *stopped, struct file_facts *facts,
                        struct failure *why)
{
    struct file_pass pass = { .to = -1, .name = name, .to_name = to_name };
    enum err err = open_source(folder, name, &pass.from, why);
    if (!err && (pass.to = make(to_folder, to_name)) < 0)
        err = not_written(to_name, why);
    if (!err)
        err = file_pass_begin(&pass, stopped, facts, why);
    if (pass.to >= 0 && close(pass.to) && !err)
        err = not_written(to_name, why);
    if (pass.from >= 0)
        close(pass.from);
    return err;
}

enum err file_pass_sync(int folder, const char *name, struct failure *why)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    enum err err = fd >= 0 && fsync(fd) == 0 ? OK : not_written(name, why);
    if (fd >= 0)
        close(fd);
    return err;
}

enum err file_pass_write(int folder, const char *name, const char *text, size_t len,
                         struct failure *why)
{
    int fd = make(folder, name);
    bool written = fd >= 0 && write_all(fd, text, len) && fsync(fd) == 0;
    enum err err = written ? OK : not_written(name, why);
    if (fd >= 0)
        close(fd);
    return err;
}
