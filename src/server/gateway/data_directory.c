/* data_directory.c - checks owner and mode of the data directory, or creates it. */
#include "server/gateway/data_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/* Checks the opened directory, not what the path may name a moment later. */
static enum err judge(int directory, const char *path, struct failure *why)
{
    struct stat found;
    if (fstat(directory, &found))
        return explain(why, ERR_INVALID, "cannot inspect the data directory %s: %s", path,
                       strerror(errno));
    unsigned mode = found.st_mode & 07777u;
    if (found.st_uid && found.st_uid != geteuid())
        return explain(why, ERR_INVALID,
                       "the data directory %s belongs to user %u, who can replace its "
                       "files; start this as that user (sudo -u '#%u' …), or make it yours "
                       "with chown %u %s && chmod 700 %s",
                       path, (unsigned)found.st_uid, (unsigned)found.st_uid,
                       (unsigned)geteuid(), path, path);
    if (mode & S_IWOTH && mode & S_ISVTX) /* like /tmp, whose mode others need */
        return explain(why, ERR_INVALID,
                       "everybody can write to %s (mode %03o); choose a data directory of "
                       "its own, like %s/runcast",
                       path, mode, path);
    if (mode & S_IWOTH)
        return explain(
            why, ERR_INVALID,
            "everybody can write to the data directory %s (mode %03o); run chmod 700 %s",
            path, mode, path);
    if (!(mode & S_IWGRP))
        return OK;
    if (found.st_uid == geteuid() && fchmod(directory, mode & ~(unsigned)S_IWGRP) == 0)
        log_info("removed group write permission from the data directory", "path", path,
                 NULL);
    else
        log_warn("the data directory is writable by its group; run chmod g-w", "path", path,
                 NULL);
    return OK;
}

enum err gateway_directory_open(const char *path, bool make, struct failure *why)
{
    if (make && mkdir(path, 0700) && errno != EEXIST)
        return explain(why, ERR_INVALID, "cannot make the data directory %s: %s", path,
                       strerror(errno));
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return explain(why, errno == ENOENT ? ERR_NOT_FOUND : ERR_INVALID,
                       "cannot open the data directory %s: %s", path, strerror(errno));
    enum err refused = judge(directory, path, why);
    close(directory);
    return refused;
}
