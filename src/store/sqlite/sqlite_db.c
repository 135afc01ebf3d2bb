/* sqlite_db.c - a connection to the database file.
 *
 * Every connection runs in WAL mode with synchronous=FULL: a commit returns when its log
 * has been synced. Checkpoints are the writer's business, so nothing happens by itself. The
 * file is not mapped: an I/O error in a mapping would be a SIGBUS instead of a code. */
#include "store/sqlite/sqlite_db.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "store/sqlite/sqlite_copy.h"
#include "store/sqlite/sqlite_log.h"
#include "store/sqlite/sqlite_rows.h"

enum {
    APPLICATION_ID = 1919115635, /* in the file's header; "rcas" */
    PROGRESS_STEPS = 10000,      /* between two looks at the clock, well below 1 ms */
    WAL_KEPT_BYTES = 64 << 20,   /* the log shrinks to this when it starts again */
};

/* Embedded from schema/sqlite.sql by the build. */
extern const char sqlite_schema_sql[];

/* The step at index n makes version n + 1 out of version n. */
static const char *const migrations[] = {
    sqlite_schema_sql,
    /* What retention asks: how old is a document, and which run refers to a packet? */
    "ALTER TABLE document ADD COLUMN written_at INTEGER NOT NULL DEFAULT 0;"
    "UPDATE document SET written_at = unixepoch() * 1000;"
    "CREATE INDEX document_age ON document (kind, env, written_at);"
    "CREATE INDEX payload_packet ON run_payload (env, body) WHERE type = "
    "'application/store';"
    "CREATE INDEX output_packet ON run_output (env, body) WHERE type = 'application/store'",
    "ALTER TABLE run ADD COLUMN streams TEXT", /* JSON array of keys */
    /* What retention asks of waitpoints: since when are they stale, and who waits? */
    "ALTER TABLE document ADD COLUMN stale_at INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX run_token ON run (env, waits)"
    " WHERE status < 7 AND instr(waits, '\"MANUAL\"') > 0",
    "ALTER TABLE run ADD COLUMN metadata_request TEXT",
    "ALTER TABLE run ADD COLUMN bulk TEXT;"
    "CREATE INDEX run_bulk ON run (env, bulk, id) WHERE bulk IS NOT NULL",
    /* What an environment stores, in bytes: the quota of its project asks. */
    "ALTER TABLE environment ADD COLUMN stored INTEGER NOT NULL DEFAULT 0;"
    "UPDATE environment AS e SET stored = (SELECT ifnull(sum(ifnull(length(body), 0)), 0)"
    " FROM run_payload WHERE env = e.env) + (SELECT ifnull(sum(ifnull(length(body), 0) +"
    " ifnull(length(seed), 0)), 0) FROM run_metadata WHERE env = e.env) + (SELECT"
    " ifnull(sum(ifnull(length(body), 0) + ifnull(length(error), 0)), 0) FROM run_output"
    " WHERE env = e.env) + (SELECT ifnull(sum(length(body)), 0) FROM document"
    " WHERE kind = 12 AND env = e.env)",
    /* All of it counts: rows with their names and keys, every kind of document, claims. */
    "INSERT OR IGNORE INTO environment (env) SELECT DISTINCT env FROM claim;"
    "UPDATE environment AS e SET stored ="
    " (SELECT ifnull(sum(1536 + 2 * length(CAST(ifnull(tags, '') AS BLOB)) + length(CAST("
    " ifnull(task, '') || ifnull(queue, '') || ifnull(concurrency_key, '') ||"
    " ifnull(worker_version, '') || ifnull(ttl, '') || ifnull(region, '') ||"
    " ifnull(batch, '') || ifnull(parent, '') || ifnull(root, '') ||"
    " ifnull(schedule, '') || ifnull(idempotency_key, '') ||"
    " ifnull(idempotency_shown, '') || ifnull(worker_request, '') || ifnull(waits,"
    " '') || ifnull(streams, '') || ifnull(metadata_request, '') || ifnull(bulk, '')"
    " AS BLOB))), 0) FROM run WHERE env = e.env) + (SELECT ifnull(sum("
    "ifnull(length(body), 0) + length(CAST(ifnull(type, '') AS BLOB))), 0)"
    " FROM run_payload WHERE env = e.env) + (SELECT ifnull(sum(ifnull(length(body), 0) +"
    " ifnull(length(seed), 0)), 0) FROM run_metadata WHERE env = e.env) + (SELECT"
    " ifnull(sum(ifnull(length(body), 0) + length(CAST(ifnull(type, '') AS BLOB)) +"
    " ifnull(length(error), 0)), 0) FROM run_output WHERE env = e.env) + (SELECT"
    " ifnull(sum(128 + 2 * length(CAST(name AS BLOB)) + length(body)), 0) FROM document"
    " WHERE kind IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)"
    " AND env = e.env) + (SELECT ifnull(sum(128 + 2 * length(CAST(key AS BLOB))), 0)"
    " FROM claim WHERE env = e.env) + (SELECT ifnull(sum(128 +"
    " length(CAST(task AS BLOB))), 0) FROM task_number WHERE env = e.env AND last > 0)",
    /* Bodies leave the trees that are searched by key, a table a step. In one WITHOUT ROWID
     * each comparison on the way to a row reads the whole row that it compares with: to find
     * one body of 15 KB, SQLite read a dozen others. Now the keys are an index of their own,
     * and the body is the last column, so that the others are read without it. */
    "CREATE TABLE moved (env INTEGER NOT NULL, id TEXT NOT NULL, type TEXT, body BLOB,"
    " PRIMARY KEY (env, id)) STRICT;"
    "INSERT INTO moved (env, id, type, body) SELECT env, id, type, body FROM run_payload"
    " ORDER BY env, id;"
    "DROP TABLE run_payload;"
    "ALTER TABLE moved RENAME TO run_payload;"
    "CREATE INDEX payload_packet ON run_payload (env, body)"
    " WHERE type = 'application/store'",
    "CREATE TABLE moved (env INTEGER NOT NULL, id TEXT NOT NULL, seed BLOB, body BLOB,"
    " PRIMARY KEY (env, id)) STRICT;"
    "INSERT INTO moved (env, id, seed, body) SELECT env, id, seed, body FROM run_metadata"
    " ORDER BY env, id;"
    "DROP TABLE run_metadata;"
    "ALTER TABLE moved RENAME TO run_metadata",
    "CREATE TABLE moved (env INTEGER NOT NULL, id TEXT NOT NULL, type TEXT, error BLOB,"
    " body BLOB, PRIMARY KEY (env, id)) STRICT;"
    "INSERT INTO moved (env, id, type, error, body) SELECT env, id, type, error, body"
    " FROM run_output ORDER BY env, id;"
    "DROP TABLE run_output;"
    "ALTER TABLE moved RENAME TO run_output;"
    "CREATE INDEX output_packet ON run_output (env, body)"
    " WHERE type = 'application/store'",
    "CREATE TABLE moved (kind INTEGER NOT NULL, env INTEGER NOT NULL, name TEXT NOT NULL,"
    " version INTEGER NOT NULL, seq INTEGER NOT NULL, written_at INTEGER NOT NULL"
    " DEFAULT 0, stale_at INTEGER NOT NULL DEFAULT 0, body BLOB NOT NULL,"
    " PRIMARY KEY (kind, env, name)) STRICT;"
    "INSERT INTO moved (kind, env, name, version, seq, written_at, stale_at, body)"
    " SELECT kind, env, name, version, seq, written_at, stale_at, body FROM document"
    " ORDER BY kind, env, name;"
    "DROP TABLE document;"
    "ALTER TABLE moved RENAME TO document;"
    "CREATE INDEX document_age ON document (kind, env, written_at)",
    /* Which deployment a run waits for. Who has this step also reads DOC_CURRENT: to a gateway
     * without it the newest registration would be current, promoted or not. */
    "ALTER TABLE run ADD COLUMN external_deployment TEXT",
};

