/* restore.c - judges all of a backup, then copies it, and moves the database last: a data directory
 * without runcast.db has nothing that a gateway would start on. */
#include "server/backup/restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/files/folder.h"
#include "server/backup/sealed.h"
#include "store/sqlite/sqlite_store.h"

static const char database[] = "runcast.db", deployments[] = "deployments",
                  partial_name[] = "restore.partial", manifest_name[] = "manifest.json";

struct restore {
    const struct restore_options *options;
    struct backup_manifest *manifest;
    int source, source_deployments; /* -1: the backup has none */
    int data, lock;
    bool made_data;
    int partial, partial_deployments;
    char *partial_database; /* path */
};

static char *join(const char *folder, const char *name)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s", folder, name);
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    return text;
}

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
    return count ? explain(why, ERR_INVALID, "%s is too long to be one", manifest_name)
                 : OK;
}

static enum err read_manifest(struct restore *restore, struct failure *why)
{
    struct buf text = { 0 };
    struct stat found;
    int fd = openat(restore->source, manifest_name,
                    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return explain(why, ERR_INVALID,
                       "%s has no %s: it is no whole backup. Files that were copied by "
                       "hand are copied back, and then runcast restored is said",
                       restore->options->source, manifest_name);
    enum err err = fd < 0 || fstat(fd, &found) || !S_ISREG(found.st_mode)
                       ? explain(why, ERR_INVALID, "%s/%s is no file",
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
    restore->source = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (restore->source < 0)
        return explain(why, ERR_INVALID, "cannot open the backup %s: %s", source,
                       strerror(errno));
    restore->source_deployments = folder_open(restore->source, deployments);
    if (restore->source_deployments < 0 && errno != ENOENT)
        return explain(why, ERR_INVALID, "%s/%s is no folder", source, deployments);
    return read_manifest(restore, why);
}

/* Where a file of the manifest lies: its folder among two, and its name in it. */
static const char *place(const char *name, int top, int inner, int *folder)
{
    const char *slash = strchr(name, '/');
    *folder = slash ? inner : top;
    return slash ? slash + 1 : name;
}

static enum err compare(const struct backup_file *file, const struct file_facts *found,
                        struct failure *why)
{
    if (found->bytes != file->facts.bytes)
        return explain(why, ERR_INVALID,
                       "%s of the backup is damaged: it has %llu bytes, and had %llu: use "
                       "another backup",
                       file->name, (unsigned long long)found->bytes,
                       (unsigned long long)file->facts.bytes);
    if (strcmp(found->sha256, file->facts.sha256) != 0)
        return explain(why, ERR_INVALID,
                       "%s of the backup is damaged: its content is not what it was: use "
                       "another backup",
                       file->name);
    return OK;
}

static enum err missing(const struct backup_file *file, struct failure *why)
{
    return explain(why, ERR_INVALID,
                   "%s of the backup is missing: it was not copied whole, use another one",
                   file->name);
}

static enum err check_hashes(const struct restore *restore, struct failure *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < restore->manifest->count; i++) {
        const struct backup_file *file = &restore->manifest->files[i];
        struct file_facts found;
        int folder;
        const char *name =
            place(file->name, restore->source, restore->source_deployments, &folder);
        err = folder < 0
                  ? ERR_NOT_FOUND
                  : file_pass_hash(folder, name, restore->options->stopped, &found, why);
        err = err == ERR_NOT_FOUND ? missing(file, why)
              : err                ? err
                                   : compare(file, &found, why);
    }
    return err;
}

static void note_first(void *owner, const char *text)
{
    struct failure *first = owner;
    if (!first->code)
        explain(first, ERR_INVALID, "%s", text);
}

static enum err check_key(const struct restore *restore, struct failure *why)
{
    const struct restore_options *options = restore->options;
    const struct backup_manifest *manifest = restore->manifest;
    struct sqlite_look *look = NULL;
    struct vault *vault = NULL;
    struct failure first = { 0 };
    if (!*options->key && !manifest->holds_key)
        return explain(why, ERR_INVALID,
                       "the backup holds no encryption key: set RUNCAST_ENCRYPTION_KEY (or "
                       "…_FILE) to the one that sealed it%s%s",
                       manifest->key[0] ? ", which is " : "", manifest->key);
    char *path = join(options->source, database);
    char *key_file = join(options->source, "encryption.key");
    enum err err = sqlite_look_open(path, true, &look, why);
    if (!err)
        err = vault_open(slice_of(options->key), key_file, &vault, why);
    if (!err)
        err = sealed_check(look, vault, note_first, &first, why);
    if (!err && first.code)
        err = explain(why, ERR_INVALID, "%s", first.text);
    vault_close(vault);
    sqlite_look_close(look);
    free(path);
    free(key_file);
    return err;
}

/* ---- the data directory ---- */

/* What may be there: what a restore leaves that was killed, a lock that nobody holds, and what a
 * file system of its own begins with. */
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
    int fd = openat(restore->data, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);
    if (!names)
        return explain(why, ERR_STORE, "cannot list %s: %s", restore->options->data,
                       strerror(errno));
    for (const struct dirent *entry; !err && (entry = readdir(names));)
        if (!may_stay(entry->d_name))
            err = explain(why, ERR_INVALID,
                          "the data directory %s is not empty (%.60s): stop its gateway, "
                          "and move away what is in it",
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
    char *path = join(data, database);
    err = sqlite_lock_file(path, &restore->lock, why);
    free(path);
    return err ? err : check_empty(restore, why); /* a gateway may have started just now */
}

static enum err make_partial(struct restore *restore, struct failure *why)
{
    char *path = join(restore->options->data, partial_name);
    folder_remove(restore->data, partial_name, NULL);
    bool made =
        !mkdirat(restore->data, partial_name, 0700) &&
        (restore->partial = folder_open(restore->data, partial_name)) >= 0 &&
        !mkdirat(restore->partial, deployments, 0700) &&
        (restore->partial_deployments = folder_open(restore->partial, deployments)) >= 0;
    restore->partial_database = join(path, database);
    free(path);
    return made ? OK
                : explain(why, ERR_STORE, "cannot make a folder in %s: %s",
                          restore->options->data, strerror(errno));
}

/* The backup may be changed while it is copied: what counts is what came here. */
static enum err copy_files(struct restore *restore, struct failure *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < restore->manifest->count; i++) {
        const struct backup_file *file = &restore->manifest->files[i];
        struct file_facts found;
        int from, to;
        const char *name =
            place(file->name, restore->source, restore->source_deployments, &from);
        place(file->name, restore->partial, restore->partial_deployments, &to);
        err = file_pass_copy(from, name, to, name, restore->options->stopped, &found, why);
        err = err == ERR_NOT_FOUND ? missing(file, why)
              : err                ? err
                                   : compare(file, &found, why);
        if (!err)
            err = file_pass_sync(to, name, why);
    }
    return err;
}

