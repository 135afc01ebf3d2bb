/* comparison.h - compares the unfinished runs in memory with those of the database, while this
 * gateway decides.
 *
 *   page of the database, as of S ─► memory has everything up to S ─► merged by rev:
 *
 *     database   41      57  60      71
 *     memory     41  44  57  60  66  71  …  80      44 and 66 have ended; 80 is above S
 *
 * A gateway that takes the lead with the memory that it had as a follower serves at once, and
 * finds out afterwards, in time slices, whether that memory was right. Runs change meanwhile:
 * one that has changed since its page was read has a rev above S. */
#pragma once

#include "base/loop.h"
#include "core/live/environment.h"
#include "core/replication/frames.h"
#include "runcast/store.h"

/* Returns true if the environment has as many unfinished runs as the leader's, with the same
 * sum; otherwise logs both. */
bool comparison_of_sums(const struct environment *env, const struct repl_sum *sum);

struct comparison_options {
    /* Returns the next environment in memory (engine_next_environment). */
    struct environment *(*next)(void *owner, uint32_t *at);
    /* Memory differs, which was logged; the comparison has ended. */
    void (*differs)(void *owner);
    void *owner;
};

struct comparison {
    struct loop *loop;
    struct store *store;
    struct comparison_options options;
    uint64_t runs; /* of the database, compared so far */

    /* Private to comparison.c. */
    uint32_t at;             /* of options.next */
    struct environment *env; /* held; NULL: none is being compared */
    uint64_t up_to;          /* runs that had changed by then are compared */
    struct store_walk walk;  /* a page */
    bool is_reading, stopped;
    unsigned failures;  /* of reads, since one succeeded */
    size_t taken;       /* runs of the page that were compared */
    uint64_t place;     /* rev up to which memory was compared */
    struct reach reach; /* linked while memory lacks what the page has */
    struct deferred stepping;
    struct timer again; /* after a failed read */
};

void comparison_init(struct comparison *comparison, struct loop *loop, struct store *store,
                     const struct comparison_options *options);

/* Compares all environments that are in memory. Call it once. */
void comparison_begin(struct comparison *comparison);

/* Ends it early; options.differs is not called any more. */
void comparison_stop(struct comparison *comparison);

/* Returns true if no read is in flight. */
bool comparison_is_idle(const struct comparison *comparison);
