/* sqlite_look.h - reads and copies a database as it is at one moment, while others write.
 *
 *   open ─► documents, facts, copy, check ─► close        all as of the moment of open
 *
 * It needs neither a lock nor a store, so it works with and without a running gateway.
 * While it is open, the database's log cannot restart and therefore grows: close it soon.
 * All functions block. */
#pragma once

#include <signal.h>

#include "runcast/store.h"

struct sqlite_db;
struct sqlite_look;

/* still: see sqlite_db_look; for a copy that no process writes to.
 *
 * Returns ERR_STORE with the reason: not a database, written by a newer runcast, or
 * damaged. */
enum err sqlite_look_open(const char *path, bool still, struct sqlite_look **look,
                          struct failure *why);
/* Ignores NULL. */
void sqlite_look_close(struct sqlite_look *look);

/* The first returns its connection, for other queries; the second explains why one
 * failed. */
struct sqlite_db *sqlite_look_db(struct sqlite_look *look);
enum err sqlite_look_explain(struct sqlite_look *look, struct failure *why);

/* The path it was opened by, its schema version, and its epoch. */
const char *sqlite_look_path(const struct sqlite_look *look);
int64_t sqlite_look_schema(const struct sqlite_look *look);
const char *sqlite_look_epoch(const struct sqlite_look *look);

/* Calls take with each document of the kind, borrowed, until it returns an error.
 *
 * Returns that error, or ERR_STORE with the reason if the database cannot be read. */
typedef enum err sqlite_take_fn(void *owner, const struct document *document);
enum err sqlite_look_documents(struct sqlite_look *look, enum document_kind kind,
                               sqlite_take_fn *take, void *owner, struct failure *why);

/* Copies the database into a new file that only we can read, and syncs it.
 *
 * It is also synced in parts as it grows, so that no commit of a gateway waits for all of
 * it. Returns ERR_CANCELED if *stopped became true, or ERR_STORE with the reason. The
 * caller removes an incomplete file. */
enum err sqlite_look_copy(struct sqlite_look *look, const char *path,
                          const volatile sig_atomic_t *stopped, struct failure *why);

/* Checks for damage, and calls found with a sentence for each finding.
 *
 * Returns ERR_STORE with the reason if it cannot continue. */
typedef void sqlite_found_fn(void *owner, const char *text);
enum err sqlite_look_check(struct sqlite_look *look, sqlite_found_fn *found, void *owner,
                           struct failure *why);

/* Gives a copy a new epoch, whatever its schema version. No process may have it open.
 *
 * When this returns, all of it is in one file and synced. */
enum err sqlite_look_renew_epoch(const char *path, char epoch[17], struct failure *why);
