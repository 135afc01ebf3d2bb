/* singletons.h - which runs hold the keys of singleton queues (core/queues/singleton.h).
 *
 *   skip:    no run holds the key ─► the first trigger creates one
 *            one does             ─► each trigger leads to it, without a change
 *   cancel:  no run holds the key ─► the trigger creates one
 *            one does             ─► the same commit cancels it and creates the new one
 *
 * While a trigger creates a run, the others of that key wait for its commit. Every
 * unfinished run of the queue holds its concurrencyKey. Among several:
 *
 *   skip:    the oldest that has begun; if none has, the oldest
 *   cancel:  the oldest that has not begun; if all have, the oldest
 *
 * A run has begun while a worker has it, and once its first attempt has started. A canceled
 * run no longer holds its key, but keeps its slot until its worker confirms (place.c), so
 * the new run starts after it has ended.
 *
 * The index is not stored: it follows from the runs and the settings of the queues. It exists
 * for queues with the strategies skip and cancel. If a queue gets one of these while it has
 * runs, the index is built in time slices, and triggers wait for it. */
#pragma once

#include "core/state/members.h"
#include "core/state/trigger_op.h"

void singletons_init(struct engine_share *share);

/* Frees the index of an environment that is destroyed. No trigger may wait for a key. */
void singletons_finish(struct engine_share *share);

/* Notes whether the run holds a key. Call it whenever a run has changed or was loaded. */
void singletons_note(const struct tracked *run);

/* Returns ERR_INVALID, with op->why, if an item is debounced although its queue needs a
 * holder. */
enum err singletons_check(struct trigger_op *op);

/* Decides what each item does that needs a holder (singleton_needs_holder), is not debounced
 * and was not found by its idempotency key. It sets trigger::singleton, and
 *
 *   trigger::pushes  the run that holds the key
 *   trigger::leader  an earlier item that creates a run with the key
 *
 * While the operation creates a run, others that want its key wait until singletons_give.
 * Returns false if this operation must wait; its retry is called then. */
bool singletons_take(struct trigger_op *op);

/* Ends what singletons_take began. Ignores other operations. */
void singletons_give(struct trigger_op *op);

/* Returns true if the run, whose state is `now`, is still the holder that the item was given:
 * neither it nor another run of the key has changed otherwise. */
bool singletons_hold(const struct environment *env, const struct trigger *item,
                     const struct run *now);

/* Sets the settings of a queue. Call it when they were written, and at startup before
 * engine_load_run. If the queue becomes a singleton queue, triggers decide by it from now
 * on. */
void engine_configure_queue(struct environment *env, struct slice queue,
                            const struct queue_settings *settings);