enum { SCHEMA_VERSION = sizeof(migrations) / sizeof(migrations[0]) };

/* ---- results ---- */

enum store_status sqlite_status(int code)
{
    switch (code) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW: return STORE_OK;
    case SQLITE_INTERRUPT: return STORE_SLOW;
    case SQLITE_FULL:
    case SQLITE_IOERR_SHMSIZE: return STORE_NO_SPACE; /* the index of the log */
    default: return STORE_FAILED;
    }
}

static enum err explain_db(struct failure *why, const char *path, sqlite3 *handle)
{
    int code = sqlite3_errcode(handle) & 0xff;
    if (code == SQLITE_NOTADB)
        return explain(why, ERR_STORE, "%s is not a database of runcast", path);
    if (code == SQLITE_CORRUPT)
        return explain(why, ERR_STORE, "%s is damaged: restore a backup (%s)", path,
                       sqlite3_errmsg(handle));
    return explain(why, ERR_STORE, "cannot open the database %s: %s", path,
                   handle ? sqlite3_errmsg(handle) : "out of memory");
}

/* ---- statements ---- */

sqlite3_stmt *sqlite_db_stmt(struct sqlite_db *db, enum sqlite_statement which)
{
    sqlite3_stmt **stmt = &db->stmts[which];
    if (*stmt) {
        sqlite3_reset(*stmt);
        sqlite3_clear_bindings(*stmt);
        return *stmt;
    }
    struct buf sql = { 0 };
    sqlite_sql_add(&sql, which);
    sqlite3_prepare_v3(db->handle, sql.ptr, (int)sql.len, SQLITE_PREPARE_PERSISTENT, stmt,
                       NULL);
    buf_finish(&sql);
    return *stmt;
}

