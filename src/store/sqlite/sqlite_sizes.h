/* sqlite_sizes.h - how many bytes each table counts as stored.
 *
 *   table        counts (bytes), in the environment of the row       decreases when
 *   run          STORED_RUN + its texts + twice its tags             retention removes it
 *   run_tag      in run: the tags count twice, rows in STORED_RUN    with its run
 *   run_payload  body and type; the row in STORED_RUN                with its run
 *   run_metadata body and seed; the row in STORED_RUN                with its run
 *   run_output   body, type and error; the row in STORED_RUN         with its run
 *   document     STORED_ROW + twice the name + the body: batches,    overwritten, removed:
 *                queues, workers, waitpoints, schedules, variables,  traces with their run,
 *                packets, bulk actions, traces, current versions     the others see below
 *   claim        STORED_ROW + twice the key: idempotency keys,       it has expired and was
 *                request ids, one-time tokens                        removed, or released
 *   task_number  STORED_ROW + the task's name, once it has counted   with its environment:
 *                                                                    numbers must continue
 *   environment  nothing: one row per environment                    -
 *   meta         nothing: a few rows                                 -
 *
 * Documents of ENV_INSTALLATION (organizations, projects, users, environments, keys,
 * tokens) count there, and no quota limits them, because operators create them. The number
 * of a project's branches is limited, including archived ones that retention keeps
 * (api/projects/branches.c). Retention removes batches, packets and waitpoints. An
 * environment's workers, bulk actions, schedules, variables and configured queues are also
 * limited in number, and it has one current version. Chunks of streams are only in memory
 * (--stream-memory); the list of their keys is one of a run's texts.
 *
 * The fixed parts stand for numbers, keys and index entries. The sum is written in the same
 * transaction as the rows (environment.stored), so that it always matches them. The size of
 * an overwritten row is read right before. */
#pragma once

#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_sql.h"

/* Adds up the first column of a statement that reads or removes rows, and counts them.
 *
 * Like the next functions it returns an SQLite code, SQLITE_OK on success. */
int sqlite_add_sizes(struct sqlite_db *db, sqlite3_stmt *stmt, int64_t *bytes,
                     unsigned *rows);

/* Sets *more to the growth of a packet that SQL_PUT_PAYLOAD, _METADATA or _OUTPUT writes.
 *
 * Call it before the write. */
int sqlite_grow_packet(struct sqlite_db *db, const struct change *change,
                       enum sqlite_statement which, int64_t *more);

/* The same for a run that will be updated, without its packets and tags. */
int sqlite_grow_run(struct sqlite_db *db, const struct change *change, int64_t *more);

/* The same for a document that will be written or removed. */
int sqlite_grow_document(struct sqlite_db *db, const struct change *change, int64_t *more);
