/* secret_file.c - reads a short file that holds one secret. */
#include "base/vault/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/slice.h"

enum { SECRET_MAX = 4096 };

static enum err check_file(int file, const char *path, enum secret_file kind,
                           struct failure *why)
{
    struct stat stat;
    if (fstat(file, &stat))
        return explain(why, ERR_INVALID, "%s: %s", path, strerror(errno));
    if (!S_ISREG(stat.st_mode))
        return explain(why, ERR_INVALID, "%s: not a regular file", path);
    if (kind == SECRET_FILE_PRIVATE && (stat.st_mode & 077))
        return explain(why, ERR_INVALID,
                       "%s: other users can access it (mode %03o); run chmod 600", path,
                       (unsigned)stat.st_mode & 0777u);
    return OK;
}

static enum err read_line(int file, const char *path, char **secret, struct failure *why)
{
    char text[SECRET_MAX + 1];
    size_t len = 0;
    ssize_t got;
    do {
        got = read(file, text + len, sizeof(text) - len);
        len += got > 0 ? (size_t)got : 0;
    } while ((got > 0 && len < sizeof(text)) || (got < 0 && errno == EINTR));

    struct slice line = slice_trim((struct slice){ text, len });
    enum err err = OK;
    if (got < 0)
        err = explain(why, ERR_INVALID, "%s: %s", path, strerror(errno));
    else if (len > SECRET_MAX)
        err = explain(why, ERR_INVALID, "%s: too long for a secret (max 4 KiB)", path);
    else if (!line.len)
        err = explain(why, ERR_INVALID, "%s: the file is empty", path);
    else if (memchr(line.ptr, '\n', line.len) || memchr(line.ptr, '\0', line.len))
        err = explain(why, ERR_INVALID, "%s: not one line of text", path);
    else
        *secret = mem_text(line);
    OPENSSL_cleanse(text, sizeof(text));
    return err;
}

enum err secret_file_read(const char *path, enum secret_file kind, char **secret,
                          struct failure *why)
{
    /* Non-blocking: a named pipe here would block the start forever. */
    int follow = kind == SECRET_FILE_PRIVATE ? O_NOFOLLOW : 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | follow);
    if (file < 0 && errno == ELOOP)
        return explain(why, ERR_INVALID, "%s: a symbolic link; put the file there instead",
                       path);
    if (file < 0)
        return explain(why, ERR_INVALID, "%s: %s", path, strerror(errno));
    enum err err = check_file(file, path, kind, why);
    if (!err)
        err = read_line(file, path, secret, why);
    close(file);
    return err;
}
