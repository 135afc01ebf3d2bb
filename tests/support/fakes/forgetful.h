/* forgetful.h - a store in front of another: one commit is lost, as in a crash.
 *
 * For the commit at which the countdown reaches 0, either the write does not happen, or it
 * does but the result is a failure. */
#pragma once

#include "base/loop.h"
#include "runcast/store.h"
#include "tests/support/world/world.h"

enum loss { LOSE_NOTHING, LOSE_WRITE, LOSE_ANSWER };

struct forgetful {
    struct store store;
    struct store *below;
    struct loop *loop;
    enum loss loss;
    int countdown; /* commits until the lost one; 0: none is lost */
    bool lost;
    struct store_commit *victim;
    store_done_fn *victim_done;
    struct deferred deferred;
};

/* The one in the latest world; the test must free it. */
extern struct forgetful *forgetful;

/* For world_options::wrap. */
struct store *forgetful_wrap(struct world *world);
