/* pg_schema.h - makes the tables and functions of a database, and upgrades them. */
#pragma once

#include "store/pg/pg_connect.h"

/* Makes what is not there, and compares the server's timeline with the one that was seen last:
 * another one is another history, unless options->lossless, and gets another epoch. ERR_STORE
 * with the reason, also when the database is for newer programs alone. */
enum err pg_schema_prepare(PGconn *conn, const struct pg_options *options,
                           const struct pg_hello *hello, char epoch[17],
                           struct failure *why);

/* The same in a transaction that the caller ends: of one that is rolled back nothing stays, and
 * no other process prepares the schema before. After a failure it is over. */
enum err pg_schema_begin(PGconn *conn, const struct pg_options *options,
                         const struct pg_hello *hello, char epoch[17], struct failure *why);

/* Takes the steps (SQL of each version after 100, in order; NULL ends them) that the database
 * lacks. The caller holds the lock, in a transaction with the schema on the search path. */
enum err pg_schema_upgrade(PGconn *conn, const char *const *later, struct failure *why);
