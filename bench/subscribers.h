/* subscribers.h - N subscribing connections, and a record of the rows that reached them.
 *
 * For every connection and run of its subscription, the newest version seen is kept. If a
 * version jumps by k + 1, k states were conflated. A final version that never arrived is a
 * loss. Long polls have no versions: for them, the number of the last change is kept. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client.h"
#include "fill.h"
#include "histogram.h"
#include "report.h"
#include "seen.h"

enum { SUBSCRIBERS_MAX = 19000 };

enum topic { TOPIC_TAG, TOPIC_RUN, TOPIC_BATCH, TOPIC_ALL };

struct subscriber {
    struct client client;
    bool live;
    uint64_t rows; /* since subscribers_measure */
};

struct subscribers {
    struct client_group group;
    struct client_handler handler;
    const struct options *options;
    const struct fill *fill;
    struct report *report;
    enum topic topic;
    struct seen seen;
    struct tracked_run *runs; /* those of fill */
    size_t run_count;
    struct subscriber *all;
    size_t count;
    size_t begun, live; /* how many connections have reached this stage */
    uint32_t *versions; /* newest seen: count x run_count, a connection's together; of
                         * long polls the number of the last change, from 1 */
    uint32_t *base;     /* by run: newest seen on any connection before the measurement */

    uint64_t frames, rows, conflated, closed; /* since subscribers_measure */
    uint64_t idle;                            /* long polls that returned no row */
    uint64_t payload_bytes;
    uint64_t snapshot_rows;
    int64_t since_ns; /* rows with an older n are not measured */
    int64_t last_ns;  /* when the last row arrived, or waiting for rows began */
    struct histogram latency;
    struct histogram last; /* from a change to the last subscriber that received it */
    int64_t start_ns, interval_ns; /* when changes should be made */
    size_t burst, bursts;          /* changes at one instant; number of instants */
    uint64_t *arrived;             /* by instant: rows received by all together */
    bool done;                     /* the floor has sent everything */
    int64_t floor_frames, floor_cpu_ns;
};

/* Returns the topic of that name; exits the program if the name is unknown. */
enum topic subscribers_topic(const char *name);

/* Ends the program if there are too many subscribers, or pairs of subscriber and run. */
void subscribers_check(const struct options *options, int64_t runs);

/* Borrows fill, options and report. */
void subscribers_init(struct subscribers *subs, struct poller *poller,
                      const struct options *options, const struct fill *fill,
                      struct report *report);
void subscribers_finish(struct subscribers *subs);

/* Connects and subscribes all of them; returns when all are live. */
void subscribers_connect(struct subscribers *subs);

/* Resets the counters. */
void subscribers_measure(struct subscribers *subs);

/* Announces the changes, so that the arrival at the last subscriber can be measured. Call
 * once. */
void subscribers_expect(struct subscribers *subs, int64_t start_ns, int64_t interval_ns,
                        size_t bursts);

/* Returns the number of pairs of connection and run without the final state, if each run
 * has changed changed_of[run] times since subscribers_measure. */
uint64_t subscribers_lost(const struct subscribers *subs, const uint32_t *changed_of);

/* The same without versions: n_of[run] is the current value in the run's metadata. */
uint64_t subscribers_outdated(const struct subscribers *subs, const int64_t *n_of);

/* Returns the number of rows for these changes if nothing had been conflated. */
uint64_t subscribers_due(const struct subscribers *subs, const uint32_t *changed_of);

/* For new runs of the topic: returns the number of rows that did not arrive. */
uint64_t subscribers_missing(const struct subscribers *subs, uint64_t rows_each);
