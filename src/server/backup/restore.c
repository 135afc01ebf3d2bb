/* restore.c - checks all of a backup, copies it, and moves the database into place last.
 *
 * No gateway would start on a data directory without runcast.db. */
#include "server/backup/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/files/folder.h"
#include "server/backup/data_files.h"
#include "server/backup/sealed.h"
#include "store/sqlite/sqlite_store.h"

static const char partial_name[] = "restore.partial", manifest_name[] = "manifest.json";

struct restore {
    const struct restore_options *options;
    struct backup_manifest *manifest;
    struct data_files source, partial;
    int data, lock;
    bool made_data;
    char *partial_database; /* path */
};

/* ---- the backup ---- */

static enum err read_text(int fd, struct buf *text, struct failure *why)
{
    ssize_t count = 1;
    while (count > 0 && text->len <= BACKUP_MANIFEST_BYTES_MAX) {
        count = read(fd, buf_reserve(text, 1 << 16), 1 << 16);
        text->len += count > 0 ? (size_t)count : 0;
    }
    if (count < 0)
        return explain(why, ERR_STORE, "cannot read %s: %s", manifest_name,
                       strerror(errno));
    return count ? explain(why, ERR_INVALID, "%s is too long", manifest_name) : OK;
}

static enum err read_manifest(struct restore *restore, struct failure *why)
{
    struct buf text = { 0 };
    struct stat found;
    int fd = openat(restore->source.top, manifest_name,
                    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return explain(why, ERR_INVALID,
                       "%s has no %s, so it is not a complete backup; if its files were "
                       "copied by hand, copy them back and then run runcast restored",
                       restore->options->source, manifest_name);
    enum err err = fd < 0 || fstat(fd, &found) || !S_ISREG(found.st_mode)
                       ? explain(why, ERR_INVALID, "%s/%s is not a regular file",
                                 restore->options->source, manifest_name)
                       : read_text(fd, &text, why);
    if (!err)
        err = backup_manifest_read(buf_slice(&text), restore->manifest, why);
    if (fd >= 0)
        close(fd);
    buf_finish(&text);
    return err;
}

static enum err open_source(struct restore *restore, struct failure *why)
{
    const char *source = restore->options->source;
    bool opened = data_files_open(&restore->source, source);
    if (restore->source.top < 0)
        return explain(why, ERR_INVALID, "cannot open the backup %s: %s", source,
                       strerror(errno));
    if (!opened)
        return explain(why, ERR_INVALID, "%s/%s is not a folder", source, DATA_DEPLOYMENTS);
    return read_manifest(restore, why);
}

static enum err compare(const struct backup_file *file, const struct file_facts *found,
                        struct failure *why)
{
    if (found->bytes != file->facts.bytes)
        return explain(why, ERR_INVALID,
                       "%s of the backup is damaged: it has %llu bytes instead of %llu; "
                       "use another backup",
                       file->name, (unsigned long long)found->bytes,
                       (unsigned long long)file->facts.bytes);
    if (strcmp(found->sha256, file->facts.sha256) != 0)
        return explain(why, ERR_INVALID,
                       "%s of the backup is damaged: its hash differs from the manifest; "
                       "use another backup",
                       file->name);
    return OK;
}

static enum err missing(const struct backup_file *file, struct failure *why)
{
    return explain(
        why, ERR_INVALID,
        "%s of the backup is missing; use another backup, or copy this one again",
        file->name);
}

static enum err check_hashes(const struct restore *restore, struct failure *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < restore->manifest->count; i++) {
        const struct backup_file *file = &restore->manifest->files[i];
        struct file_facts found;
        int folder;
        const char *name = data_files_place(&restore->source, file->name, &folder);
        err = folder < 0
                  ? ERR_NOT_FOUND
                  : file_pass_hash(folder, name, restore->options->stopped, &found, why);
        err = err == ERR_NOT_FOUND ? missing(file, why)
              : err                ? err
                                   : compare(file, &found, why);
    }
    return err;
}

