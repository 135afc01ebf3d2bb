/* sqlite_db.c - opens connections to the database file.
 *
 * Every connection uses WAL mode with synchronous=FULL: a commit returns after its log was
 * synced. There are no automatic checkpoints; the writer begins them. The file is not
 * mapped into memory, because an I/O error in a mapping would be a SIGBUS instead of an
 * error code. */
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
#include "store/sqlite/sqlite_log.h"
#include "store/sqlite/sqlite_rows.h"

enum {
    APPLICATION_ID = 1919115635, /* in the file's header: "rcas" */
    PROGRESS_STEPS = 1000, /* between two checks of the deadline; about 0.1 ms at most */
    WAL_KEPT_BYTES = 64 << 20, /* size to which the log shrinks when it starts again */
};

/* ---- results ---- */

enum store_status sqlite_status(int code)
{
    switch (code) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW: return STORE_OK;
    case SQLITE_INTERRUPT: return STORE_SLOW;
    case SQLITE_FULL:
    case SQLITE_IOERR_SHMSIZE: return STORE_NO_SPACE; /* the index of the log cannot grow */
    default: return STORE_FAILED;
    }
}

enum err sqlite_db_explain(struct failure *why, const char *path, sqlite3 *handle)
{
    int code = sqlite3_errcode(handle) & 0xff;
    if (code == SQLITE_NOTADB)
        return explain(why, ERR_STORE, "%s is not a database of runcast", path);
    if (code == SQLITE_CORRUPT)
        return explain(why, ERR_STORE, "%s is damaged: %s; restore a backup", path,
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

bool sqlite_db_execute(struct sqlite_db *db, const char *sql)
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
    bool whole = sqlite3_step(stmt) == SQLITE_DONE; /* executes its write now */
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

/* Rejects a symbolic link, which SQLite would follow, and removes access by others.
 *
 * A restored copy may be readable by every user, and SQLite gives its log the same
 * permissions. */
static enum err check_file(const char *path, struct failure *why)
{
    struct stat found;
    if (lstat(path, &found))
        return OK;
    if (S_ISLNK(found.st_mode))
        return explain(why, ERR_STORE,
                       "%s is a symbolic link; put the database file there instead", path);
    if (found.st_mode & S_IRWXO && chmod(path, found.st_mode & (mode_t)~S_IRWXO))
        return explain(why, ERR_STORE,
                       "everybody can read %s; as its owner, run chmod o-rwx", path);
    return OK;
}

/* Creates an empty file that only we can read, and syncs its directory. */
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
    return (db->deadline_ns && uv_hrtime() > db->deadline_ns) ||
           (db->read && store_read_is_abandoned(db->read));
}

static int on_committed(void *arg, sqlite3 *handle, const char *name, int pages)
{
    (void)handle;
    (void)name;
    ((struct sqlite_db *)arg)->wal_pages = (unsigned)pages;
    return SQLITE_OK;
}

/* Disables code in the file, which another party may have changed (a modified backup, a
 * data directory of another owner).
 *
 * Our schema has no triggers or views, and none is executed or queried. All virtual tables
 * are removed except those that our own statements use. */
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
        cache /= 4; /* the kernel caches the same pages */
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
        refuse_code(db->handle) && sqlite_db_execute(db, sql.ptr) &&
        sqlite_db_number(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 0);
    buf_finish(&sql);
    if (role == SQLITE_READER)
        sqlite3_progress_handler(db->handle, PROGRESS_STEPS, on_progress, db);
    else
        sqlite3_wal_hook(db->handle, on_committed, db);
    return configured;
}

static enum err explain_development(struct failure *why, const char *path)
{
    return explain(why, ERR_STORE,
                   "%s was made by a development version of runcast; this version cannot "
                   "open it",
                   path);
}

