/* sqlite_copy.c - writes the copy under a temporary name, then renames it.
 *
 *   runcast.db ─► runcast.db.schema-6.part ─► synced ─► runcast.db.schema-6 */
#include "store/sqlite/sqlite_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_rows.h"

static char *name_of(const char *path, int64_t version, const char *end)
{
    struct buf name = { 0 };
    buf_print(&name, "%s.schema-%" PRId64 "%s", path, version, end);
    char *text = mem_text(buf_slice(&name));
    buf_finish(&name);
    return text;
}

static bool make_empty(const char *path)
{
    unlink(path);
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool write_into(struct sqlite_db *db, const char *path)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_prepare_v2(db->handle, "VACUUM INTO ?1", -1, &stmt, NULL);
    sqlite_bind_text(stmt, 1, slice_of(path));
    bool written = stmt && sqlite3_step(stmt) == SQLITE_DONE;
    sqlite3_finalize(stmt);
    return written;
}

static bool sync_path(const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return synced;
}

static bool put_in_place(const char *part, const char *path)
{
    char *copy = mem_text(slice_of(path));
    bool placed = rename(part, path) == 0 && sync_path(dirname(copy), O_DIRECTORY);
    free(copy);
    return placed;
}

enum err sqlite_keep_copy(struct sqlite_db *db, const char *path, int64_t version,
                          struct failure *why)
{
    char *part = name_of(path, version, ".part"), *name = name_of(path, version, "");
    enum err err = OK;
    if (!make_empty(part))
        err = explain(why, ERR_STORE, "cannot create %s, the copy before an upgrade: %s",
                      part, strerror(errno));
    else if (!write_into(db, part))
        err = explain(why, ERR_STORE,
                      "cannot copy %s before its upgrade: %s; free as much disk space as "
                      "the database takes",
                      path, sqlite3_errmsg(db->handle));
    else if (!sync_path(part, 0) || !put_in_place(part, name))
        err = explain(why, ERR_STORE, "cannot keep %s, the copy before an upgrade: %s",
                      name, strerror(errno));
    if (err)
        unlink(part);
    else
        log_info("upgrading the database; a copy is kept", "copy", name, NULL);
    free(part);
    free(name);
    return err;
}
