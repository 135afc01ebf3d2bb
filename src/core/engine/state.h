/* state.h - shared by the files of the engine: its struct, and the calls between them. */
#pragma once

#include "base/buf.h"
#include "base/slots.h"
#include "base/table.h"
#include "core/engine/engine.h"
#include "core/fleet/fleet.h"
#include "core/model/run_end.h"

enum { STORE_RETRY_MS = 1000 };

/* The engine's state of one environment. */
struct engine_share {
    struct environment *env;
    struct deferred matching;    /* matches runs and workers */
    struct timer refill;         /* when a bucket of a rate has a token again, or is full */
    struct flusher stale_limits; /* calls queues_refresh_stale, and then matches again */
    uint64_t served;   /* value of engine::served when a worker last got one of its runs */
    uint32_t arriving; /* runs of triggers in flight */
    struct table singletons;     /* of struct singleton_queue, of singletons.c, by name */
    struct list singleton_rests; // singleton_rest::link
    bool is_retired;             /* its branch was archived: nothing more starts in it */
    bool resumes_later;          /* runs will resume once the store works again */
};

struct engine {
    struct loop *loop;
    struct store *store;
    struct engine_options options;
    struct certainty certainty; /* whether memory matches the store */
    struct slots environments;  /* of struct environment, by number */
    struct slots shares;        /* of struct engine_share, by number */
    struct slots stored; /* of struct quota, the storage quota of its project, by number */
    struct figures_table figures;  /* counters, by environment */
    struct table flights;          /* of struct flight, by environment and run id */
    struct table waiters, awaited; /* waits.c: waiting runs, and what they wait for */
    struct table debounce_keys;    /* of struct debounce_key, of debounce_keys.c */
    struct table end_points;       /* ends.c: of struct end_point, by environment and id */
    struct list ends_due;          // end_point::link; ended, their watches are to be called
    struct flusher end_notifier;   /* calls them */
    struct list triggers;          // trigger_op::link; not answered yet
    struct list writes;            // document_write::link; not answered yet
    struct list resets;            // reset_key::link; not answered yet
    unsigned reads;                /* reads in flight that the engine began by itself */
    struct list doubts;            // doubt::link; leases that may not have reached a worker
    struct list sweeps;            // sweep::link; not finished yet
    struct list retries;           // retry::link; operations to retry
    struct timer retry_timer;      /* retries them */
    struct fleets fleets;          /* workers, versions and sessions of all environments */
    struct flusher evictor;        /* keeps finished runs within the budget */
    char last_id[ID_MAX];          /* engine_make_id */
    int64_t newest_ms;             /* when the newest loaded run was created; Unix ms */
    uint64_t served;               /* number of leases so far; dequeue.c */
    struct table project_turns;    /* of struct project_turn, of dequeue.c */
    uint32_t due_kind, wait_kind;  /* of timers: runs, dequeues */
    uint32_t doubt_kind;           /* and doubts */
    uint32_t refill_kind;          /* of engine_share::refill */
    uint32_t retry_kind;           /* of retry_timer */
    engine_sessions_fn *on_sessions; /* NULL: no listener */
    void *sessions_owner;
    engine_notice_fn *on_notice; /* NULL: no listener */
    void *notice_owner;
    engine_change_fn *on_change; /* NULL: no listener */
    void *change_owner;
    engine_drop_fn *on_drop; /* NULL: no listener */
    void *drop_owner;
    bool draining, stopped;
    bool follows;    /* it decides nothing (engine_follow) */
    bool is_loading; /* some runs that hold slots may not be in memory yet */
};

static inline struct engine_share *engine_share_of(const struct environment *env)
{
    return slots_get(&env->engine->shares, env->number);
}

/* Returns the storage quota of the environment's project; NULL if it has none. */
static inline struct quota *engine_storage_quota(const struct environment *env)
{
    return slots_get(&env->engine->stored, env->number);
}

/* state.c */

/* Returns true if the last commit failed, or there is no space for another. */
bool engine_store_fails(const struct engine *engine);

/* Returns true if this gateway follows a leader that has dropped the environment. */
bool engine_was_left(const struct environment *env);

/* Wakes the evictor if the finished runs of the environment exceed its budget. */
void engine_evict(struct engine *engine, const struct environment *env);

/* Notifies the listener that the run's worker must look at it (engine_on_notice). */
void engine_notice(const struct engine *engine, const struct tracked *run);

/* Returns the creation time of a run created now, Unix ms. It is not before that of any
 * loaded run, unless those were created while the clock was more than CREATED_AHEAD_MS
 * ahead. */
int64_t engine_creation_ms(const struct engine *engine);

/* Returns the monotonic deadline of a wall-clock time. */
int64_t engine_deadline(const struct engine *engine, int64_t unix_ms);

/* place.c */

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

/* stale_limits.c */

void stale_limits_init(struct engine_share *share);
void stale_limits_finish(struct engine_share *share);

/* quota.c */

/* The environment's stored bytes have changed by this many; may be negative. */
void quota_on_stored(void *owner, uint32_t number, int64_t bytes);
uint64_t quota_share_of(void *owner, uint32_t number);

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
