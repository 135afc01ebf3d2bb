/* watching.h - live lists and counts of runs.v1: what clients say of them becomes a query that an
 * environment watches. */
#pragma once

#include "api/request/call.h"
#include "core/live/watch.h"
#include "core/wire/wire.h"

/* The query of a watch, a reference of the caller's. ERR_INVALID: it is not well-formed;
 * ERR_FORBIDDEN: the token may not list these runs. */
enum err watching_read(const struct identity *identity, const struct wire_message *watch,
                       enum vocabulary vocabulary, int64_t now_ms, struct query **query,
                       struct failure *why);

/* The same of a call's query, where it has the parameters of a list. */
enum err watching_query(struct api_call *call, enum vocabulary vocabulary,
                        struct query **query);

/* Writes why watch_open has refused a query of this cost. */
void watching_explain_limit(struct query_cost cost, struct failure *why);
