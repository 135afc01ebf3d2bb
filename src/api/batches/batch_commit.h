/* batch_commit.h - a batch and its runs, written as one: all of it is there, or nothing.
 *
 *   parent, if there is one ─► runs become its children ─► engine ─► document
 *                                                           └─► a waiting parent is blocked
 *
 * For the calls that bring their items along, for the end of a stream of items, and without
 * items for the beginning of one. */
#pragma once

#include "api/batches/batch_blocking.h"
#include "api/triggers/trigger_call.h"

struct batch_commit {
    struct api_call *call;
    struct batch batch; /* id, run_count, times, parent, …; runs are filled in here */
    struct trigger *items;
    size_t count;
    bool seals;       /* the items are all there are */
    bool shows_items; /* the document keeps their tasks and keys */
    /* The text of a refusal is in call->why; commit->op says what else came of it. */
    void (*done)(struct batch_commit *commit, enum err status);

    struct trigger_op op; /* claims are the caller's to set */
    struct document document;
    struct parent_lookup parent;
    struct blocking blocking; /* of the parent */
};

/* A new batch of the call's environment. */
void batch_commit_new(struct batch_commit *commit, struct api_call *call,
                      uint32_t run_count);

/* The claim of an idempotency key: parts are kept apart. */
struct bytes *batch_claim_key(const struct slice *parts, size_t count);

/* done comes later, or from inside when it is refused at once. */
void batch_commit_begin(struct batch_commit *commit);

/* Gives back everything but the commit itself; the items too. */
void batch_commit_finish(struct batch_commit *commit);
