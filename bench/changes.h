/* changes.h - sends changes to runs at fixed instants (open loop), through the public API.
 *
 * Every change has an instant at which it should be sent, start + k * interval, which does
 * not move when the server or the bench is late. The change carries this instant in its
 * metadata ({"n": nanoseconds}), so a client that receives it knows its age. A change is a
 * PUT of a run's metadata; or a burst of changes is one batch of new runs; or, if the
 * server is a peer without runs, a change is a message that a client publishes.
 *
 * The cost of a frame is a difference: a change with subscribers minus a change without.
 * With --interleave both are measured in turn, one burst each. This is for topics with few
 * subscribers, where a change costs as much as several frames:
 *
 *   burst of runs with subscribers ── burst of runs without ── burst of runs with … */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "fill.h"
#include "histogram.h"
#include "http_client.h"

/* Server CPU of bursts during which no other burst was in progress. */
struct burst_cost {
    int64_t cpu_ns;
    uint64_t bursts;
};

struct changes {
    struct http_client client;
    const struct options *options;
    const struct fill *fill;         /* the runs to change */
    const struct fill *unheard_fill; /* runs without subscribers; NULL: none */
    /* of a peer: the client that publishes; NULL: changes are requests */
    struct client *publisher;
    bool by_batch;
    size_t burst;

    int64_t start_ns, interval_ns; /* between bursts */
    uint64_t wanted;  /* number of changes; the other counters count changes too */
    uint64_t allowed; /* allowed to be sent so far; changes_begin allows as many as
                       * wanted */
    uint64_t sent, acked, failed;
    uint64_t published;               /* messages of the publisher, in total */
    uint32_t *acked_of;               /* by run of fill */
    struct burst_cost heard, unheard; /* with unheard_fill */
    int64_t burst_cpu_ns;     /* server's CPU when the last burst began; 0: it overlapped */
    struct buf failure;       /* the first error response, status and body */
    struct histogram latency; /* from the intended instant to the response */
};

/* Starts with connections but without changes. Borrows fill and options. */
void changes_init(struct changes *changes, struct poller *poller,
                  const struct options *options, const struct fill *fill);
void changes_finish(struct changes *changes);

/* Begins to send bursts at this rate, until there were `wanted` changes. Resets the
 * counters. */
void changes_begin(struct changes *changes, double bursts_a_second, uint64_t wanted);

/* Sends the changes that are due. Returns the time by which to call it again. */
int64_t changes_step(struct changes *changes);

/* Returns true if everything was sent and has its response. */
bool changes_done(const struct changes *changes);

/* Reads each run's metadata from the server: the change applied last, which need not be the
 * one sent last. */
void changes_read_newest(const struct changes *changes, const struct options *options,
                         int64_t *n_of);
