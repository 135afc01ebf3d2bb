/* waits.h - what a run waits for: times, other runs, tokens.
 *
 *   run_block ─► the run's list of waits ─► noted here, under what each waits for
 *                                              │
 *      a time comes, a run ends, a token is completed
 *                                              ▼
 *                         nothing pending: the run goes on, its waits complete
 *
 * The list is kept in the run, so a restart finds it. Whether a wait is over follows from
 * the state of what it waits for; only the whole is written, once. */
#pragma once

#include "core/engine/engine.h"
#include "core/model/wait_list.h"

enum { WAITS_SMALL = 1024 }; /* bytes of the list of a run that a full project takes, too */

/* Blocks an executing run until all of these are over; those that block it already are not
 * added again. ERR_INVALID: the run does not execute. ERR_RULE: it would wait for more than
 * WAITS_MAX. ERR_QUOTA: the list would be longer than WAITS_SMALL, in a full project. */
struct block {
    struct command command;   /* first */
    const struct wait *waits; /* the caller's until done */
    size_t count;
    bool asks_quota; /* nothing was stored for these waits that asked */
};
void run_block(struct engine *engine, struct environment *env, struct slice run_id,
               struct block *op, command_done_fn *done);

/* ---- the engine's ---- */

/* Notes what a blocked run waits for; forgets one that is blocked no more. */
void waits_note(struct engine *engine, struct tracked *run);

/* The run or token is over: whoever waited for nothing else goes on. */
void waits_end(struct engine *engine, struct environment *env, struct slice id);

/* Decides about a blocked run: it goes on if nothing is pending. */
enum decision waits_decide(struct engine *engine, struct environment *env,
                           struct run *next);
