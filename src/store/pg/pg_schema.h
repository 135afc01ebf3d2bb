/* pg_schema.h - creates the tables and functions of a database, and upgrades them. */
#pragma once

#include "store/pg/pg_connect.h"

/* Creates whatever is missing, and compares the server with the one last seen.
 *
 * If its timeline has changed (unless options->lossless), or a dump was restored, its
 * history is a different one, and the database gets a new epoch. Returns ERR_STORE with the
 * reason, also if the database requires a newer program. */
enum err pg_schema_prepare(PGconn *conn, const struct pg_options *options,
                           const struct pg_hello *hello, char epoch[17],
                           struct failure *why);

/* Like pg_schema_prepare, in a transaction that the caller ends.
 *
 * A rollback undoes all of it, and no other process prepares the schema before the
 * transaction ends. After a failure it has ended. */
enum err pg_schema_begin(PGconn *conn, const struct pg_options *options,
                         const struct pg_hello *hello, char epoch[17], struct failure *why);

/* Executes the steps that the database lacks.
 *
 * later: SQL of each version after 100, in order, ending with NULL. The caller holds the
 * lock, in a transaction with the schema on the search path. */
enum err pg_schema_upgrade(PGconn *conn, const char *const *later, struct failure *why);
