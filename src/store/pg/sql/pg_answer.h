/* pg_answer.h - what the server answers to a read becomes what was asked for.
 *
 * The statements are those of pg_query.h. On a worker thread: nobody else has the request then. */
#pragma once

#include <libpq-fe.h>

#include "runcast/store.h"

void pg_answer_load(struct store_load *req, const PGresult *answer);
void pg_answer_piece(struct store_piece *req, const PGresult *answer);
void pg_answer_list(struct store_list *req, const PGresult *answer);
void pg_answer_count(struct store_count *req, const PGresult *answer);
void pg_answer_walk(struct store_walk *req, const PGresult *answer);
void pg_answer_scan(struct store_scan *req, const PGresult *answer);
