/* upward.h - the calls of a supervise role to its gateway: HTTP with the token of a worker.
 *
 *   upward_begin ─► fetch, with the credential and who asks ─► done, once
 *
 * A gateway that is away, or answers with nothing, has status 0: whoever asks decides whether
 * to ask again. Supervisor and builder share this. */
#pragma once

#include "net/client/fetch.h"
#include "net/client/fetcher.h"

struct upward;
struct upward_call;

typedef void upward_done_fn(struct upward_call *call);

/* Embedded by whoever asks; zero values mean the defaults. All but the fetch's own is borrowed
 * for the call of upward_begin. */
struct upward_call {
    struct fetch fetch; /* method, body, download, answer_max and times are the caller's */
    const char *path;   /* behind /engine/v1/worker-actions: "/dequeue" */
    struct slice content_type; /* of the body; absent: application/json */
    struct slice key; /* x-trigger-request-idempotency-key; then it may be sent twice */
    struct slice traceparent;
    struct slice runner; /* the runner that asks */
    upward_done_fn *done;

    /* The outcome, for done; the answer is there until done returns. */
    int status; /* 0: the gateway could not be asked, and fetch.why says why */
    struct slice answer;
};

struct upward_options {
    const struct url *url;
    const struct trust *trust; /* NULL: no https */
    const char *token;
    const char *instance; /* this supervisor's name */
};

/* Copies all but trust, which outlives it. */
enum err upward_create(struct loop *loop, const struct upward_options *options,
                       struct upward **upward, struct failure *why);

/* Every call ends with status 0; closed is called when all have been told. */
void upward_close(struct upward *upward, fetcher_closed_fn *closed, void *owner);

/* Refused as fetch_begin refuses: then done never comes. */
enum err upward_begin(struct upward *upward, struct upward_call *call, struct failure *why);

/* A call that ended so may be asked again: the gateway was away, or has no time. */
bool upward_is_worth_another(const struct upward_call *call);

/* "Bearer …", for the socket of notices. */
struct slice upward_credential(const struct upward *upward);