int sqlite_db_finish(struct sqlite_db *db, sqlite3_stmt *stmt)
{
    if (!stmt)
        return sqlite3_extended_errcode(db->handle);
    int code = sqlite3_step(stmt);
    sqlite3_reset(stmt);
    return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

int sqlite_db_run(struct sqlite_db *db, enum sqlite_statement which)
{
    return sqlite_db_finish(db, sqlite_db_stmt(db, which));
}

int64_t sqlite_db_number(struct sqlite_db *db, const char *sql, int64_t fallback)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        fallback = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return fallback;
}

static bool execute(struct sqlite_db *db, const char *sql)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK;
}

bool sqlite_db_take_epoch(struct sqlite_db *db, enum sqlite_statement which, char epoch[17])
{
    sqlite3_stmt *stmt = sqlite_db_stmt(db, which);
    if (!stmt || sqlite3_step(stmt) != SQLITE_ROW)
        return false;
    struct slice text = sqlite_column(stmt, 0);
    bool fits = text.len > 0 && text.len < 17;
    if (fits)
        snprintf(epoch, 17, "%.*s", SLICE_ARG(text));
    bool whole = sqlite3_step(stmt) == SQLITE_DONE; /* what it writes is written now */
    return sqlite3_reset(stmt) == SQLITE_OK && whole && fits;
}

bool sqlite_db_is_sound(struct sqlite_db *db)
{
    sqlite3_stmt *stmt = NULL;
    bool sound = sqlite3_prepare_v2(db->handle, "PRAGMA quick_check(1)", -1, &stmt, NULL) ==
                     SQLITE_OK &&
                 sqlite3_step(stmt) == SQLITE_ROW &&
                 !strcmp((const char *)sqlite3_column_text(stmt, 0), "ok");
    sqlite3_finalize(stmt);
    return sound;
}

/* ---- opening ---- */

/* SQLite would follow a link. A copy that was put back may be one that everybody can read;
 * SQLite gives its log the rights of the database. */
static enum err check_file(const char *path, struct failure *why)
{
    struct stat found;
    if (lstat(path, &found))
        return OK;
    if (S_ISLNK(found.st_mode))
        return explain(why, ERR_STORE, "%s is a symbolic link: put the database there",
                       path);
    if (found.st_mode & S_IRWXO && chmod(path, found.st_mode & (mode_t)~S_IRWXO))
        return explain(why, ERR_STORE,
                       "everybody may read %s: chmod o-rwx it, as its owner", path);
    return OK;
}

/* Makes an empty file that only we can read, and its entry in the directory durable. */
static enum err create_file(const char *path, struct failure *why)
{
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST)
        return check_file(path, why);
    if (fd < 0)
        return explain(why, ERR_STORE, "cannot create the database %s: %s", path,
                       strerror(errno));
    close(fd);
    char *copy = mem_text(slice_of(path));
    int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    if (dir >= 0) {
        fsync(dir);
        close(dir);
    }
    return OK;
}

