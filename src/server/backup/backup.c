/* backup.c - copies archives and the database so that no archive is missing in the copy.
 *
 *   copy archives ─► read the database's file names at one moment ─► copy the missing ones
 *        ▲                        │                     ─► copy the database of that moment
 *        └──────── again ◄────────┘ an archive was removed: no current row names it
 *
 * Archives never change. Those that are copied first stay in the copy even if the gateway
 * removes them meanwhile. So once the names are read, only a few files are left to copy,
 * which is quick. */
#include "server/backup/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/files/folder.h"
#include "server/backup/data_files.h"
#include "server/backup/sealed.h"
#include "server/backup/stored_files.h"

enum { TRIES = 5, KEY_TRIES = 3, KEY_WAIT_MS = 100 };

struct backup {
    const struct backup_options *options;
    struct backup_manifest *manifest;
    char *above_path, *name; /* of the target */
    int above;
    struct data_files data, partial;
    char *partial_path, *database_path; /* of the copy */
    struct stored_files named;          /* by the database at the time of the copy */
};

/* ---- the target ---- */

/* Refuses a target inside the data directory: the backup would be lost with it. */
static enum err refuse_inside(const struct backup *backup, struct failure *why)
{
    char data[PATH_MAX], above[PATH_MAX];
    if (!realpath(backup->options->data, data) || !realpath(backup->above_path, above))
        return OK;
    size_t len = strlen(data);
    if (strncmp(above, data, len) == 0 && (above[len] == '/' || !above[len]))
        return explain(why, ERR_INVALID,
                       "%s is in the data directory; choose a folder outside of it, best "
                       "on another disk",
                       backup->options->target);
    return OK;
}

static enum err check_existing(const struct backup *backup, const struct stat *found,
                               struct failure *why)
{
    const char *target = backup->options->target;
    struct stat above;
    if (!S_ISDIR(found->st_mode))
        return explain(
            why, ERR_INVALID,
            "%s exists and is not a folder; choose a name that does not exist yet", target);
    int folder = folder_open(backup->above, backup->name);
    bool empty = folder >= 0 && folder_is_empty(folder);
    if (folder >= 0)
        close(folder);
    if (!empty)
        return explain(why, ERR_INVALID,
                       "%s is not empty; choose a name that does not exist yet", target);
    if (!fstat(backup->above, &above) && above.st_dev != found->st_dev)
        return explain(why, ERR_INVALID,
                       "%s is a mount point; choose a folder in it, like %s/runcast",
                       target, target);
    return OK;
}

/* SQLite opens the copy by its path. A user who can rename files in the folder could put
 * another one there meanwhile, and get the database in a file that they can read. */
static enum err refuse_foreign(const struct backup *backup, struct failure *why)
{
    struct stat above;
    if (fstat(backup->above, &above))
        return explain(why, ERR_INVALID, "cannot look at %s: %s", backup->above_path,
                       strerror(errno));
    bool is_foreign = above.st_uid && above.st_uid != geteuid();
    bool is_shared = above.st_mode & (S_IWGRP | S_IWOTH) && !(above.st_mode & S_ISVTX);
    if (!is_foreign && !is_shared)
        return OK;
    return explain(
        why, ERR_INVALID,
        "other users can rename files in %s (owner %u, mode %04o) and so read the copy; "
        "choose a folder that only you can write to, or run the backup as its owner",
        backup->above_path, (unsigned)above.st_uid, (unsigned)above.st_mode & 07777u);
}

