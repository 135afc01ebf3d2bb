/* sqlite_look.h - a database as it is at one moment: read and copied, whoever writes into it.
 *
 *   open ─► documents, facts, copy, check ─► close        all of it of the moment of open
 *
 * It needs no lock and no store, so that it works beside a gateway and without one. While it is
 * open the log of the database does not start again: whoever has it open for long lets the
 * log grow. All of this blocks. */
#pragma once

#include <signal.h>

#include "runcast/store.h"

struct sqlite_db;
struct sqlite_look;

/* still: as in sqlite_db.h, for a copy that nobody writes into. ERR_STORE with the reason:
 * not a database, made by a newer runcast, damaged. */
enum err sqlite_look_open(const char *path, bool still, struct sqlite_look **look,
                          struct failure *why);
/* NULL is fine. */
void sqlite_look_close(struct sqlite_look *look);

/* Its connection, for what else asks it; and why that could not be read. */
struct sqlite_db *sqlite_look_db(struct sqlite_look *look);
enum err sqlite_look_explain(struct sqlite_look *look, struct failure *why);

/* The path that it was opened by, and the number of its schema. */
const char *sqlite_look_path(const struct sqlite_look *look);
int64_t sqlite_look_schema(const struct sqlite_look *look);
const char *sqlite_look_epoch(const struct sqlite_look *look);

/* Calls take with each document of the kind, borrowed; what is not OK ends it. ERR_STORE with
 * the reason: the database cannot be read. */
typedef enum err sqlite_take_fn(void *owner, const struct document *document);
enum err sqlite_look_documents(struct sqlite_look *look, enum document_kind kind,
                               sqlite_take_fn *take, void *owner, struct failure *why);

/* Writes all of it into a new file, which only we can read, and has that synced when it returns;
 * what was written is synced on the way, too, so that nobody's commit waits for all of it.
 * ERR_CANCELED: *stopped has become true; ERR_STORE with the reason. What is there of the file
 * then is the caller's to remove. */
enum err sqlite_look_copy(struct sqlite_look *look, const char *path,
                          const volatile sig_atomic_t *stopped, struct failure *why);

/* Looks for damage: found is called for each finding, with a sentence. ERR_STORE with the
 * reason: it could not look any further. */
typedef void sqlite_found_fn(void *owner, const char *text);
enum err sqlite_look_check(struct sqlite_look *look, sqlite_found_fn *found, void *owner,
                           struct failure *why);

/* Gives a copy that nobody has open another epoch, whatever its schema; all of it is in the one
 * file, and synced, when it returns. */
enum err sqlite_look_renew_epoch(const char *path, char epoch[17], struct failure *why);
