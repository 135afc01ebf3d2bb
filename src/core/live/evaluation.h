/* evaluation.h - the changes that windows of an environment have yet to evaluate.
 *
 *   change ─► memory, topics ─► added: [ 71 │ 72 │ 73 ] ─► the hub's flush evaluates 71 for
 *                                                          each window that it may concern
 *
 * A change may concern a thousand windows, whose memory has left the CPU caches. So that a
 * turn stays short, they evaluate changes in time slices, one change after the other, in
 * order. Until then memory is ahead of the windows: counts have the position
 * environment_evaluated, not the last applied one, and live lists, whose rows come from memory,
 * wait until every change is evaluated.
 *
 * Once EVALUATION_MAX changes wait, no commit of the environment is applied before all of them
 * are evaluated. So its own writes wait for its windows, and those of other environments do
 * not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "runcast/run.h"

struct environment;
struct topic;

/* Changes that may wait. A commit whose changes cannot be applied in parts exceeds it. */
enum { EVALUATION_MAX = 64 };

struct evaluation {
    struct environment *env;
    struct list changes; // evaluated_change::link; oldest first
    uint32_t count;
    bool is_full;   /* EVALUATION_MAX have waited, and some still do */
    uint64_t first; /* seq of the oldest change, if there is one */
    /* Where the oldest change continues: the number of the list of places, and the next
     * place. */
    uint32_t step;
    struct list paused; // topic::places or windows::by_status; linked while in such a list
};

void evaluation_init(struct evaluation *evaluation, struct environment *env);
void evaluation_finish(struct evaluation *evaluation);

/* Adds a change, to be evaluated at the end of the turn. before: the previous state; its id
 * is "" if the run was created. Takes its references and sets it to zero. */
void evaluation_add(struct evaluation *evaluation, struct run *before,
                    const struct run *after);

/* Drops the changes: windows get their runs from the store again. */
void evaluation_forget(struct evaluation *evaluation);

/* Evaluates changes for a time slice. Returns true if none is left. */
bool evaluation_run(struct evaluation *evaluation);

static inline bool evaluation_is_full(const struct evaluation *evaluation)
{
    return evaluation->is_full;
}
