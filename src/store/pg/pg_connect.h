/* pg_connect.h - opens a connection to PostgreSQL with blocking calls.
 *
 * For use at startup, or on a worker thread. */
#pragma once

#include <libpq-fe.h>

#include "base/work.h"
#include "store/pg/pg_group.h"
#include "store/pg/pg_store.h"

/* Facts about the server, which each new connection requests. */
struct pg_hello {
    struct pg_types types; /* zeros while there is no schema */
    char timeline[9];      /* of the server's log; changes with a promotion */
};

enum { PG_HELLO_MS = 5000, PG_REASON_MAX = 256 };

/* Returns NULL with the reason on failure.
 *
 * libpq blocks while it resolves names, and does TLS and authentication: for
 * connect_timeout per address, which is 5 s unless the connection string sets another. The
 * server must then return a struct pg_hello. With a job, that takes PG_HELLO_MS at most, and
 * ends when the job is stopped. At the start, without a job (NULL), it may take its time, as
 * the statements do that follow. */
PGconn *pg_connect(const struct pg_options *options, const struct work *work,
                   struct pg_hello *hello, struct failure *why);

/* Asks the server again, without a limit. Returns ERR_STORE with the reason. */
enum err pg_hello(PGconn *conn, const struct pg_options *options, struct pg_hello *hello,
                  struct failure *why);

/* Returns true if the server is not of this timeline, so that it may lack changes; false if
 * failovers are lossless. */
bool pg_is_another_history(const struct pg_options *options, const char *timeline,
                           const struct pg_hello *hello);

/* Runs a statement, with its values, if any, as texts. Returns NULL with the reason. */
PGresult *pg_run(PGconn *conn, const char *sql, int count, const char *const *values,
                 struct failure *why);

/* Returns the first value of the first row; fallback if there is none or it fails. */
int64_t pg_run_number(PGconn *conn, const char *sql, int64_t fallback);

/* Copies an error message from the server or libpq as one line. Lines of it are separated by
 * semicolons. Those with libpq's advice, which begin with a tab, are left out. Otherwise they
 * would push out the reasons of the later ones of several servers. */
void pg_reason(char out[PG_REASON_MAX], const char *message);

const char *pg_schema_name(const struct pg_options *options);
