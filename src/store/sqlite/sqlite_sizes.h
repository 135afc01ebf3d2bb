/* sqlite_sizes.h - what counts as stored of each table, and the sizes that are asked for.
 *
 *   table        counts (bytes), in the environment of the row       goes down when
 *   run          STORED_RUN + its texts + twice its tags             retention removes it
 *   run_tag      in run: the tags count twice, rows in STORED_RUN    with its run
 *   run_payload  body and type; the row in STORED_RUN                with its run
 *   run_metadata body and seed; the row in STORED_RUN                with its run
 *   run_output   body, type and error; the row in STORED_RUN         with its run
 *   document     STORED_ROW + twice the name + the body: batches,    written over or removed:
 *                queues, workers, waitpoints, schedules, variables,  traces with their run,
 *                packets, bulk actions, traces, current versions     the others see below
 *   claim        STORED_ROW + twice the key: idempotency keys,       it was swept after its
 *                request ids, one-time tokens                        end, or released
 *   task_number  STORED_ROW + the task's name, once it has counted   with its environment:
 *                                                                    else numbers go on
 *   environment  nothing: one row for an environment                 -
 *   meta         nothing: a few rows                                 -
 *
 * Documents of ENV_INSTALLATION (organizations, projects, users, environments, keys, tokens)
 * count there, and no quota asks: operators make them, and of branches a project has a
 * limited number, archived ones counted while retention keeps them
 * (api/projects/branches.c). Batches, packets and waitpoints go by retention; of workers,
 * bulk actions, schedules, variables and configured queues an environment has a limited
 * number, too, and one current version. Chunks of streams are only in memory
 * (--stream-memory); a run's list of their keys is one of its texts.
 *
 * The fixed parts stand for numbers, keys and entries in indexes. The sum is written in the
 * transaction that writes the rows (environment.stored), so that it is never another than
 * theirs; what a row counted before it is written over is asked for right before. */
#pragma once

#include "store/sqlite/sqlite_db.h"
#include "store/sqlite/sqlite_sql.h"

/* Adds up the first column of a statement that reads or removes rows, and counts them.
 * Like the next two it returns a code of SQLite, SQLITE_OK if all went well. */
int sqlite_add_sizes(struct sqlite_db *db, sqlite3_stmt *stmt, int64_t *bytes,
                     unsigned *rows);

/* How many bytes more the packet that SQL_PUT_PAYLOAD, _METADATA or _OUTPUT is about to
 * write has than what is there before it. */
int sqlite_grow_packet(struct sqlite_db *db, const struct change *change,
                       enum sqlite_statement which, int64_t *more);

/* Of a run that is about to be updated, without its packets and tags. */
int sqlite_grow_run(struct sqlite_db *db, const struct change *change, int64_t *more);

/* Of a document that is about to be written or removed. */
int sqlite_grow_document(struct sqlite_db *db, const struct change *change, int64_t *more);
