/* sqlite_look.c - one read transaction on a read-only connection.
 *
 * A copy is made page by page while that transaction is open. Without it, SQLite would
 * restart the copy with every commit of the gateway, and never finish. */
#include "store/sqlite/snapshot/sqlite_look.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/sqlite/snapshot/throttled_sync.h"
#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_rows.h"

enum {
    COPY_PAGES = 64,   /* between two checks of *stopped */
    FINDINGS_MAX = 20, /* of each kind */
};

struct sqlite_look {
    struct sqlite_db db;
    char *path;
    int64_t schema;
    char epoch[17];
};

enum err sqlite_look_explain(struct sqlite_look *look, struct failure *why)
{
    return explain(why, ERR_STORE, "cannot read %s: %s", look->path,
                   sqlite3_errmsg(look->db.handle));
}

/* ---- opening ---- */

enum err sqlite_look_open(const char *path, bool still, struct sqlite_look **out,
                          struct failure *why)
{
    struct sqlite_look *look = mem_new(struct sqlite_look);
    look->path = mem_text(slice_of(path));
    enum err err = sqlite_db_look(&look->db, path, still, why);
    if (!err && (sqlite_db_run(&look->db, SQL_BEGIN_READ) != SQLITE_OK ||
                 !sqlite_db_take_epoch(&look->db, SQL_EPOCH, look->epoch)))
        err = sqlite_look_explain(look, why);
    if (err) {
        sqlite_look_close(look);
        return err;
    }
    look->schema = sqlite_db_number(&look->db, "PRAGMA user_version", 0);
    *out = look;
    return OK;
}

void sqlite_look_close(struct sqlite_look *look)
{
    if (!look)
        return;
    sqlite_db_close(&look->db);
    free(look->path);
    free(look);
}

struct sqlite_db *sqlite_look_db(struct sqlite_look *look)
{
    return &look->db;
}

const char *sqlite_look_path(const struct sqlite_look *look)
{
    return look->path;
}

int64_t sqlite_look_schema(const struct sqlite_look *look)
{
    return look->schema;
}

const char *sqlite_look_epoch(const struct sqlite_look *look)
{
    return look->epoch;
}

/* ---- documents ---- */

static struct document read_document(sqlite3_stmt *stmt, enum document_kind kind)
{
    return (struct document){ .kind = kind,
                              .env = (uint32_t)sqlite3_column_int64(stmt, 0),
                              .version = (uint32_t)sqlite3_column_int64(stmt, 2),
                              .name = sqlite_column_copy(stmt, 1),
                              .body = sqlite_column_copy(stmt, 3) };
}

enum err sqlite_look_documents(struct sqlite_look *look, enum document_kind kind,
                               sqlite_take_fn *take, void *owner, struct failure *why)
{
    sqlite3_stmt *stmt = NULL;
    enum err err = OK;
    sqlite3_prepare_v2(look->db.handle,
                       "SELECT env, name, version, body FROM document WHERE kind = ?1"
                       " ORDER BY env, name",
                       -1, &stmt, NULL);
    int code = sqlite3_bind_int(stmt, 1, (int)kind);
    while (!err && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct document document = read_document(stmt, kind);
        err = take(owner, &document);
        document_finish(&document);
    }
    if (!err && code != SQLITE_DONE)
        err = sqlite_look_explain(look, why);
    sqlite3_finalize(stmt);
    return err;
}

/* ---- copying ---- */

/* Creates an empty file, and opens a connection without a journal. An incomplete copy is
 * removed and never read. */
static enum err make_target(const char *path, int *fd, sqlite3 **to, struct failure *why)
{
    *to = NULL;
    *fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*fd < 0)
        return explain(why, ERR_STORE, "cannot create %s: %s", path, strerror(errno));
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    if (sqlite3_open_v2(path, to, flags, NULL) == SQLITE_OK &&
        sqlite3_exec(*to,
                     "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;"
                     "PRAGMA synchronous = OFF; PRAGMA cache_size = -4096",
                     NULL, NULL, NULL) == SQLITE_OK)
        return OK;
    return explain(why, ERR_STORE, "cannot write %s: %s", path, sqlite3_errmsg(*to));
}

/* Copies the pages. Returns SQLITE_DONE when all are copied. */
static int copy_pages(sqlite3_backup *backup, int fd, const volatile sig_atomic_t *stopped)
{
    struct throttled_sync sync = { 0 };
    int code = SQLITE_OK;
    while (code == SQLITE_OK && !*stopped) {
        code = sqlite3_backup_step(backup, COPY_PAGES);
        if (code == SQLITE_OK &&
            !throttled_sync_wrote(&sync, fd, COPY_PAGES * SQLITE_PAGE_BYTES))
            code = SQLITE_IOERR_FSYNC;
    }
    return code;
}

