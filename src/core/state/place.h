/* place.h - the place of a run: in its queue, or in a slot. */
#pragma once

#include "core/state/members.h"

/* Returns the queue, key and limits of the run, borrowed from it. */
struct queue_seat engine_seat_of(const struct run *run);

/* Puts the run into the queue or slot of its state, and sets its timer. */
void engine_place(struct engine *engine, struct tracked *run);

/* Takes a slot for a waiting run that is about to change to a state with one. Until that
 * state is applied, nothing else places the run; if it never is, the next engine_place
 * gives the slot back. Returns false if none is free, or other runs are before it to
 * resume. */
bool engine_take_slot(struct environment *env, struct slice run_id);

/* Returns when the attempt is lost unless there is a sign of life; monotonic ms. */
int64_t engine_lost_at(const struct tracked *run);
