/* carrier.h - one connection that carries a request after the other; private to client.
 *
 *   opening ─► carrying ─► idle ─► carrying ─► … ─► closing ─► gone
 *
 * It tells what has become of a request, and its owner decides what follows. */
#pragma once

#include "net/client/channel.h"
#include "net/client/job.h"

struct carrier;

struct carrier_ops {
    /* What it carried is off it: the answer is whole (OK), or why not. The connection is idle
     * then, or closes. */
    void (*on_off)(struct carrier *carrier, struct job *job, enum err error,
                   const char *why);
    /* Its memory is the owner's again. */
    void (*on_gone)(struct carrier *carrier);
};

struct carrier {
    struct channel channel;
    struct loop *loop;
    const struct carrier_ops *ops;
    struct fetcher *fetcher;
    struct job *job; /* NULL: idle, or closing */
    bool is_used;    /* has carried a request before this one */
    bool is_sent;    /* all of this one */
    bool is_closing;
    int64_t idle_ms;
    struct deadline deadline;
    struct list link; // fetcher::carriers
};

/* In zeroed memory of the owner's, with the first request. */
void carrier_open(struct carrier *carrier, const struct channel_options *options,
                  const struct carrier_ops *ops, struct job *job);

static inline bool carrier_is_idle(const struct carrier *carrier)
{
    return !carrier->job && !carrier->is_closing;
}

/* The next one; it is idle. */
void carrier_carry(struct carrier *carrier, struct job *job);

/* The request is off it, without on_off, and the connection closes. */
void carrier_close(struct carrier *carrier);

/* A file has given or taken something. */
void carrier_go_on(struct carrier *carrier);
