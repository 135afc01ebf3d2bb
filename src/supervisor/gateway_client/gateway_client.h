/* gateway_client.h - calls from a supervise role to its gateway: HTTP with a worker token.
 *
 *   gateway_call_begin ─► fetch, with the credential and the caller's name ─► done, once
 *
 * If the gateway is unreachable or its response is incomplete, the status is 0. The caller
 * decides whether to retry. Runners and the builder share one client. */
#pragma once

#include "net/client/fetch.h"
#include "net/client/fetcher.h"

struct gateway_client;
struct gateway_call;

typedef void gateway_call_done_fn(struct gateway_call *call);

/* One call, embedded by the caller. Zero values mean the defaults.
 *
 * Everything except the fetch's own members is borrowed only during gateway_call_begin. */
struct gateway_call {
    struct fetch fetch; /* the caller sets method, body, download, answer_max and times */
    const char *path;   /* after /engine/v1/worker-actions, such as "/dequeue" */
    struct slice content_type; /* of the body; absent: application/json */
    /* x-trigger-request-idempotency-key; with it, the request may be sent twice */
    struct slice key;
    struct slice traceparent;
    struct slice runner; /* id of the runner making the call */
    gateway_call_done_fn *done;

    /* The outcome; the response body is valid until done returns. */
    int status; /* 0: no response; the reason is in fetch.why */
    struct slice answer;
};

struct gateway_client_options {
    const struct url *url;
    const struct trust *trust; /* NULL: no https */
    const char *token;
    const char *instance; /* name of this supervisor */
};

/* Copies everything but trust, which must outlive it. */
enum err gateway_client_create(struct loop *loop,
                               const struct gateway_client_options *options,
                               struct gateway_client **gateway_client, struct failure *why);

/* Ends every call with status 0. Calls closed after the last done. */
void gateway_client_close(struct gateway_client *gateway_client, fetcher_closed_fn *closed,
                          void *owner);

/* If fetch_begin rejects the call, returns its error and done is never called. */
enum err gateway_call_begin(struct gateway_client *gateway_client,
                            struct gateway_call *call, struct failure *why);

/* Returns true if a retry makes sense: no response, 429 or a 5xx status. */
bool gateway_call_may_retry(const struct gateway_call *call);

/* Returns "Bearer …", for the socket of notices. */
struct slice gateway_client_credential(const struct gateway_client *gateway_client);
