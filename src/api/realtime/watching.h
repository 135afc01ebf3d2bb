/* watching.h - live lists and counts of runs.v1: what clients say of them becomes a filter that an
 * environment watches. */
#pragma once

#include "api/request/call.h"
#include "core/live/watch.h"
#include "core/wire/wire.h"

/* The filter of a watch, a reference of the caller's. ERR_INVALID: it is not well-formed;
 * ERR_FORBIDDEN: the token may not list these runs. */
enum err watching_filter(const struct identity *identity, const struct wire_message *watch,
                         enum vocabulary vocabulary, int64_t now_ms,
                         struct watch_filter **filter, struct failure *why);

/* The same of a call's query, where it has the parameters of a list. */
enum err watching_query(struct api_call *call, enum vocabulary vocabulary,
                        struct watch_filter **filter);

/* Writes why watch_open has refused a filter of this cost. */
void watching_explain_limit(struct watch_cost cost, struct failure *why);

/* The filter of the counts beside a subscription. */
struct watch_filter *watching_counts(const struct filter *filter);