/* root puts them back for whoever owns the data directory. */
static enum err give_to_owner(const struct restore *restore, struct failure *why)
{
    struct stat owner;
    bool given = !fstat(restore->data, &owner);
    if (given && owner.st_uid == geteuid())
        return OK;
    for (size_t i = 0; given && i < restore->manifest->count; i++) {
        int folder;
        const char *name = place(restore->manifest->files[i].name, restore->partial,
                                 restore->partial_deployments, &folder);
        given = !fchownat(folder, name, owner.st_uid, owner.st_gid, AT_SYMLINK_NOFOLLOW);
    }
    given = given && !fchown(restore->partial_deployments, owner.st_uid, owner.st_gid) &&
            !fchown(restore->lock, owner.st_uid, owner.st_gid);
    return given ? OK
                 : explain(why, ERR_STORE, "cannot give the files to the owner of %s: %s",
                           restore->options->data, strerror(errno));
}

/* ---- the end ---- */

static bool move(const struct restore *restore, const char *name)
{
    return renameat(restore->partial, name, restore->data, name) == 0;
}

static bool move_all(const struct restore *restore)
{
    bool moved = move(restore, deployments);
    for (size_t i = 0; moved && i < restore->manifest->count; i++) {
        const char *name = restore->manifest->files[i].name;
        if (!strchr(name, '/') && strcmp(name, database) != 0)
            moved = move(restore, name);
    }
    return moved && folder_sync(restore->data) && move(restore, database) &&
           folder_sync(restore->data);
}

/* The data directory was empty, and is locked: what is in it came from here. */
static void take_back(const struct restore *restore)
{
    for (size_t i = 0; i < restore->manifest->count; i++)
        if (!strchr(restore->manifest->files[i].name, '/'))
            unlinkat(restore->data, restore->manifest->files[i].name, 0);
    folder_remove(restore->data, deployments, NULL);
}

static enum err put_in_place(const struct restore *restore, struct failure *why)
{
    if (*restore->options->stopped)
        return explain(why, ERR_CANCELED, "stopped");
    if (folder_sync(restore->partial_deployments) && folder_sync(restore->partial) &&
        move_all(restore))
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

/* Of a data directory that was made here: it is on the disk, or gone. */
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
    struct restore restore = { .options = options,
                               .manifest = manifest,
                               .source = -1,
                               .source_deployments = -1,
                               .data = -1,
                               .lock = -1,
                               .partial = -1,
                               .partial_deployments = -1 };
    enum err err = make(&restore, why);
    close_if_open(restore.source);
    close_if_open(restore.source_deployments);
    close_if_open(restore.partial);
    close_if_open(restore.partial_deployments);
    if (restore.partial_database)
        folder_remove(restore.data, partial_name, NULL);
    if (restore.made_data)
        settle_data(&restore, !err);
    close_if_open(restore.data);
    close_if_open(restore.lock);
    free(restore.partial_database);
    if (err == ERR_CANCELED)
        explain(why, err, "stopped: nothing was restored");
    return err;
}
