/* calls.h - the calls between the files of the engine. */
#pragma once

#include "core/engine/engine.h"
#include "core/state/members.h"
#include "core/state/place.h"

/* apply.c */

/* Makes every change of a commit visible, in order. Takes ownership of the runs' texts. */
void engine_apply(struct engine *engine, struct change *changes, size_t count);

/* Makes more of its changes visible, for a time slice, after the first *applied of them.
 * Returns true if some are left: the slice has ended, or the environment's windows have yet
 * to evaluate as many changes as may wait. */
bool engine_apply_some(struct engine *engine, struct store_commit *commit, size_t *applied);

/* command.c */

void command_prepare(struct command *command, struct engine *engine,
                     struct environment *env, struct slice run_id,
                     command_decide_fn *decide_fn);

/* Resets the decisions of the command and of those joined to it. */
void command_forget_decision(struct command *command);

/* Decides one command on top of `now`. Returns true if it made the change. updated_at never
 * decreases, even if the clock is set back. */
bool command_decide(struct command *command, const struct run *now, struct change *change);

/* Numbers the changes of the command, of the joined ones, and those that it added, starting
 * with seq. The command gets the last number of those that it added. Returns the next
 * number. */
uint64_t command_number(struct command *command, uint64_t seq);

/* Returns the number of commands: this one and those joined to it. */
size_t command_count(const struct command *command);
enum err command_outcome(const struct command *command);
void command_finish(struct command *command, const struct run *run, enum err status);

/* flight.c */

void flights_init(struct engine *engine);
void flights_finish(struct engine *engine);

/* Returns true if the run has commands that wait or are being committed. The run may have a
 * slot for the state that they lead to, and is placed again at their end. */
bool flights_have(const struct engine *engine, const struct tracked *run);

/* deadlines.c */

/* Handler of a run's timer: decides what its state requires. */
void deadlines_on_due(struct timer *timer);

/* sweep.c */

void engine_end_sweep(struct list *link);

/* Cancels the run if its parent was canceled before it arrived. */
void engine_follow_parent(struct engine *engine, struct tracked *run);

/* Cancels the run if its branch was archived before it arrived or changed. */
void engine_follow_branch(struct engine *engine, struct tracked *run);

/* Requeues or suspends a run that is queued or waits for a version, as the current versions
 * demand. Not for use while runs are being loaded. */
void engine_follow_version(struct engine *engine, struct tracked *run);

/* waits.c */

void waits_init(struct engine *engine);
void waits_finish(struct engine *engine);

/* Resumes runs whose waits have ended, as far as slots are free. */
void waits_resume(struct engine *engine, struct environment *env);

/* dequeue.c */
void dequeues_init(struct engine *engine);
void dequeues_finish(struct engine *engine);

void dequeue_timed_out(struct timer *timer);

void doubts_init(struct engine *engine);
void doubts_finish(struct engine *engine);
void engine_match_now(struct deferred *matching);

/* store_retry.c */

/* Begins a command that has no caller but must succeed. It is retried STORE_RETRY_MS after
 * the store has failed, and freed when done. */
void command_begin_alone(struct engine *engine, struct environment *env,
                         struct slice run_id, command_decide_fn *decide);
