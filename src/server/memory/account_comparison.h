/* account_comparison.h - compares the accounts in memory with those of the database, while this
 * gateway leads.
 *
 *   position ─► all documents: each in memory, with its version? ─► as many as in memory?
 *      ▲                                                              │
 *      └──── another position now, or a difference: once more ◄───────┘
 *
 * A key that was revoked while this gateway followed, but is still in memory, would be valid for
 * as long as it leads. So a follower that has taken the lead finds out afterwards, as
 * core/replication/comparison.h does for runs. */
#pragma once

#include "accounts/account_writer.h"
#include "server/memory/load.h"

struct account_comparison_options {
    struct store *store;
    struct accounts *accounts;
    struct account_writer *writer;
    /* The last callback. differs: that was logged. Otherwise they are equal, or change too
     * often to be compared. */
    void (*done)(void *owner, bool differs);
    void *owner;
};

struct account_comparison {
    struct loop *loop;
    struct account_comparison_options options;

    /* Private to account_comparison.c. */
    struct load_documents load;
    uint64_t position;     /* of the accounts when the read began */
    size_t equal;          /* documents that memory has */
    struct bytes *missing; /* name of the first document that memory lacks; NULL: none */
    unsigned tries, differences;
    bool is_reading, stopped;
    struct timer again;
};

void account_comparison_init(struct account_comparison *comparison, struct loop *loop,
                             const struct account_comparison_options *options);

/* Call it once. */
void account_comparison_begin(struct account_comparison *comparison);

/* Ends it early; options.done is not called any more. */
void account_comparison_stop(struct account_comparison *comparison);

/* Returns true if no read is in flight. */
bool account_comparison_is_idle(const struct account_comparison *comparison);
