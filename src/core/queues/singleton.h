/* singleton.h - what a trigger does if an unfinished run has its queue and concurrencyKey.
 *
 * A queue with a strategy is a singleton queue: it executes at most one run of each
 * concurrencyKey at a time. Users set the strategy (struct queue_settings). */
#pragma once

#include "base/slice.h"

enum singleton {
    SINGLETON_NONE,   /* not a singleton queue */
    SINGLETON_QUEUE,  /* the new run waits for its turn */
    SINGLETON_SKIP,   /* no run is created: the trigger leads to the older one */
    SINGLETON_CANCEL, /* the older run is canceled, and a new one created */
    SINGLETON_COUNT
};

/* Returns the word for a strategy, as in the API and in documents; NULL for
 * SINGLETON_NONE. */
const char *singleton_word(enum singleton strategy);

/* Returns SINGLETON_NONE for any other word. */
enum singleton singleton_of_word(struct slice word);

/* Returns true if a trigger must know which run holds its key. */
static inline bool singleton_needs_holder(enum singleton strategy)
{
    return strategy == SINGLETON_SKIP || strategy == SINGLETON_CANCEL;
}
