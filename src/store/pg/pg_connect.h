/* pg_connect.h - a connection by blocking calls: at a start, and on a worker thread. */
#pragma once

#include <libpq-fe.h>

#include "store/pg/pg_group.h"
#include "store/pg/pg_store.h"

/* What a server says of itself when it is met. */
struct pg_hello {
    struct pg_types types; /* zeros as long as there is no schema */
    char timeline[9];
};

/* NULL with the reason. Names are looked up, TLS and passwords are spoken: all of that blocks,
 * for a few seconds at most for each host. */
PGconn *pg_connect(const struct pg_options *options, struct pg_hello *hello,
                   struct failure *why);

/* Asks the server once more. ERR_STORE with the reason. */
enum err pg_hello(PGconn *conn, const struct pg_options *options, struct pg_hello *hello,
                  struct failure *why);

/* Runs a statement, with its values as texts, if it has any. NULL with the reason. */
PGresult *pg_run(PGconn *conn, const char *sql, int count, const char *const *values,
                 struct failure *why);

/* The first value of the first row; fallback when there is none, or it fails. */
int64_t pg_run_number(PGconn *conn, const char *sql, int64_t fallback);

/* What the server or libpq says, as one line. */
void pg_reason(char out[256], const char *message);

const char *pg_schema_name(const struct pg_options *options);