static enum err check_target(struct backup *backup, struct failure *why)
{
    struct stat found;
    folder_split(backup->options->target, &backup->above_path, &backup->name);
    if (!*backup->name || !strcmp(backup->name, ".") || !strcmp(backup->name, ".."))
        return explain(why, ERR_INVALID,
                       "\"%s\" is not a folder name; choose a name that does not exist yet",
                       backup->options->target);
    backup->above = open(backup->above_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (backup->above < 0)
        return explain(why, ERR_INVALID, "cannot open %s: %s", backup->above_path,
                       strerror(errno));
    enum err err = refuse_inside(backup, why);
    if (!err)
        err = refuse_foreign(backup, why);
    if (err || fstatat(backup->above, backup->name, &found, AT_SYMLINK_NOFOLLOW))
        return err;
    return check_existing(backup, &found, why);
}

static enum err not_made(const struct backup *backup, struct failure *why)
{
    return explain(why, ERR_STORE, "cannot make a folder in %s: %s", backup->above_path,
                   strerror(errno));
}

static const char *partial_name(const struct backup *backup)
{
    return strrchr(backup->partial_path, '/') + 1;
}

static enum err make_partial(struct backup *backup, struct failure *why)
{
    struct buf path = { 0 };
    buf_print(&path, "%s/%s.partial-XXXXXX", backup->above_path, backup->name);
    char *text = mem_text(buf_slice(&path));
    buf_finish(&path);
    if (!mkdtemp(text)) {
        not_made(backup, why);
        free(text);
        return ERR_STORE;
    }
    backup->partial_path = text;
    backup->database_path = folder_path(text, DATA_DATABASE);
    return data_files_begin(&backup->partial, backup->above, partial_name(backup))
               ? OK
               : not_made(backup, why);
}

/* ---- the data directory ---- */

static enum err open_data(struct backup *backup, struct failure *why)
{
    const char *data = backup->options->data;
    struct stat found;
    bool opened = data_files_open(&backup->data, data);
    int error = errno;
    if (backup->data.top < 0)
        return explain(why, ERR_INVALID, "cannot open the data directory %s: %s", data,
                       strerror(error));
    if (fstatat(backup->data.top, DATA_DATABASE, &found, AT_SYMLINK_NOFOLLOW))
        return explain(why, ERR_INVALID, "there is no runcast data in %s", data);
    if (!S_ISREG(found.st_mode))
        return explain(why, ERR_INVALID,
                       "%s/%s is not a regular file; put the database there", data,
                       DATA_DATABASE);
    if (!opened)
        return explain(why, ERR_INVALID, "cannot open %s/%s: %s", data, DATA_DEPLOYMENTS,
                       strerror(error));
    return OK;
}

/* Copies a file of the folder of deployments and adds it to the manifest. */
static enum err copy_deployed(struct backup *backup, const char *name, struct failure *why)
{
    struct file_facts facts;
    const char *file = strrchr(name, '/') + 1;
    if (backup_manifest_find(backup->manifest, name))
        return OK; /* copied by the previous attempt */
    if (backup->data.deployments < 0)
        return explain(why, ERR_NOT_FOUND, "%s is missing", name);
    enum err err =
        file_pass_copy(backup->data.deployments, file, backup->partial.deployments, file,
                       backup->options->stopped, &facts, why);
    if (!err)
        backup_manifest_add(backup->manifest, name, &facts);
    return err;
}

static bool is_archive(const char *name)
{
    size_t len = strlen(name);
    return len > 7 && !strcmp(name + len - 7, ".tar.gz") && len < NAME_MAX;
}

/* Copies all archives; ignores those that the gateway removes meanwhile. */
static enum err copy_archives(struct backup *backup, struct failure *why)
{
    enum err err = OK;
    if (backup->data.deployments < 0)
        return OK;
    DIR *names = folder_list(backup->data.deployments);
    if (!names)
        return explain(why, ERR_STORE, "cannot list %s: %s", DATA_DEPLOYMENTS,
                       strerror(errno));
    for (const struct dirent *entry; !err && (entry = readdir(names));) {
        char name[sizeof(DATA_DEPLOYMENTS) + NAME_MAX + 1];
        snprintf(name, sizeof(name), "%s/%s", DATA_DEPLOYMENTS, entry->d_name);
        if (is_archive(entry->d_name) && backup_name_is_right(slice_of(name)))
            err = copy_deployed(backup, name, why);
        err = err == ERR_NOT_FOUND ? OK : err;
    }
    closedir(names);
    return err;
}

/* ---- the database, and what it names ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Sets *named if the gateway's database names the file now. */
static enum err is_named_now(const struct backup *backup, const char *name, bool *named,
                             struct failure *why)
{
    struct sqlite_look *look = NULL;
    struct stored_files files = { 0 };
    char *path = folder_path(backup->options->data, DATA_DATABASE);
    enum err err = sqlite_look_open(path, false, &look, why);
    if (!err)
        err = stored_files_read(look, &files, why);
    *named = !err && stored_files_find(&files, name);
    sqlite_look_close(look);
    stored_files_finish(&files);
    free(path);
    return err;
}

/* Copies the files that the database named, unless they were copied before.
 *
 * Sets *gone if the gateway has removed one since, so that the database must be read again.
 * A file that the database still names but that does not exist is logged and left out. */
static enum err copy_named(struct backup *backup, bool *gone, struct failure *why)
{
    *gone = false;
    for (size_t i = 0; i < backup->named.count && !*gone; i++) {
        const struct stored_file *file = &backup->named.all[i];
        bool named = false;
        enum err err = copy_deployed(backup, file->name, why);
        if (err && err != ERR_NOT_FOUND)
            return err;
        if (!err || file->may_be_missing)
            continue;
        if ((err = is_named_now(backup, file->name, &named, why)))
            return err;
        *gone = !named;
        if (named)
            log_warn("a file is missing in the data directory; run runcast db check",
                     "file", file->name, NULL);
    }
    return OK;
}

/* Removes copies of files that are no longer named. */
static void drop_unnamed(struct backup *backup)
{
    struct backup_manifest *manifest = backup->manifest;
    size_t kept = 0;
    for (size_t i = 0; i < manifest->count; i++) {
        if (stored_files_find(&backup->named, manifest->files[i].name))
            manifest->files[kept++] = manifest->files[i];
        else
            unlinkat(backup->partial.top, manifest->files[i].name, 0);
    }
    manifest->count = kept;
}

/* Makes one attempt. Unless it sets *gone, *look is open and the files that it names are
 * copied. */
static enum err look_and_copy_named(struct backup *backup, struct sqlite_look **look,
                                    bool *gone, struct failure *why)
{
    char *path = folder_path(backup->options->data, DATA_DATABASE);
    enum err err = copy_archives(backup, why);
    backup->manifest->made_at = now_ms();
    if (!err)
        err = sqlite_look_open(path, false, look, why);
    stored_files_finish(&backup->named);
    if (!err)
        err = stored_files_read(*look, &backup->named, why);
    if (!err)
        err = copy_named(backup, gone, why);
    if (err || *gone) {
        sqlite_look_close(*look);
        *look = NULL;
    }
    free(path);
    return err;
}

static enum err copy_consistently(struct backup *backup, struct failure *why)
{
    struct sqlite_look *look = NULL;
    bool gone = true;
    enum err err = OK;
    for (int tries = 0; !err && gone && tries < TRIES; tries++)
        err = look_and_copy_named(backup, &look, &gone, why);
    if (err)
        return err;
    if (gone)
        return explain(why, ERR_STORE,
                       "versions change too fast to be copied; try again later");
    drop_unnamed(backup);
    backup->manifest->schema = sqlite_look_schema(look);
    err = sqlite_look_copy(look, backup->database_path, backup->options->stopped, why);
    sqlite_look_close(look);
    return err;
}

/* ---- keys ---- */

static enum err copy_key(struct backup *backup, const char *name, struct failure *why)
{
    struct file_facts facts;
    unlinkat(backup->partial.top, name, 0); /* left by the previous attempt */
    enum err err = file_pass_copy(backup->data.top, name, backup->partial.top, name,
                                  backup->options->stopped, &facts, why);
    return err == ERR_NOT_FOUND ? OK : err;
}

/* Copies former keys too, because older backups may need them. */
static enum err copy_keys(struct backup *backup, struct failure *why)
{
    enum err err = OK;
    DIR *names = folder_list(backup->data.top);
    if (!names)
        return explain(why, ERR_STORE, "cannot list the data directory: %s",
                       strerror(errno));
    for (const struct dirent *entry; !err && (entry = readdir(names));)
        if (backup_name_is_right(slice_of(entry->d_name)) &&
            strcmp(entry->d_name, DATA_DATABASE) != 0)
            err = copy_key(backup, entry->d_name, why);
    closedir(names);
    return err;
}

/* Returns true if the key opens the copy. key "": the one that was copied. */
static bool opens(const struct backup *backup, const char *key, struct failure *why)
{
    char *path = folder_path(backup->partial_path, DATA_KEY);
    enum err err = sealed_try(backup->database_path, key, path, backup->manifest->key, why);
    free(path);
    return !err;
}

static void wait_a_little(void)
{
    struct timespec while_it_ends = { .tv_nsec = KEY_WAIT_MS * 1000000L };
    nanosleep(&while_it_ends, NULL);
}

/* Copies keys until they open the database. During a key rotation, the files change one
 * after another, so the copy may be a mixture. */
static enum err take_keys(struct backup *backup, struct failure *why)
{
    struct failure unopened;
    struct sqlite_look *look = NULL;
    for (int tries = 0; tries < KEY_TRIES; tries++) {
        if (tries)
            wait_a_little();
        enum err err = copy_keys(backup, why);
        if (err)
            return err;
        bool has_file = faccessat(backup->partial.top, DATA_KEY, F_OK, 0) == 0;
        backup->manifest->holds_key = has_file && opens(backup, "", &unopened);
        if (!has_file || backup->manifest->holds_key)
            break;
    }
    if (backup->manifest->holds_key)
        return OK;
    if (*backup->options->key && !opens(backup, backup->options->key, why))
        return why->code;
    enum err err = sqlite_look_open(backup->database_path, true, &look, why);
    if (!err)
        sealed_key_id(look, backup->manifest->key);
    sqlite_look_close(look);
    return err;
}

/* ---- the end ---- */

static enum err note_file(struct backup *backup, const char *name, struct failure *why)
{
    struct file_facts facts;
    enum err err =
        file_pass_hash(backup->partial.top, name, backup->options->stopped, &facts, why);
    if (!err)
        backup_manifest_add(backup->manifest, name, &facts);
    return err;
}

/* Adds the database with its new epoch, and the keys as last copied. */
static enum err note_rest(struct backup *backup, struct failure *why)
{
    enum err err = OK;
    DIR *names = folder_list(backup->partial.top);
    if (!names)
        return explain(why, ERR_STORE, "cannot list the copy: %s", strerror(errno));
    for (const struct dirent *entry; !err && (entry = readdir(names));)
        if (backup_name_is_right(slice_of(entry->d_name)))
            err = note_file(backup, entry->d_name, why);
    closedir(names);
    return err;
}

static enum err write_manifest(struct backup *backup, struct failure *why)
{
    struct buf text = { 0 };
    snprintf(backup->manifest->runcast, sizeof(backup->manifest->runcast), "%s",
             RUNCAST_VERSION);
    backup_manifest_write(backup->manifest, &text);
    enum err err =
        file_pass_write(backup->partial.top, "manifest.json", text.ptr, text.len, why);
    buf_finish(&text);
    return err;
}

/* Syncs last, so that little time passes between reading the database and copying the files
 * that it names. */
static enum err sync_files(const struct backup *backup, struct failure *why)
{
    enum err err = OK;
    for (size_t i = 0; !err && i < backup->manifest->count; i++)
        err =
            *backup->options->stopped
                ? explain(why, ERR_CANCELED, "stopped")
                : file_pass_sync(backup->partial.top, backup->manifest->files[i].name, why);
    return err;
}

static enum err put_in_place(struct backup *backup, struct failure *why)
{
    if (!data_files_sync(&backup->partial))
        return explain(why, ERR_STORE, "cannot sync the copy: %s", strerror(errno));
    if (*backup->options->stopped)
        return explain(why, ERR_CANCELED, "stopped");
    if (renameat(backup->above, partial_name(backup), backup->above, backup->name))
        return explain(why, ERR_STORE, "cannot rename the copy to %s: %s",
                       backup->options->target, strerror(errno));
    free(backup->partial_path);
    backup->partial_path = NULL; /* it is complete: do not remove it */
    return folder_sync(backup->above) ? OK
                                      : explain(why, ERR_STORE, "cannot sync %s: %s",
                                                backup->above_path, strerror(errno));
}

static enum err make(struct backup *backup, struct failure *why)
{
    enum err err = open_data(backup, why);
    if (!err)
        err = check_target(backup, why);
    if (!err)
        err = make_partial(backup, why);
    if (!err)
        err = copy_consistently(backup, why);
    if (!err)
        err = take_keys(backup, why);
    if (!err)
        err = sqlite_look_renew_epoch(backup->database_path, backup->manifest->epoch, why);
    if (!err)
        err = note_rest(backup, why);
    if (!err)
        err = sync_files(backup, why);
    if (!err)
        err = write_manifest(backup, why);
    return err ? err : put_in_place(backup, why);
}

enum err backup_make(const struct backup_options *options, struct backup_manifest *manifest,
                     struct failure *why)
{
    struct backup backup = { .options = options, .manifest = manifest, .above = -1 };
    data_files_init(&backup.data);
    data_files_init(&backup.partial);
    enum err err = make(&backup, why);
    data_files_close(&backup.data);
    data_files_close(&backup.partial);
    if (backup.partial_path)
        folder_remove(backup.above, partial_name(&backup), NULL);
    if (backup.above >= 0)
        close(backup.above);
    stored_files_finish(&backup.named);
    free(backup.partial_path);
    free(backup.database_path);
    free(backup.above_path);
    free(backup.name);
    if (err == ERR_CANCELED)
        explain(why, err, "backup stopped; its files were removed");
    return err;
}
