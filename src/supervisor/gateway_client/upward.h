/* upward.h - calls from a supervise role to its gateway: HTTP with a worker token.
 *
 *   upward_begin ─► fetch, with the credential and the caller's name ─► done, once
 *
 * If the gateway is unreachable or its response is incomplete, the status is 0. The caller
 * decides whether to retry. Runners and the builder share one struct upward. */
#pragma once

#include "net/client/fetch.h"
#include "net/client/fetcher.h"

struct upward;
struct upward_call;

typedef void upward_done_fn(struct upward_call *call);

/* One call, embedded by the caller. Zero values mean the defaults.
 *
 * Everything except the fetch's own members is borrowed only during upward_begin. */
struct upward_call {
    struct fetch fetch; /* the caller sets method, body, download, answer_max and times */
    const char *path;   /* after /engine/v1/worker-actions, such as "/dequeue" */
    struct slice content_type; /* of the body; absent: application/json */
    /* x-trigger-request-idempotency-key; with it, the request may be sent twice */
    struct slice key;
    struct slice traceparent;
    struct slice runner; /* id of the runner that makes the call */
    upward_done_fn *done;

    /* The outcome; the response body is valid until done returns. */
    int status; /* 0: no response; the reason is in fetch.why */
    struct slice answer;
};

struct upward_options {
    const struct url *url;
    const struct trust *trust; /* NULL: no https */
    const char *token;
    const char *instance; /* name of this supervisor */
};

/* Copies everything but trust, which must outlive it. */
enum err upward_create(struct loop *loop, const struct upward_options *options,
                       struct upward **upward, struct failure *why);

/* Ends every call with status 0. Calls closed after the last done. */
void upward_close(struct upward *upward, fetcher_closed_fn *closed, void *owner);

/* If fetch_begin rejects the call, returns its error and done is never called. */
enum err upward_begin(struct upward *upward, struct upward_call *call, struct failure *why);

/* Returns true if a retry makes sense: no response, 429 or a 5xx status. */
bool upward_is_worth_another(const struct upward_call *call);

/* Returns "Bearer …", for the socket of notices. */
struct slice upward_credential(const struct upward *upward);
