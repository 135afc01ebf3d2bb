/* batch_commit.h - stores a batch and its runs in one transaction.
 *
 *   parent, if there is one ─► runs become its children ─► engine ─► document
 *                                                           └─► a waiting parent is blocked
 *
 * Used by calls that contain their items, at the end of a stream of items, and, without
 * items, to create a batch for a stream. */
#pragma once

#include "api/batches/batch_blocking.h"
#include "api/triggers/trigger_call.h"

struct batch_commit {
    struct api_call *call;
    struct batch batch; /* id, run_count, times, parent, …; runs are filled in here */
    struct trigger *items;
    size_t count;
    bool seals;       /* all items are here; the commit seals the batch */
    bool shows_items; /* the document stores their tasks and keys */
    /* Called once. On error the message is in call->why. op has all other results. */
    void (*done)(struct batch_commit *commit, enum err status);

    struct trigger_op op; /* the caller sets its claims */
    struct document document;
    struct parent_lookup parent;
    struct blocking blocking; /* of the parent */
};

/* Makes a new batch of the call's environment. */
void batch_commit_new(struct batch_commit *commit, struct api_call *call,
                      uint32_t run_count);

/* Returns the claim of an idempotency key: a hash that keeps the parts apart. */
struct bytes *batch_claim_key(const struct slice *parts, size_t count);

/* Begins the commit. Calls done later, or before it returns if the commit is rejected at
 * once. */
void batch_commit_begin(struct batch_commit *commit);

/* Frees everything, including the items, but not the commit itself. */
void batch_commit_finish(struct batch_commit *commit);
