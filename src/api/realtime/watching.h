/* watching.h - reads requests for live lists and counts of runs.v1 into queries. */
#pragma once

#include "api/request/call.h"
#include "core/live/watch.h"
#include "core/wire/wire.h"

/* Reads the query of a watch message; the caller owns the reference. Returns ERR_INVALID if
 * the filter is malformed, ERR_FORBIDDEN if the token may not list these runs. */
enum err watching_read(const struct identity *identity, const struct wire_message *watch,
                       enum vocabulary vocabulary, int64_t now_ms, struct query **query,
                       struct failure *why);

/* The same for a call with the query parameters of a list. */
enum err watching_query(struct api_call *call, enum vocabulary vocabulary,
                        struct query **query);

/* Explains why watch_open has refused a query of this cost. */
void watching_explain_limit(struct query_cost cost, struct failure *why);
