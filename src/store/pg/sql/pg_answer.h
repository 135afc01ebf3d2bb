/* pg_answer.h - decodes the result of a read (pg_query.h) into its request.
 *
 * Runs on a worker thread, while no other thread uses the request. */
#pragma once

#include <libpq-fe.h>

#include "runcast/store.h"

/* Returns the status of the read. */
enum store_status pg_answer_read(struct store_read *read, const PGresult *answer);
