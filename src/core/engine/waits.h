/* waits.h - the things that a run waits for: times, other runs, tokens.
 *
 *   run_block ─► the run's list of waits ─► noted here, by what each waits for
 *                                              │
 *      a time is reached, a run ends, a token is completed
 *                                              ▼
 *                         nothing pending: the run resumes when it has a slot again
 *
 * The list is stored in the run, so a restart finds it. Whether a wait has ended follows
 * from the state of what it waits for. The run is written when nothing is pending: only
 * once, if it then gets a slot. */
#pragma once

#include "core/engine/engine.h"
#include "core/model/wait_list.h"

enum {
    WAITS_SMALL = 1024
}; /* max bytes of a run's list that is stored even above the quota */

/* Blocks an executing run until all of these have ended. Those that already block it are
 * not added again. ERR_INVALID: the run is not executing. ERR_RULE: it would wait for more
 * than WAITS_MAX. ERR_QUOTA: the list would exceed WAITS_SMALL, in a full project. */
struct block {
    struct command command;   /* first */
    const struct wait *waits; /* the caller's until done */
    size_t count;
    bool asks_quota; /* check the quota: the caller did not when making these waits */
};
void run_block(struct engine *engine, struct environment *env, struct slice run_id,
               struct block *op, command_done_fn *done);

/* Returns one of the runs that wait for this run or token; NULL: none. */
const struct tracked *waits_run_of(const struct engine *engine,
                                   const struct environment *env, struct slice id);

/* ---- the engine's ---- */

/* Records what a blocked run waits for; removes a run that is no longer blocked. */
void waits_note(struct engine *engine, struct tracked *run);

/* The run or token has ended: resumes the runs that wait for nothing else. */
void waits_end(struct engine *engine, struct environment *env, struct slice id);

/* Decides about a blocked run: it resumes if nothing is pending and it gets a slot. */
enum decision waits_decide(struct engine *engine, struct environment *env,
                           struct run *next);
