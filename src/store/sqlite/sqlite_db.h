/* sqlite_db.h - a connection to the database file, and its prepared statements.
 *
 * A connection belongs to one thread at a time. */
#pragma once

#include <sqlite3.h>

#include "runcast/store.h"
#include "store/sqlite/sqlite_sql.h"
#include "store/sqlite/sqlite_store.h"

struct sqlite_db {
    sqlite3 *handle;
    sqlite3_stmt *stmts[SQL_STATEMENT_COUNT]; /* NULL: not prepared yet */
    uint64_t deadline_ns;                     /* of the running read; 0: none */
    const struct store_read *read;            /* runs, and may be abandoned; NULL: none */
    unsigned wal_pages;                       /* in the log after the last commit */
};

enum sqlite_role { SQLITE_WRITER, SQLITE_READER };

enum {
    /* Schema versions (sqlite_schema.h). Development versions had lower numbers; their
     * databases can no longer be opened. */
    SQLITE_FIRST_SCHEMA = 100,
    SQLITE_NEWEST_SCHEMA = 102,
    SQLITE_PAGE_BYTES = 8192, /* of a new database */
    SQLITE_BUSY_MS = 2000,    /* waits for a shell that has the database open, too */
};

/* Opens a connection. Returns ERR_STORE with the reason.
 *
 * db is overwritten, and empty after a failure. It must not move while it is open, because
 * SQLite's hooks point to it. */
enum err sqlite_db_open(struct sqlite_db *db, const struct sqlite_options *options,
                        enum sqlite_role role, struct failure *why);

/* Opens a database for reading only.
 *
 * Nothing is created, upgraded or changed, except that SQLite may leave an empty log next
 * to it. still: no process writes to it meanwhile, and files next to it are ignored; it may
 * be on a read-only file system. db as above. */
enum err sqlite_db_look(struct sqlite_db *db, const char *path, bool still,
                        struct failure *why);

/* Finalizes its statements and closes it. Does nothing if it is not open. */
void sqlite_db_close(struct sqlite_db *db);

/* Returns the statement, reset and without parameters; NULL if it cannot be prepared. */
sqlite3_stmt *sqlite_db_stmt(struct sqlite_db *db, enum sqlite_statement which);

/* Runs a statement without result rows. Returns SQLITE_OK or the extended error. */
int sqlite_db_finish(struct sqlite_db *db, sqlite3_stmt *stmt);
int sqlite_db_run(struct sqlite_db *db, enum sqlite_statement which);

/* Reads the epoch from the only row of SQL_EPOCH or SQL_RENEW_EPOCH. Returns false on
 * failure. */
bool sqlite_db_take_epoch(struct sqlite_db *db, enum sqlite_statement which,
                          char epoch[17]);

/* Runs statements without parameters. Returns false on failure; the handle has the
 * error. */
bool sqlite_db_execute(struct sqlite_db *db, const char *sql);

/* Returns ERR_STORE with the handle's error as the reason. handle may be NULL. */
enum err sqlite_db_explain(struct failure *why, const char *path, sqlite3 *handle);

/* Returns the first column of the first row; fallback if there is none. */
int64_t sqlite_db_number(struct sqlite_db *db, const char *sql, int64_t fallback);

/* Returns true if PRAGMA quick_check finds nothing. */
bool sqlite_db_is_sound(struct sqlite_db *db);

/* Maps a result code (extended) to a status. */
enum store_status sqlite_status(int code);
