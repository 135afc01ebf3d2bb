/* changes.h - an open-loop source of changes to runs, through the public API.
 *
 * Every change has an instant at which it is meant to be sent, start + k * interval, that
 * does not move when the server or the bench is late. The change carries this instant in
 * its metadata ({"n": nanoseconds}), so whoever sees it knows how old it is. Either a
 * change is a PUT of a run's metadata, or a burst of them is one batch of new runs, or, where
 * the server is a peer that knows no runs, it is a message that a client publishes.
 *
 * What a frame costs the server is a difference: a change that is heard less one that is not. With
 * --interleave both are measured in turn, a burst each, for topics of few subscribers, where a
 * change costs as much as several frames:
 *
 *   burst of runs with subscribers ── burst of unheard runs ── burst of runs with … */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "fill.h"
#include "histogram.h"
#include "http_client.h"

/* What bursts cost the server, of those that nothing else was under way beside. */
struct burst_cost {
    int64_t cpu_ns;
    uint64_t bursts;
};

struct changes {
    struct http_client client;
    const struct options *options;
    const struct fill *fill;         /* the runs to change */
    const struct fill *unheard_fill; /* every second burst's; NULL: all are heard */
    struct client
        *publisher; /* of a peer: by whom they are told. NULL: they are requests */
    bool by_batch;
    size_t burst;

    int64_t start_ns, interval_ns; /* between bursts */
    uint64_t wanted;               /* changes; the others count changes too */
    uint64_t allowed; /* to be sent so far, of changes_begin all that are wanted */
    uint64_t sent, acked, failed;
    uint64_t published;               /* messages of the publisher, from the beginning */
    uint32_t *acked_of;               /* by run of fill */
    struct burst_cost heard, unheard; /* where unheard_fill is */
    int64_t burst_cpu_ns;             /* server's, as the last burst began; 0: overlapped */
    struct buf failure;               /* the first refusal, status and body */
    struct histogram latency;         /* from the intended instant to the reply */
};

/* Starts with connections but without changes. Fill and options are borrowed. */
void changes_init(struct changes *changes, struct poller *poller,
                  const struct options *options, const struct fill *fill);
void changes_finish(struct changes *changes);

/* From now on bursts a second until there were so many changes; the counters restart. */
void changes_begin(struct changes *changes, double bursts_a_second, uint64_t wanted);

/* Sends what is due. Returns when to call again at the latest. */
int64_t changes_step(struct changes *changes);

/* Everything was sent and answered. */
bool changes_done(const struct changes *changes);

/* What the metadata of each run says now, asked of the server: the change that came last,
 * which need not be the one that was sent last. */
void changes_read_newest(const struct changes *changes, const struct options *options,
                         int64_t *n_of);
