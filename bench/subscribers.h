/* subscribers.h - N connections that subscribe, and the book of what reached them.
 *
 * For every connection and run of its subscription the newest version seen is kept. A
 * version that jumps by k + 1 means k conflated states; a final version that never came is
 * a loss. A long poll tells no versions: what is kept is which change was told last. */
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
    size_t begun, live; /* stages that so many connections have reached */
    uint32_t *versions; /* newest seen: count x run_count, a connection's together; of
                         * long polls the change told last, from 1 */
    uint32_t *base;     /* by run: newest seen by anybody before the measurement */

    uint64_t frames, rows, conflated, closed; /* since subscribers_measure */
    uint64_t idle; /* long polls that were answered without a row */
    uint64_t payload_bytes;
    uint64_t snapshot_rows;
    int64_t since_ns; /* rows with an older n are not measured */
    int64_t last_ns;  /* a row came last, or rows were first waited for */
    struct histogram latency;
    struct histogram last;         /* from a change to the last who heard of it */
    int64_t start_ns, interval_ns; /* when changes are meant to be made */
    size_t burst, bursts;          /* changes at one instant, instants */
    uint64_t *arrived;             /* by instant: rows that everybody got */
    bool done;                     /* the floor has sent everything */
    int64_t floor_frames, floor_cpu_ns;
};

/* The topic of that name; ends the program for any other name. */
enum topic subscribers_topic(const char *name);

/* Ends the program unless there may be so many subscribers, each of which hears of so many runs. */
void subscribers_check(const struct options *options, int64_t runs);

/* Fill, options and report are borrowed. */
void subscribers_init(struct subscribers *subs, struct poller *poller,
                      const struct options *options, const struct fill *fill,
                      struct report *report);
void subscribers_finish(struct subscribers *subs);

/* Connects and subscribes all of them and returns when all are live. */
void subscribers_connect(struct subscribers *subs);

/* Counts from here. */
void subscribers_measure(struct subscribers *subs);

/* Which changes there will be, so that it is known when the last has heard of one. Once. */
void subscribers_expect(struct subscribers *subs, int64_t start_ns, int64_t interval_ns,
                        size_t bursts);

/* Pairs of connection and run whose final state was not seen, when each run has changed
 * changed_of[run] times since subscribers_measure. */
uint64_t subscribers_lost(const struct subscribers *subs, const uint32_t *changed_of);

/* The same where no versions are told: n_of[run] is what the run's metadata says now. */
uint64_t subscribers_outdated(const struct subscribers *subs, const int64_t *n_of);

/* Rows that all of them were to get for these changes, had nothing been conflated. */
uint64_t subscribers_due(const struct subscribers *subs, const uint32_t *changed_of);

/* The same for new runs of the topic: rows that did not come. */
uint64_t subscribers_missing(const struct subscribers *subs, uint64_t rows_each);
