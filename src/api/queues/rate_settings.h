/* rate_settings.h - rates of queues and concurrency limits in requests, responses, documents.
 *
 * This is an extension: the official SDKs neither set nor read rates.
 *
 *   request    {"total": {"starts": 10, "period": "1m"}, "perKey": null}
 *   response   "rate": {"perKey": null, "total": {"starts": 10, "period": "1m",
 *                       "available": 0, "nextAt": "2026-11-29T12:00:06.000Z"}}
 *   document   "totalRate": {"starts": 10, "periodMs": 60000} */
#pragma once

#include "api/request/call.h"
#include "core/queues/queue_rates.h"

/* A change of rates. A rate with starts 0 is taken away. */
struct rate_change {
    bool sets_total, sets_key;
    struct rate total, key;
};

/* Reads the members total and perKey of a request. */
enum err rate_change_read(struct api_call *call, struct slice body,
                          struct rate_change *change);
void rate_change_apply(const struct rate_change *change, struct queue_settings *settings);

/* Appends the member "rate" to a response, unless there is no rate. */
void rate_settings_show(struct buf *out, const struct environment *env, bool is_limit,
                        struct slice name);

/* The same for one key. */
void rate_settings_show_key(struct buf *out, const struct environment *env, bool is_limit,
                            struct slice name, struct slice key);

/* Appends the members of a document, each with a comma before it. */
void rate_settings_write(struct buf *out, const struct queue_settings *settings);

/* Returns false if the document is damaged. */
bool rate_settings_read(struct slice body, struct queue_settings *settings);

static inline bool rate_settings_has(const struct queue_settings *settings)
{
    return settings->total_rate.starts || settings->key_rate.starts;
}
