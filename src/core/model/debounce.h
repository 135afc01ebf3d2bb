/* debounce.h - debounced runs: how a run names its key, and what a push changes.
 *
 * A push is a debounced trigger whose key already has a delayed run. It delays that run
 * further instead of creating another; in trailing mode it also replaces the run's payload
 * and options. While the run is DELAYED, run_rare::waits is the mark of its key:
 *
 *   [{"type":"DEBOUNCE","key":"user-1"}]
 *
 * At most one run of a task has the same mark and is DELAYED. The functions read no clock
 * and keep no state. */
#pragma once

#include "runcast/run.h"

/* The debounce option of a trigger. */
struct debounce {
    int64_t delay_ms;     /* 0: the trigger has no such option */
    int64_t max_delay_ms; /* from the run's creation to its start; 0: no limit */
    bool is_trailing;
    bool names_machine; /* the trigger names its machine */
};

/* Makes the mark of a key. */
struct bytes *debounce_mark(struct slice key);

/* Returns true if the text is a mark. */
bool debounce_is_mark(struct slice waits);

/* Returns the mark of a run that can be pushed; absent if it is not DELAYED or has none. */
struct slice debounce_mark_of(const struct run *run);

/* Returns false if a push now would delay the run beyond the push's max_delay_ms. */
bool debounce_allows(const struct debounce *push, const struct run *run, int64_t now_ms);

/* Pushes the run. with: the run that the push would have created. Adds to marks (enum
 * change_marks). Returns false if that changes nothing. */
bool debounce_push(const struct debounce *push, const struct run *with, struct run *run,
                   int64_t now_ms, unsigned *marks);

/* Removes the key from the run. */
void debounce_free_key(struct run *run);

/* Claims taken by a push have an owner like "<run id>/<random>", so that a repetition of
 * the push, whose run is the same, finds them taken. Returns the run id of any owner. */
struct slice debounce_owner_run(struct slice owner);

/* Returns true if a push took the claim. */
bool debounce_owner_is_push(struct slice owner);
