/* forgetful.h - a store in front of another: one commit is lost, as in a crash.
 *
 * Of the commit that the countdown says either the write does not happen, or it does and
 * the answer is a failure nonetheless. */
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
    int countdown; /* to the commit that is lost; 0: none is */
    bool lost;
    struct store_commit *victim;
    store_done_fn *victim_done;
    struct deferred deferred;
};

/* Of the world made last; the test's to free. */
extern struct forgetful *forgetful;

/* For world_options::wrap. */
struct store *forgetful_wrap(struct world *world);
