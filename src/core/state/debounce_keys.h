/* debounce_keys.h - which delayed run has a debounce key, and which trigger creates one.
 *
 *   no run has the key   ─► the first trigger creates one; the others wait for its commit
 *   a delayed run has it ─► each trigger pushes that run (trigger_push.h)
 *
 * The runs themselves are the record: each has a mark of its key (core/model/debounce.h),
 * so the table is complete once all unfinished runs are loaded. */
#pragma once

#include "core/state/members.h"
#include "core/state/trigger_op.h"

void debounce_keys_init(struct engine *engine);
void debounce_keys_finish(struct engine *engine);

/* Notes whether the run has a key. Call it whenever a run has changed or was loaded. */
void debounce_keys_note(struct engine *engine, const struct tracked *run);

/* Decides what each item does that has a debounce key and was not found by its idempotency
 * key: it pushes a run (trigger::pushes), joins an earlier item (trigger::leader), or
 * creates a run. In the third case, other operations that want the key wait until
 * debounce_keys_give. Returns false if this operation must wait for another one; its retry
 * is called then. */
bool debounce_keys_take(struct trigger_op *op);

/* The run that the item pushes is too old and gives its key up, so the item creates the next
 * one in the same commit. Other operations wait until debounce_keys_give: the changes of the
 * commit are applied in time slices, and between two of them no run has the key. */
void debounce_keys_replace(struct trigger_op *op, struct trigger *item);

/* Ends what debounce_keys_take began. Ignores other operations. */
void debounce_keys_give(struct trigger_op *op);