static uint32_t read_number(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Rejects a database of a development version by the header of its file.
 *
 * It reads the header (section 1.3 of SQLite's file format) itself, because SQLite would
 * create files next to it. The process must not have the database open, because closing a
 * descriptor of the file would drop SQLite's locks. */
static enum err refuse_development(const char *path, struct failure *why)
{
    enum { VERSION_AT = 60, APPLICATION_AT = 68, HEADER_BYTES = 72 };
    static const char magic[] = "SQLite format 3";
    unsigned char header[HEADER_BYTES];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return OK; /* opening it will report the reason */
    bool is_ours = pread(fd, header, HEADER_BYTES, 0) == HEADER_BYTES &&
                   !memcmp(header, magic, sizeof(magic)) &&
                   read_number(header + APPLICATION_AT) == APPLICATION_ID;
    close(fd);
    return is_ours && read_number(header + VERSION_AT) < SQLITE_FIRST_SCHEMA
               ? explain_development(why, path)
               : OK;
}

/* Rejects a database that this program cannot open, before writing into it. */
static enum err refuse_foreign(struct sqlite_db *db, const char *path, struct failure *why)
{
    int64_t version = sqlite_db_number(db, "PRAGMA user_version", -1);
    int64_t application = sqlite_db_number(db, "PRAGMA application_id", -1);
    int64_t tables = sqlite_db_number(db, "SELECT count(*) FROM sqlite_schema", -1);

    if (version < 0 || application < 0 || tables < 0)
        return sqlite_db_explain(why, path, db->handle);
    if (tables > 0 && application != APPLICATION_ID)
        return explain(why, ERR_STORE, "%s is the database of another program", path);
    if (tables > 0 && version < SQLITE_FIRST_SCHEMA)
        return explain(
            why, ERR_STORE,
            "%s was made by a development version of runcast; this version cannot "
            "open it",
            path);
    if (version > SQLITE_NEWEST_SCHEMA)
        return explain(why, ERR_STORE,
                       "%s was written by a newer runcast (schema %" PRId64
                       ", this one knows %d); run that version, or restore an older backup",
                       path, version, SQLITE_NEWEST_SCHEMA);
    return OK;
}

enum err sqlite_db_open(struct sqlite_db *db, const struct sqlite_options *options,
                        enum sqlite_role role, struct failure *why)
{
    *db = (struct sqlite_db){ 0 };
    if (create_file(options->path, why))
        return why->code;
    /* Without statistics, allocations take no lock. Works only once, and does no harm
     * later. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    const char *vfs = role == SQLITE_WRITER ? sqlite_log_vfs() : NULL;
    enum err err = sqlite3_open_v2(options->path, &db->handle, flags, vfs)
                       ? sqlite_db_explain(why, options->path, db->handle)
                       : refuse_foreign(db, options->path, why);
    if (!err && !configure(db, options, role))
        err = sqlite_db_explain(why, options->path, db->handle);
    if (err)
        sqlite_db_close(db);
    return err;
}

/* Adds the path as a URI, with escapes. */
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
    if (refuse_development(path, why))
        return why->code;
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
    enum err err =
        open && refuse_code(db->handle) &&
                sqlite_db_execute(db, "PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;"
                                      "PRAGMA cell_size_check = ON;"
                                      "PRAGMA query_only = ON")
            ? refuse_foreign(db, path, why)
            : sqlite_db_explain(why, path, db->handle);
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

/* ---- one process ---- */

enum err sqlite_lock_file(const char *path, int *fd, struct failure *why)
{
    struct buf name = { 0 };
    if (refuse_development(path, why))
        return why->code;
    buf_print(&name, "%s.lock", path);
    buf_add_char(&name, '\0');
    int lock = open(name.ptr, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    int trouble = lock < 0 ? errno : flock(lock, LOCK_EX | LOCK_NB) ? errno : 0;
    if (trouble == EWOULDBLOCK)
        explain(why, ERR_STORE,
                "%s is in use by another runcast process; stop that one first", path);
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