static enum err check_key(const struct restore *restore, struct failure *why)
{
    const struct restore_options *options = restore->options;
    const struct backup_manifest *manifest = restore->manifest;
    if (!*options->key && !manifest->holds_key)
        return explain(why, ERR_INVALID,
                       "the backup contains no encryption key; set RUNCAST_ENCRYPTION_KEY "
                       "(or …_FILE) to the key that sealed it%s%s",
                       manifest->key[0] ? ", which is " : "", manifest->key);
    char *path = folder_path(options->source, DATA_DATABASE);
    char *key_path = folder_path(options->source, DATA_KEY);
    enum err err = sealed_try(path, options->key, key_path, NULL, why);
    free(path);
    free(key_path);
    return err;
}

/* ---- the data directory ---- */

/* Returns true for entries that an empty data directory may have: the rest of a restore
 * that was killed, an unlocked lock file, and those of a new file system. */
static bool may_stay(const char *name)
{
    static const char *const names[] = { ".", "..", "lost+found", "runcast.db.lock",
                                         partial_name };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static enum err check_empty(const struct restore *restore, struct failure *why)
{
    enum err err = OK;
    DIR *names = folder_list(restore->data);
    if (!names)
        return explain(why, ERR_STORE, "cannot list %s: %s", restore->options->data,
                       strerror(errno));
    for (const struct dirent *entry; !err && (entry = readdir(names));)
        if (!may_stay(entry->d_name))
            err = explain(why, ERR_INVALID,
                          "the data directory %s is not empty (%.60s); stop its gateway "
                          "and move its files away",
                          restore->options->data, entry->d_name);
    closedir(names);
    return err;
}

static enum err open_data(struct restore *restore, struct failure *why)
{
    const char *data = restore->options->data;
    restore->made_data = mkdir(data, 0700) == 0;
    if (!restore->made_data && errno != EEXIST)
        return explain(why, ERR_INVALID, "cannot make the data directory %s: %s", data,
                       strerror(errno));
    restore->data = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (restore->data < 0)
        return explain(why, ERR_INVALID, "cannot open the data directory %s: %s", data,
                       strerror(errno));
    enum err err = check_empty(restore, why);
    if (err)
        return err;
    char *path = folder_path(data, DATA_DATABASE);
    err = sqlite_lock_file(path, &restore->lock, why);
    free(path);
    return err ? err : check_empty(restore, why); /* a gateway may have started just now */
}

static enum err make_partial(struct restore *restore, struct failure *why)
{
    char *path = folder_path(restore->options->data, partial_name);
    folder_remove(restore->data, partial_name, NULL);
    bool made = !mkdirat(restore->data, partial_name, 0700) &&
                data_files_begin(&restore->partial, restore->data, partial_name);
    restore->partial_database = folder_path(path, DATA_DATABASE);
    free(path);
    return made ? OK
                : explain(why, ERR_STORE, "cannot make a folder in %s: %s",
                          restore->options->data, strerror(errno));
}

/* The backup may change while it is copied, so the copy itself is compared. */
static enum err copy_files(struct restore *restore, struct failure *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < restore->manifest->count; i++) {
        const struct backup_file *file = &restore->manifest->files[i];
        struct file_facts found;
        int from, to;
        const char *name = data_files_place(&restore->source, file->name, &from);
        data_files_place(&restore->partial, file->name, &to);
        err = file_pass_copy(from, name, to, name, restore->options->stopped, &found, why);
        err = err == ERR_NOT_FOUND ? missing(file, why)
              : err                ? err
                                   : compare(file, &found, why);
        if (!err)
            err = file_pass_sync(to, name, why);
    }
    return err;
}