static int on_progress(void *arg)
{
    const struct sqlite_db *db = arg;
    return db->deadline_ns && uv_hrtime() > db->deadline_ns;
}

static int on_committed(void *arg, sqlite3 *handle, const char *name, int pages)
{
    (void)handle;
    (void)name;
    ((struct sqlite_db *)arg)->wal_pages = (unsigned)pages;
    return SQLITE_OK;
}

/* A file may be what somebody else has made of it: a backup that was changed, a data directory
 * whose owner is not who looks. Ours has no triggers and no views, and none is carried out or
 * asked; of the tables that are code those that our own statements name stay. */
static bool refuse_code(sqlite3 *handle)
{
    static const char *ours[] = { "dbstat", "json_each", NULL };
    return sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL) == SQLITE_OK &&
           sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL) ==
               SQLITE_OK &&
           sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL) == SQLITE_OK &&
           sqlite3_drop_modules(handle, ours) == SQLITE_OK;
}

static bool configure(struct sqlite_db *db, const struct sqlite_options *options,
                      enum sqlite_role role)
{
    size_t cache = options->cache_bytes ? options->cache_bytes : (size_t)16 << 20;
    if (role == SQLITE_READER)
        cache /= 4; /* the kernel has the same pages */
    struct buf sql = { 0 };
    buf_print(&sql,
              "PRAGMA page_size = %d; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
              "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = %d;"
              "PRAGMA cache_size = -%zu; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
              "PRAGMA foreign_keys = OFF; PRAGMA secure_delete = FAST;"
              "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;%s",
              SQLITE_PAGE_BYTES, WAL_KEPT_BYTES, cache / 1024,
              role == SQLITE_READER ? "PRAGMA query_only = ON;" : "");
    buf_add_char(&sql, '\0');

    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_busy_timeout(db->handle, SQLITE_BUSY_MS);
    bool configured =
        refuse_code(db->handle) && execute(db, sql.ptr) &&
        sqlite_db_number(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 0);
    buf_finish(&sql);
    if (role == SQLITE_READER)
        sqlite3_progress_handler(db->handle, PROGRESS_STEPS, on_progress, db);
    else
        sqlite3_wal_hook(db->handle, on_committed, db);
    return configured;
}

/* Refuses a file that may not be ours, before anything is written into it. */
static enum err refuse_foreign(struct sqlite_db *db, const char *path, struct failure *why)
{
    int64_t version = sqlite_db_number(db, "PRAGMA user_version", -1);
    int64_t application = sqlite_db_number(db, "PRAGMA application_id", -1);
    int64_t tables = sqlite_db_number(db, "SELECT count(*) FROM sqlite_schema", -1);

    if (version < 0 || application < 0 || tables < 0)
        return explain_db(why, path, db->handle);
    if (tables > 0 && application != APPLICATION_ID)
        return explain(why, ERR_STORE, "%s is the database of another program", path);
    if (version > SCHEMA_VERSION)
        return explain(why, ERR_STORE,
                       "%s was written by a newer runcast (schema %" PRId64
                       ", this one knows %d): run that version, or restore an older backup",
                       path, version, SCHEMA_VERSION);
    return OK;
}