enum err sqlite_look_copy(struct sqlite_look *look, const char *path,
                          const volatile sig_atomic_t *stopped, struct failure *why)
{
    sqlite3 *to;
    int fd, code = SQLITE_ERROR;
    enum err err = make_target(path, &fd, &to, why);
    sqlite3_backup *backup =
        err ? NULL : sqlite3_backup_init(to, "main", look->db.handle, "main");
    if (backup) {
        code = copy_pages(backup, fd, stopped);
        int ended = sqlite3_backup_finish(backup); /* returns the error, if any */
        code = ended != SQLITE_OK ? ended : code;
    }
    if (!err && *stopped)
        err = explain(why, ERR_CANCELED, "stopped");
    else if (!err && sqlite_status(code) == STORE_NO_SPACE)
        err = explain(why, ERR_STORE, "cannot write %s: no space left on the device", path);
    else if (!err && code != SQLITE_DONE)
        err = explain(why, ERR_STORE, "cannot copy %s to %s: %s", look->path, path,
                      sqlite3_errstr(code));
    if (sqlite3_close(to) != SQLITE_OK && !err)
        err = explain(why, ERR_STORE, "cannot write %s", path);
    if (!err && fsync(fd))
        err = explain(why, ERR_STORE, "cannot write %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return err;
}

enum err sqlite_look_renew_epoch(const char *path, char epoch[17], struct failure *why)
{
    struct sqlite_options options = { .path = path };
    struct sqlite_db db;
    enum err err = sqlite_db_open(&db, &options, SQLITE_WRITER, why);
    if (err)
        return err;
    if (!sqlite_db_take_epoch(&db, SQL_RENEW_EPOCH, epoch) ||
        sqlite3_wal_checkpoint_v2(db.handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL))
        err =
            explain(why, ERR_STORE, "cannot write %s: %s", path, sqlite3_errmsg(db.handle));
    sqlite_db_close(&db);
    return err;
}

/* ---- checking ---- */

static enum err check_pages(struct sqlite_look *look, sqlite_found_fn *found, void *owner,
                            struct failure *why)
{
    sqlite3_stmt *stmt = NULL;
    struct buf sql = { 0 }, text = { 0 };
    int code = SQLITE_ERROR;
    buf_print(&sql, "PRAGMA integrity_check(%d)", FINDINGS_MAX);
    sqlite3_prepare_v2(look->db.handle, sql.ptr, (int)sql.len, &stmt, NULL);
    while (stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct slice line = sqlite_column(stmt, 0);
        buf_clear(&text);
        buf_print(&text, "the database is damaged: %.*s; restore a backup",
                  SLICE_ARG(line));
        buf_add_char(&text, '\0');
        for (char *c = text.ptr; *c; c++)
            *c = *c == '\n' ? ' ' : *c;
        if (!slice_is(line, "ok"))
            found(owner, text.ptr);
    }
    sqlite3_finalize(stmt);
    buf_finish(&sql);
    buf_finish(&text);
    return code == SQLITE_DONE ? OK : sqlite_look_explain(look, why);
}

/* Looks for rows of runs that do not exist. The schema has no foreign keys: the writer
 * removes such rows together with their run. */
static enum err check_rows(struct sqlite_look *look, sqlite_found_fn *found, void *owner,
                           struct failure *why)
{
    static const char *const tables[] = { "run_payload", "run_metadata", "run_output",
                                          "run_tag" };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct buf sql = { 0 };
        buf_print(&sql,
                  "SELECT count(*) FROM %s AS t WHERE NOT EXISTS"
                  " (SELECT 1 FROM run WHERE env = t.env AND id = t.id)",
                  tables[i]);
        buf_add_char(&sql, '\0');
        int64_t count = sqlite_db_number(&look->db, sql.ptr, -1);
        buf_clear(&sql);
        buf_print(&sql,
                  "%" PRId64 " rows of %s belong to no run and only use space; if their "
                  "number grows, please report this as a bug of runcast",
                  count, tables[i]);
        buf_add_char(&sql, '\0');
        if (count > 0)
            found(owner, sql.ptr);
        buf_finish(&sql);
        if (count < 0)
            return sqlite_look_explain(look, why);
    }
    return OK;
}

enum err sqlite_look_check(struct sqlite_look *look, sqlite_found_fn *found, void *owner,
                           struct failure *why)
{
    enum err err = check_pages(look, found, owner, why);
    return err ? err : check_rows(look, found, owner, why);
}
