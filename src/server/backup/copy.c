/* copy.c - locks the data directory and copies its database and files to PostgreSQL. */
#include "server/backup/copy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/backup/copied_files.h"
#include "server/backup/sealed.h"
#include "store/sqlite/sqlite_store.h"

static void note_first(void *owner, const char *text)
{
    struct failure *first = owner;
    if (!first->code)
        explain(first, ERR_INVALID, "%s", text);
}

/* Refuses to copy data that the key does not open. */
static enum err check_sealed(struct sqlite_look *look, struct vault *vault,
                             struct copied *copied, struct failure *why)
{
    struct failure first = { 0 };
    char before[KEY_ID_TEXT_MAX];
    vault_key_id(vault, before);
    enum err err = sealed_check(look, vault, note_first, &first, why);
    vault_opened_id(vault, copied->key_id);
    copied->key_is_found = strcmp(copied->key_id, before) != 0;
    return err || !first.code ? err : explain(why, ERR_INVALID, "%s", first.text);
}

static enum err copy_all(const struct copy_options *options, struct sqlite_look *look,
                         struct copied *copied, struct failure *why)
{
    struct copied_files files;
    enum err err = copied_files_open(&files, options->data, look, why);
    if (!err)
        err = pg_copy(&options->target, look, &files.source, options->stopped,
                      &copied->rows, why);
    copied->missing_files = files.missing;
    copied_files_finish(&files);
    return err;
}

static enum err copy_from(const char *path, const struct copy_options *options,
                          struct copied *copied, struct failure *why)
{
    struct sqlite_look *look = NULL;
    enum err err = sqlite_look_open(path, false, &look, why);
    if (!err)
        err = check_sealed(look, options->vault, copied, why);
    if (!err)
        err = copy_all(options, look, copied, why);
    if (!err)
        snprintf(copied->epoch, sizeof(copied->epoch), "%s", sqlite_look_epoch(look));
    sqlite_look_close(look);
    return err;
}

enum err copy_make(const struct copy_options *options, struct copied *copied,
                   struct failure *why)
{
    struct buf path = { 0 };
    int lock = -1;
    buf_print(&path, "%s/runcast.db", options->data);
    buf_add_char(&path, '\0');
    enum err err = sqlite_store_hold(path.ptr, &lock, why);
    if (!err) {
        err = copy_from(path.ptr, options, copied, why);
        close(lock);
    }
    buf_finish(&path);
    if (err == ERR_CANCELED)
        explain(why, err, "copy stopped; nothing was copied");
    return err;
}
