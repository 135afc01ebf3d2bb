/* db_check.c - checks the database, its sealed values and the files that it names.
 *
 * A gateway may serve meanwhile. It creates files before their rows and removes them after.
 * So an unnamed file is reported only if it is older than a minute, and a missing one only
 * if the database still names it. */
#include "server/backup/db_check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "os/files/folder.h"
#include "server/backup/data_files.h"
#include "server/backup/sealed.h"
#include "server/backup/stored_files.h"

enum { SETTLED_MS = 60 * 1000 };

struct db_checking {
    const struct db_check_options *options;
    char *database; /* path */
    struct data_files files;
    struct stored_files named;
};

static void tell(const struct db_checking *checking, const char *name, const char *what)
{
    struct buf text = { 0 };
    buf_print(&text, "%s %s", name, what);
    buf_add_char(&text, '\0');
    checking->options->found(checking->options->owner, text.ptr);
    buf_finish(&text);
}

/* ---- files ---- */

/* Reads the names of files that the database has now. */
static enum err read_named(const struct db_checking *checking, struct stored_files *named,
                           struct failure *why)
{
    struct sqlite_look *look = NULL;
    enum err err = sqlite_look_open(checking->database, false, &look, why);
    if (!err)
        err = stored_files_read(look, named, why);
    sqlite_look_close(look);
    return err;
}

static enum err check_missing(const struct db_checking *checking,
                              const struct stored_file *file, struct failure *why)
{
    struct stored_files now = { 0 };
    enum err err = read_named(checking, &now, why);
    if (!err && stored_files_find(&now, file->name))
        tell(checking, file->name,
             "is missing; copy it from a backup, or deploy that version again");
    stored_files_finish(&now);
    return err;
}

static enum err check_file(const struct db_checking *checking,
                           const struct stored_file *file, struct failure *why)
{
    static const volatile sig_atomic_t never;
    struct file_facts facts;
    struct failure trouble = { 0 };
    enum err err =
        checking->files.deployments < 0
            ? ERR_NOT_FOUND
            : file_pass_hash(checking->files.deployments, strrchr(file->name, '/') + 1,
                             &never, &facts, &trouble);
    if (err == ERR_NOT_FOUND)
        return file->may_be_missing ? OK : check_missing(checking, file, why);
    if (err)
        tell(checking, file->name, trouble.text);
    else if ((file->bytes >= 0 && (uint64_t)file->bytes != facts.bytes) ||
             (file->sha256[0] && strcmp(file->sha256, facts.sha256) != 0))
        tell(checking, file->name,
             "is damaged; copy it from a backup, or deploy that version again");
    return OK;
}

static bool is_settled(const struct db_checking *checking, const char *name)
{
    struct stat found;
    return !fstatat(checking->files.deployments, name, &found, AT_SYMLINK_NOFOLLOW) &&
           found.st_ctime * INT64_C(1000) < checking->options->now_ms - SETTLED_MS;
}

static void check_unnamed(const struct db_checking *checking)
{
    DIR *names =
        checking->files.deployments < 0 ? NULL : folder_list(checking->files.deployments);
    for (const struct dirent *entry; names && (entry = readdir(names));) {
        char name[sizeof(DATA_DEPLOYMENTS) + NAME_MAX + 1];
        snprintf(name, sizeof(name), "%s/%s", DATA_DEPLOYMENTS, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !stored_files_find(&checking->named, name) &&
            is_settled(checking, entry->d_name))
            tell(checking, name,
                 "belongs to no deployment; the next start of the gateway removes it");
    }
    if (names)
        closedir(names);
}

static enum err check_files(struct db_checking *checking, struct failure *why)
{
    enum err err = read_named(checking, &checking->named, why);
    if (!err && checking->named.damaged.code)
        tell(checking, checking->named.damaged.text, "; restore a backup");
    for (size_t i = 0; !err && i < checking->named.count; i++)
        err = check_file(checking, &checking->named.all[i], why);
    if (!err)
        check_unnamed(checking);
    return err;
}

/* ---- all checks ---- */

static enum err check_database(const struct db_checking *checking, struct failure *why)
{
    const struct db_check_options *options = checking->options;
    struct sqlite_look *look = NULL;
    enum err err = sqlite_look_open(checking->database, false, &look, why);
    if (!err)
        err = sqlite_look_check(look, options->found, options->owner, why);
    if (!err && options->vault)
        err = sealed_check(look, options->vault, options->found, options->owner, why);
    sqlite_look_close(look);
    return err;
}

enum err db_check(const struct db_check_options *options, struct failure *why)
{
    struct db_checking checking = { .options = options };
    checking.database = folder_path(options->data, DATA_DATABASE);
    data_files_init(&checking.files);
    data_files_open(&checking.files, options->data);
    enum err err = check_database(&checking, why);
    if (!err)
        err = check_files(&checking, why);
    data_files_close(&checking.files);
    stored_files_finish(&checking.named);
    free(checking.database);
    return err;
}
