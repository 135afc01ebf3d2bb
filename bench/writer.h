/* writer.h - a client that triggers and updates runs at a steady rate, even if calls fail.
 *
 *   step: the next change is due ─► trigger, or PUT metadata {"n":N} ─► 2xx: done
 *            └─ Retry-After, or connection broken: send again ◄───────────┘
 *
 * Changes are numbered from 1, and each writes its number into the metadata of its run. So
 * a client that receives a number knows the run and its state. A run has at most one change
 * in flight, so its highest number is its newest state. Each trigger has its own
 * idempotency key, so it may be sent again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fill.h"
#include "histogram.h"
#include "http_client.h"

enum { WRITER_SLOTS = 64 }; /* max runs per tag */

/* Run number i has the tag i % tags, and is its run number i / tags. */
struct written_run {
    struct fill_id id; /* "": its trigger has no response yet */
    bool busy;         /* a change of it is in flight */
};

struct writer_change {
    uint32_t run;
    bool creates;
    unsigned tries;
    int64_t intended_ns;
    int64_t again_ns; /* when to send it again; 0: in flight or done */
};

struct writer {
    struct http_client client;
    const struct options *options;
    char prefix[16]; /* of tags and keys; unique to this measurement */
    size_t tags;

    struct written_run *runs;
    size_t run_count, run_next; /* which one changes next */
    struct writer_change *changes;
    size_t change_count, change_room, waiting; /* to be sent again */

    int64_t start_ns, interval_ns;
    uint64_t begun, wanted; /* changes since writer_begin */

    /* Since writer_measure. done: changes with a 2xx response; their latency is from the
     * intended instant. The others are requests that got Retry-After (told_again), no
     * response (cut_off), or any other response (refused). */
    uint64_t done, told_again, cut_off, refused;
    struct buf failure; /* the first one of cut_off and refused */
    struct histogram latency;
};

/* Borrows options. */
void writer_init(struct writer *writer, struct poller *poller,
                 const struct options *options);
void writer_finish(struct writer *writer);

/* Begins to send changes at this rate, until there were `wanted`. The first ones, one per
 * tag, create runs; of the others one in five does. */
void writer_begin(struct writer *writer, double changes_a_second, uint64_t wanted);

/* Begins no new changes; those in flight finish. */
void writer_end(struct writer *writer);

/* Resets the counters. */
void writer_measure(struct writer *writer);

/* Sends changes that are due. */
void writer_step(struct writer *writer);

/* Returns true if no change is in flight or waiting to be sent again. */
bool writer_is_idle(const struct writer *writer);

/* Writes the tag of that number. */
void writer_tag(const struct writer *writer, size_t number, char out[FILL_TAG_SIZE]);

/* Reads from the server the number of the newest change of each run. */
void writer_read_newest(const struct writer *writer, uint32_t *newest_of);
