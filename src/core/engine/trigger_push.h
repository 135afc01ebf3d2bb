/* trigger_push.h - triggers whose debounce key a delayed run has: they push that run.
 *
 *   items of an operation ─► commands on those runs, as a group ─► one commit: pushed runs,
 *                                                                  new runs, batch, claims
 *
 * Pushes of one run that arrive at the same time thus share a commit. */
#pragma once

#include "core/engine/engine.h"

enum push_outcome {
    PUSH_DONE,   /* with a status; trigger::replaces and trigger::leader are set */
    PUSH_TAKEN,  /* another owner has claims: see trigger_op::claims */
    PUSH_FAILED, /* a run can no longer be pushed: begin again */
};

/* Writes the changes of everything that is not pushed to a commit, and returns their
 * number. */
typedef size_t trigger_fill_fn(struct trigger_op *op, struct change *changes);
typedef void trigger_pushed_fn(struct trigger_op *op, enum push_outcome outcome,
                               enum err status);

/* Makes the owner of a claim for an item that pushes the run (core/model/debounce.h). */
void trigger_push_owner(const char *run_id, char owner[ID_MAX]);

/* Returns the error of a payload that names a missing packet, with op->why. */
enum err trigger_missing_packet(struct trigger_op *op);

/* Begins the commit of an operation some of whose items have trigger::pushes. fill may be
 * called several times, even if the commit is not written. Calls done later. */
void trigger_push_begin(struct trigger_op *op, trigger_fill_fn *fill,
                        trigger_pushed_fn *done);
