/* read_line.h - the reads that wait for a connection, and which of them is next.
 *
 *   quick  project A ─ env 1: r r r r    found by its name, or a page of an index
 *                    ─ env 2: r
 *          project B ─ env 3: r
 *   slow   project A ─ env 1: r r r r    searched for, for as long as two seconds
 *
 * Owners (projects) take turns, and so do the environments of each: a read waits for one of
 * each of the others, however many they have in line. The slow ones may have all connections
 * but one: where there are two a quick read never waits for a slow one. Both kinds take
 * turns, too. */
#pragma once

#include "base/list.h"
#include "base/table.h"
#include "runcast/store.h"

struct read_waiter {
    uint64_t owner; /* of the environment */
    uint64_t env;
    bool slow;
    bool bounded;     /* stopped when it takes too long; false: a start needs all of it */
    struct list link; // read_party::waiters
};

/* Those that take turns, by their number: owners, or the environments of one. */
struct read_parties {
    struct table by_number; /* of struct read_party: of those with reads */
    struct list waiting;    // read_party::link; the next one first
};

struct read_line {
    struct read_parties quick, slow; /* owners */
    bool slow_was_last;              /* of those that were taken */
};

/* Fills in all of the waiter for the read. The store says who owns its environment. */
void read_waiter_init(struct read_waiter *waiter, const struct store *store,
                      const struct store_read *read);

void read_line_init(struct read_line *waiting);

/* Nobody waits any more. */
void read_line_finish(struct read_line *waiting);

void read_line_add(struct read_line *waiting, struct read_waiter *waiter);

/* The next one, which waits no longer. NULL: nobody waits, or only slow ones that may not be
 * begun. */
struct read_waiter *read_line_take(struct read_line *waiting, bool slow_may);

/* Returns true if another slow read may begin: all connections but one may be searching, and
 * an only one may, too. */
bool read_line_slow_may(size_t searching, size_t connections);
