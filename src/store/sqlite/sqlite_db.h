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
    uint64_t deadline_ns;                     /* of the read that runs; 0: none */
    unsigned wal_pages;                       /* in the log after the last commit */
};

enum sqlite_role { SQLITE_WRITER, SQLITE_READER };

enum {
    /* Versions of the schema (sqlite_schema.h). Development versions had lower numbers; nothing
     * opens their databases any more. */
    SQLITE_FIRST_SCHEMA = 100,
    SQLITE_NEWEST_SCHEMA = 100,
    SQLITE_PAGE_BYTES = 8192, /* of a new database */
    SQLITE_BUSY_MS = 2000,    /* for a shell that has the database open beside us */
};

/* ERR_STORE with the reason. db holds nothing before, and nothing after a failure. It must
 * stay where it is: SQLite's hooks point at it. */
enum err sqlite_db_open(struct sqlite_db *db, const struct sqlite_options *options,
                        enum sqlite_role role, struct failure *why);

/* Opens a database to be read alone: nothing is made, brought forward or changed, though SQLite
 * may leave an empty log beside it. still: nobody writes into it meanwhile, and what is beside it
 * is not looked at; it may lie where nothing can be written. db as above. */
enum err sqlite_db_look(struct sqlite_db *db, const char *path, bool still,
                        struct failure *why);

/* Finalizes its statements; harmless when it is not open. */
void sqlite_db_close(struct sqlite_db *db);

/* The statement, reset and without parameters; NULL when it cannot be prepared. */
sqlite3_stmt *sqlite_db_stmt(struct sqlite_db *db, enum sqlite_statement which);

/* Runs a statement that returns no rows: SQLITE_OK, or the extended error. */
int sqlite_db_finish(struct sqlite_db *db, sqlite3_stmt *stmt);
int sqlite_db_run(struct sqlite_db *db, enum sqlite_statement which);

/* Takes the epoch that the statement's only row says: of SQL_EPOCH or SQL_RENEW_EPOCH. */
bool sqlite_db_take_epoch(struct sqlite_db *db, enum sqlite_statement which,
                          char epoch[17]);

/* Runs statements that take no parameters; false with SQLite's error in the handle. */
bool sqlite_db_execute(struct sqlite_db *db, const char *sql);

/* ERR_STORE with SQLite's error of the handle, which may be NULL, as a reason. */
enum err sqlite_db_explain(struct failure *why, const char *path, sqlite3 *handle);

/* The first column of the first row; fallback when there is none. */
int64_t sqlite_db_number(struct sqlite_db *db, const char *sql, int64_t fallback);

/* True when PRAGMA quick_check finds nothing. */
bool sqlite_db_is_sound(struct sqlite_db *db);

/* What an (extended) result code means to a caller. */
enum store_status sqlite_status(int code);
