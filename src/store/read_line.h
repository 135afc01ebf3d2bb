/* read_line.h - the reads waiting for a connection, and the order in which they are served.
 *
 *   memory r r r r                       of this gateway: all clients wait for them
 *   quick  project A ─ env 1: r r r r    found by name, or a page of an index
 *                    ─ env 2: r
 *          project B ─ env 3: r
 *   slow   project A ─ env 1: r r r r    searches, which may take up to two seconds
 *
 * Owners (projects) take turns, and so do the environments of each: a read waits for one
 * read of each other owner, however many they have in line. Slow reads may use all
 * connections but one, so with two or more connections a quick read never waits for slow
 * ones. The two kinds also take turns.
 *
 * Every second read is one for memory, if there is any, whichever project's runs it reads. So
 * no project delays the changes of the others with its own reads, nor a takeover. */
#pragma once

#include "base/list.h"
#include "base/table.h"
#include "runcast/store.h"

struct read_waiter {
    uint64_t owner; /* of the environment */
    uint64_t env;
    bool for_memory;
    bool slow; /* not for memory */
    /* stopped if it takes too long; false: startup needs the complete result */
    bool bounded;
    struct list link; // read_party::waiters
};

/* The parties that take turns, by number: owners, or the environments of one. */
struct read_parties {
    struct table by_number; /* struct read_party; only those with reads */
    struct list waiting;    // read_party::link; the next one first
};

struct read_line {
    struct read_parties memory;      /* one party, in the order in which the reads came */
    struct read_parties quick, slow; /* by owner */
    bool memory_was_last;            /* the last read taken was for memory */
    bool slow_was_last;              /* the last one of the others was slow */
};

/* Fills in the waiter for the read. store->share_of returns its environment's project. */
void read_waiter_init(struct read_waiter *waiter, const struct store *store,
                      const struct store_read *read);

void read_line_init(struct read_line *waiting);

/* Returns true if no read is waiting. */
bool read_line_is_empty(const struct read_line *waiting);

/* Requires that no read is waiting. */
void read_line_finish(struct read_line *waiting);

void read_line_add(struct read_line *waiting, struct read_waiter *waiter);

/* Removes and returns the next read; NULL if none that may begin is waiting.
 *
 * slow_may: slow ones may begin. */
struct read_waiter *read_line_take(struct read_line *waiting, bool slow_may);

/* Returns true if another slow read may begin.
 *
 * Slow reads may use all connections but one. If there is only one, they may use it. */
bool read_line_slow_may(size_t searching, size_t connections);