enum err sqlite_db_open(struct sqlite_db *db, const struct sqlite_options *options,
                        enum sqlite_role role, struct failure *why)
{
    *db = (struct sqlite_db){ 0 };
    if (create_file(options->path, why))
        return why->code;
    /* Without statistics no allocation takes a lock; too late, and harmless, but once. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    const char *vfs = role == SQLITE_WRITER ? sqlite_log_vfs() : NULL;
    enum err err = sqlite3_open_v2(options->path, &db->handle, flags, vfs)
                       ? explain_db(why, options->path, db->handle)
                       : refuse_foreign(db, options->path, why);
    if (!err && !configure(db, options, role))
        err = explain_db(why, options->path, db->handle);
    if (err)
        sqlite_db_close(db);
    return err;
}

/* The path as a URI, in which some characters mean something else. */
static void add_uri(struct buf *uri, const char *path, bool still)
{
    buf_add_text(uri, *path == '/' ? "file://" : "file:");
    for (; *path; path++) {
        if (strchr("%?#", *path))
            buf_print(uri, "%%%02x", (unsigned)*path);
        else
            buf_add_char(uri, *path);
    }
    buf_add_text(uri, still ? "?immutable=1" : "");
    buf_add_char(uri, '\0');
}

enum err sqlite_db_look(struct sqlite_db *db, const char *path, bool still,
                        struct failure *why)
{
    struct buf uri = { 0 };
    *db = (struct sqlite_db){ 0 };
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    add_uri(&uri, path, still);
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX |
                SQLITE_OPEN_PRIVATECACHE;
    bool open = sqlite3_open_v2(uri.ptr, &db->handle, flags, NULL) == SQLITE_OK;
    buf_finish(&uri);
    if (open) {
        sqlite3_extended_result_codes(db->handle, 1);
        sqlite3_busy_timeout(db->handle, SQLITE_BUSY_MS);
    }
    enum err err = open && refuse_code(db->handle) &&
                           execute(db, "PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;"
                                       "PRAGMA cell_size_check = ON;"
                                       "PRAGMA query_only = ON")
                       ? refuse_foreign(db, path, why)
                       : explain_db(why, path, db->handle);
    if (err)
        sqlite_db_close(db);
    return err;
}

void sqlite_db_close(struct sqlite_db *db)
{
    for (int i = 0; i < SQL_STATEMENT_COUNT; i++)
        sqlite3_finalize(db->stmts[i]);
    sqlite3_close(db->handle);
    *db = (struct sqlite_db){ 0 };
}

/* ---- versions ---- */

/* As long as steps of the schema are left the database says so: the next start goes on
 * with them. */
#define STEPS_LEFT "INSERT OR REPLACE INTO meta VALUES ('steps_left', '1')"
#define NO_STEPS_LEFT "DELETE FROM meta WHERE name = 'steps_left'"

/* A step may write all there is: its log goes before the next one's comes. */
static bool migrate_from(struct sqlite_db *db, int64_t version)
{
    struct buf sql = { 0 };
    buf_print(&sql, "BEGIN IMMEDIATE;%s;%s;PRAGMA user_version = %" PRId64 ";COMMIT",
              migrations[version],
              version + 1 < SCHEMA_VERSION ? STEPS_LEFT : NO_STEPS_LEFT, version + 1);
    buf_add_char(&sql, '\0');
    bool migrated = execute(db, sql.ptr);
    buf_finish(&sql);
    if (migrated)
        sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return migrated;
}

/* A copy is made of what was there before the first step of the schema, not of
 * what a start that was killed has made of it. A new database is brought
 * forward from nothing. */
static bool wants_copy(struct sqlite_db *db, int64_t version)
{
    return version > 0 && version < SCHEMA_VERSION &&
           !sqlite_db_number(db, "SELECT count(*) FROM meta WHERE name = 'steps_left'", 0);
}

enum err sqlite_db_migrate(struct sqlite_db *db, const char *path, struct failure *why)
{
    int64_t version = sqlite_db_number(db, "PRAGMA user_version", SCHEMA_VERSION);
    if (wants_copy(db, version) && sqlite_keep_copy(db, path, version, why))
        return why->code;
    for (; version < SCHEMA_VERSION; version++) {
        if (!migrate_from(db, version))
            return explain_db(why, path, db->handle);
    }
    return OK;
}

/* ---- one process ---- */

enum err sqlite_lock_file(const char *path, int *fd, struct failure *why)
{
    struct buf name = { 0 };
    buf_print(&name, "%s.lock", path);
    buf_add_char(&name, '\0');
    int lock = open(name.ptr, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    int trouble = lock < 0 ? errno : flock(lock, LOCK_EX | LOCK_NB) ? errno : 0;
    if (trouble == EWOULDBLOCK)
        explain(why, ERR_STORE,
                "%s is in use by another runcast process: stop that one first", path);
    else if (trouble)
        explain(why, ERR_STORE, "cannot lock %s: %s", name.ptr, strerror(trouble));
    if (trouble && lock >= 0)
        close(lock);
    buf_finish(&name);
    if (trouble)
        return ERR_STORE;
    *fd = lock;
    return OK;
}
