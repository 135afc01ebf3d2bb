/* copied_files.c - opens the files of deployments one after another. */
#include "server/backup/copied_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "os/files/folder.h"
#include "server/backup/data_files.h"

static struct copied_files *files_of(struct pg_copy_files *source)
{
    return container_of(source, struct copied_files, source);
}

/* Returns the name without the folder. */
static const char *name_in_folder(const struct stored_file *file)
{
    return file->name + sizeof(DATA_DEPLOYMENTS);
}

static void close_file(struct copied_files *files)
{
    if (files->fd >= 0)
        close(files->fd);
    files->fd = -1;
}

static enum err open_file(struct copied_files *files, const char *name, int64_t *size,
                          struct failure *why)
{
    struct stat found;
    files->fd = openat(files->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (files->fd < 0 && errno == ENOENT)
        return ERR_NOT_FOUND;
    if (files->fd < 0 || fstat(files->fd, &found))
        return explain(why, ERR_STORE, "cannot read %s/%s: %s", DATA_DEPLOYMENTS, name,
                       strerror(errno));
    if (!S_ISREG(found.st_mode))
        return explain(why, ERR_INVALID, "%s/%s is not a regular file", DATA_DEPLOYMENTS,
                       name);
    *size = found.st_size;
    return OK;
}

static enum err next(struct pg_copy_files *source, struct store_file_name *name,
                     int64_t *size, struct failure *why)
{
    struct copied_files *files = files_of(source);
    while (files->next < files->named.count) {
        const struct stored_file *file = &files->named.all[files->next++];
        close_file(files);
        enum err err = files->folder < 0
                           ? ERR_NOT_FOUND
                           : open_file(files, name_in_folder(file), size, why);
        if (err != ERR_NOT_FOUND) {
            *name = (struct store_file_name){ .env = file->env };
            snprintf(name->text, sizeof(name->text), "%s", name_in_folder(file));
            return err;
        }
        files->missing += !file->may_be_missing;
    }
    return ERR_NOT_FOUND;
}

static enum err read_piece(struct pg_copy_files *source, int64_t offset, char *piece,
                           size_t len, struct failure *why)
{
    const struct copied_files *files = files_of(source);
    for (size_t at = 0; at < len;) {
        ssize_t count =
            pread(files->fd, piece + at, len - at, (off_t)(offset + (int64_t)at));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return explain(why, ERR_STORE, "cannot read %s: %s",
                           files->named.all[files->next - 1].name,
                           count ? strerror(errno) : "it became shorter while it was read");
        at += (size_t)count;
    }
    return OK;
}

enum err copied_files_open(struct copied_files *files, const char *data,
                           struct sqlite_look *look, struct failure *why)
{
    *files = (struct copied_files){ .source = { .next = next, .read = read_piece },
                                    .folder = -1,
                                    .fd = -1 };
    int above = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0)
        return explain(why, ERR_STORE, "cannot open %s: %s", data, strerror(errno));
    files->folder = folder_open(above, DATA_DEPLOYMENTS);
    int error = errno;
    close(above);
    if (files->folder < 0 && error != ENOENT)
        return explain(why, ERR_STORE, "cannot open %s/%s: %s", data, DATA_DEPLOYMENTS,
                       strerror(error));
    enum err err = stored_files_read(look, &files->named, why);
    return err || !files->named.damaged.code
               ? err
               : explain(why, ERR_STORE, "%s", files->named.damaged.text);
}

void copied_files_finish(struct copied_files *files)
{
    close_file(files);
    if (files->folder >= 0)
        close(files->folder);
    stored_files_finish(&files->named);
}
