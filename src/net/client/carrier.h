/* carrier.h - one connection that carries one request after the other; private to client.
 *
 *   opening ─► carrying ─► idle ─► carrying ─► … ─► closing ─► gone
 *
 * It reports the outcome of each request, and its owner decides what follows. */
#pragma once

#include "net/client/channel.h"
#include "net/client/job.h"

struct carrier;

struct carrier_ops {
    /* Called when the request has left the connection. OK: the response is complete;
     * otherwise the error. The connection is then idle, or closes. */
    void (*on_off)(struct carrier *carrier, struct job *job, enum err error,
                   const char *why);
    /* The connection is closed; its memory is the owner's again. */
    void (*on_gone)(struct carrier *carrier);
};

struct carrier {
    struct channel channel;
    struct loop *loop;
    const struct carrier_ops *ops;
    struct fetcher *fetcher;
    struct job *job; /* NULL: idle, or closing */
    bool is_used;    /* it has carried an earlier request */
    bool is_sent;    /* the whole present request was sent */
    bool is_closing;
    int64_t idle_ms;
    struct deadline deadline;
    struct list link; // fetcher::carriers
};

/* Opens a connection in zeroed memory of the owner, with the first request. */
void carrier_open(struct carrier *carrier, const struct channel_options *options,
                  const struct carrier_ops *ops, struct job *job);

static inline bool carrier_is_idle(const struct carrier *carrier)
{
    return !carrier->job && !carrier->is_closing;
}

/* Sends the next request; the connection must be idle. */
void carrier_carry(struct carrier *carrier, struct job *job);

/* Takes the request off, without on_off, and closes the connection. */
void carrier_close(struct carrier *carrier);

/* Continues after a file was read or written. */
void carrier_go_on(struct carrier *carrier);
