/* pg_answer.h - what the server answers to a read becomes what was asked for.
 *
 * The statements are those of pg_query.h. On a worker thread: nobody else has the request then. */
#pragma once

#include <libpq-fe.h>

#include "runcast/store.h"

/* Returns the status of the read. */
enum store_status pg_answer_read(struct store_read *read, const PGresult *answer);
