/* writer.h - a client that triggers and updates runs at a steady pace, whatever happens.
 *
 *   step: the next change is due ─► trigger, or PUT metadata {"n":N} ─► 2xx: done
 *            └─ told to come again (Retry-After) or cut off: sent again ◄──┘
 *
 * Changes are numbered from 1, and each writes its number into the metadata of its run, so
 * who sees a number knows which run it is of and how far it has come. A run has one change
 * on its way at most: the highest number of a run is its newest state. A trigger has an
 * idempotency key of its own, so it may be sent again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fill.h"
#include "histogram.h"
#include "http_client.h"

enum { WRITER_SLOTS = 64 }; /* runs of a tag, at most */

/* Run number i has the tag i % tags, and is its run number i / tags. */
struct written_run {
    struct fill_id id; /* "": its trigger has not been answered */
    bool busy;         /* a change of it is on its way */
};

struct writer_change {
    uint32_t run;
    bool creates;
    unsigned tries;
    int64_t intended_ns;
    int64_t again_ns; /* when to send it again; 0: it is on its way, or done */
};

struct writer {
    struct http_client client;
    const struct options *options;
    char prefix[16]; /* of tags and keys; no other measurement has it */
    size_t tags;

    struct written_run *runs;
    size_t run_count, run_next; /* whose turn it is to change */
    struct writer_change *changes;
    size_t change_count, change_room, waiting; /* for being sent again */

    int64_t start_ns, interval_ns;
    uint64_t begun, wanted; /* changes since writer_begin */

    /* Since writer_measure. Only a change that was answered 2xx counts as done, and its
     * latency is from the instant that was meant for it. */
    uint64_t done, told_again, cut_off, refused;
    struct buf failure; /* the first of the last two */
    struct histogram latency;
};

/* Options are borrowed. */
void writer_init(struct writer *writer, struct poller *poller,
                 const struct options *options);
void writer_finish(struct writer *writer);

/* From now on changes a second, until there were so many. The first ones, as many as runs
 * has, make runs; of the others one in five. */
void writer_begin(struct writer *writer, double changes_a_second, uint64_t wanted);

/* No new changes; those that are on their way end. */
void writer_end(struct writer *writer);

/* Counts from here. */
void writer_measure(struct writer *writer);

/* Sends what is due. */
void writer_step(struct writer *writer);

/* Nothing is on its way. */
bool writer_is_idle(const struct writer *writer);

/* The tag of that number, as text. */
void writer_tag(const struct writer *writer, size_t number, char out[FILL_TAG_SIZE]);

/* The number of the change that the database has of each run, asked of the server. */
void writer_read_newest(const struct writer *writer, uint32_t *newest_of);