/* Gives the files to the owner of the data directory, if root restores them. */
static enum err give_to_owner(const struct restore *restore, struct failure *why)
{
    struct stat owner;
    bool given = !fstat(restore->data, &owner);
    if (given && owner.st_uid == geteuid())
        return OK;
    for (size_t i = 0; given && i < restore->manifest->count; i++) {
        int folder;
        const char *name =
            data_files_place(&restore->partial, restore->manifest->files[i].name, &folder);
        given = !fchownat(folder, name, owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW);
    }
    given = given && !fchown(restore->partial.deployments, owner.st_uid, owner.st_gid) &&
            !fchown(restore->lock, owner.st_uid, owner.st_gid);
    return given ? OK
                 : explain(why, ERR_STORE, "cannot give the files to the owner of %s: %s",
                           restore->options->data, strerror(errno));
}

/* ---- the end ---- */

static bool move(const struct restore *restore, const char *name)
{
    return renameat(restore->partial.top, name, restore->data, name) == 0;
}

static bool move_all(const struct restore *restore)
{
    bool moved = move(restore, DATA_DEPLOYMENTS);
    for (size_t i = 0; moved && i < restore->manifest->count; i++) {
        const char *name = restore->manifest->files[i].name;
        if (!strchr(name, '/') && strcmp(name, DATA_DATABASE) != 0)
            moved = move(restore, name);
    }
    return moved && folder_sync(restore->data) && move(restore, DATA_DATABASE) &&
           folder_sync(restore->data);
}

/* Removes moved files. The data directory was empty and is locked, so all of them are
 * ours. */
static void take_back(const struct restore *restore)
{
    for (size_t i = 0; i < restore->manifest->count; i++)
        if (!strchr(restore->manifest->files[i].name, '/'))
            unlinkat(restore->data, restore->manifest->files[i].name, 0);
    folder_remove(restore->data, DATA_DEPLOYMENTS, NULL);
}

static enum err put_in_place(const struct restore *restore, struct failure *why)
{
    if (*restore->options->stopped)
        return explain(why, ERR_CANCELED, "stopped");
    if (data_files_sync(&restore->partial) && move_all(restore))
        return OK;
    explain(why, ERR_STORE, "cannot move the files into %s: %s", restore->options->data,
            strerror(errno));
    take_back(restore);
    return ERR_STORE;
}

static enum err make(struct restore *restore, struct failure *why)
{
    enum err err = open_source(restore, why);
    if (!err)
        err = check_hashes(restore, why);
    if (!err)
        err = check_key(restore, why);
    if (!err)
        err = open_data(restore, why);
    if (!err)
        err = make_partial(restore, why);
    if (!err)
        err = copy_files(restore, why);
    if (!err)
        err = sqlite_look_renew_epoch(restore->partial_database, restore->manifest->epoch,
                                      why);
    if (!err)
        err = give_to_owner(restore, why);
    return err ? err : put_in_place(restore, why);
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Syncs, or removes, a data directory that was created here. */
static void settle_data(const struct restore *restore, bool keep)
{
    char *above, *name;
    folder_split(restore->options->data, &above, &name);
    int folder = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && !keep)
        folder_remove(folder, name, NULL);
    if (folder >= 0) {
        folder_sync(folder);
        close(folder);
    }
    free(above);
    free(name);
}

enum err restore_make(const struct restore_options *options,
                      struct backup_manifest *manifest, struct failure *why)
{
    struct restore restore = {
        .options = options, .manifest = manifest, .data = -1, .lock = -1
    };
    data_files_init(&restore.source);
    data_files_init(&restore.partial);
    enum err err = make(&restore, why);
    data_files_close(&restore.source);
    data_files_close(&restore.partial);
    if (restore.partial_database)
        folder_remove(restore.data, partial_name, NULL);
    if (restore.made_data)
        settle_data(&restore, !err);
    close_if_open(restore.data);
    close_if_open(restore.lock);
    free(restore.partial_database);
    if (err == ERR_CANCELED)
        explain(why, err, "restore stopped; nothing was restored");
    return err;
}
