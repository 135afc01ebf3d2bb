/* state.h - what the files of the engine share: its struct, and the calls between them. */
#pragma once

#include "base/buf.h"
#include "base/slots.h"
#include "base/table.h"
#include "core/engine/engine.h"
#include "core/fleet/fleet.h"
#include "core/model/run_end.h"

enum { STORE_AGAIN_MS = 1000 };

/* What the engine keeps of one environment. */
struct engine_share {
    struct environment *env;
    struct deferred matching; /* runs and workers are brought together */
    uint64_t served;          /* when a worker got a run of it last, by engine::served */
    uint32_t arriving;        /* runs of triggers that have no answer yet */
    bool is_retired;          /* its branch was archived, nothing starts in it any more */
};

struct engine {
    struct loop *loop;
    struct store *store;
    struct engine_options options;
    struct certainty certainty;    /* of what memory holds */
    struct slots environments;     /* of struct environment, by number */
    struct slots shares;           /* of struct engine_share, by number */
    struct slots stored;           /* of struct room, its project's, by number */
    struct figures_table figures;  /* what is counted, by environment */
    struct table flights;          /* of struct flight, by environment and run id */
    struct table waiters, awaited; /* waits.c: who waits, and for what */
    struct table end_points;       /* ends.c: of struct end_point, by environment and id */
    struct list ends_told;         // end_point::link; whose watches are to be told
    struct flusher end_teller;     /* tells them */
    struct list triggers;          // trigger_op::link; not answered yet
    struct list writes;            // document_write::link; not answered yet
    struct list resets;            // reset_key::link; not answered yet
    unsigned reads;                /* under way, of what nobody asked for */
    struct list doubts;            // doubt::link; leases that nobody may know of
    struct list sweeps;            // sweep::link; not through yet
    struct list again;             // again::link; what the store has not done
    struct timer again_timer;      /* begins those again */
    struct fleets fleets;          /* who executes, in all environments */
    struct flusher evictor;        /* keeps finished runs inside the budget */
    char last_id[ID_MAX];          /* engine_make_id */
    int64_t newest_ms;             /* creation of the newest run that was loaded; Unix ms */
    uint64_t served;               /* leases given out; dequeue.c */
    struct table project_turns;    /* of struct project_turn, of dequeue.c */
    uint32_t due_kind, wait_kind;  /* of timers: runs, dequeues */
    uint32_t doubt_kind;           /* and doubts */
    uint32_t again_kind;           /* of again_timer */
    engine_sessions_fn *on_sessions; /* NULL: nobody listens */
    void *sessions_owner;
    engine_notice_fn *on_notice; /* NULL: nobody listens */
    void *notice_owner;
    bool draining, stopped;
};

static inline struct engine_share *engine_share_of(const struct environment *env)
{
    return slots_get(&env->engine->shares, env->number);
}

/* The room of the environment's project for what is stored; NULL: it has none. */
static inline struct room *engine_stored_room(const struct environment *env)
{
    return slots_get(&env->engine->stored, env->number);
}

/* state.c */

/* Finished runs leave memory soon, when they are more than the budget. */
void engine_evict(struct engine *engine, const struct environment *env);

/* The worker of the run must look at it (engine_on_notice). */
void engine_notice(const struct engine *engine, const struct tracked *run);

/* Creation time of a run that is made now, Unix ms: not before those of loaded runs, unless the
 * clock that made those was far ahead. */
int64_t engine_creation_ms(const struct engine *engine);

/* Monotonic deadline of a wall-clock time. */
int64_t engine_deadline(const struct engine *engine, int64_t unix_ms);

/* place.c */

/* Puts the run where its state says: queue, slot, timer. */
void engine_place(struct engine *engine, struct tracked *run);

/* Monotonic ms: when the worker of this run is given up, if nothing is heard of it. */
int64_t engine_lost_at(const struct tracked *run);

/* quota.c */

/* The store has so many bytes more of this environment, or less. */
void quota_on_stored(void *owner, uint32_t number, int64_t bytes);
uint64_t quota_share_of(void *owner, uint32_t number);

/* apply.c */

/* Every change of a commit becomes visible, in order. Takes over the runs' texts. */
void engine_apply(struct engine *engine, struct change *changes, size_t count);

/* command.c */

void command_prepare(struct command *command, struct engine *engine,
                     struct environment *env, struct slice run_id,
                     command_decide_fn *decide_fn);

/* The command and those joined to it can be decided again. */
void command_forget_decision(struct command *command);

/* Decides one command on top of `now`. Returns true if it made the change. A run's last change is
 * never older than the one before, whatever the clock does. */
bool command_decide(struct command *command, const struct run *now, struct change *change);

/* Gives the change of the command, and those of the joined ones, the numbers from seq on.
 * Returns the next number. */
uint64_t command_number(struct command *command, uint64_t seq);

/* The command and those joined to it. */
size_t command_count(const struct command *command);
enum err command_outcome(const struct command *command);
void command_finish(struct command *command, const struct run *run, enum err status);

/* flight.c */

void flights_init(struct engine *engine);
void flights_finish(struct engine *engine);

/* deadlines.c */

/* What the state of this run waited for has come. */
void deadlines_on_due(struct timer *timer);

/* sweep.c */

void engine_end_sweep(struct list *link);

/* Cancels the run if its parent was canceled before it came. */
void engine_follow_parent(struct engine *engine, struct tracked *run);

/* Cancels the run if its branch was archived before it came, or changed. */
void engine_follow_branch(struct engine *engine, struct tracked *run);

/* A run that is queued or waits for a version does what the versions of now say. Not while
 * runs are loaded. */
void engine_follow_version(struct engine *engine, struct tracked *run);

/* waits.c */

void waits_init(struct engine *engine);
void waits_finish(struct engine *engine);

/* dequeue.c */
void dequeues_init(struct engine *engine);
void dequeues_finish(struct engine *engine);

void dequeue_timed_out(struct timer *timer);

void doubts_init(struct engine *engine);
void doubts_finish(struct engine *engine);
void engine_match_now(struct deferred *matching);

/* again.c */

/* A command that nobody waits for, which must happen: begun again a second after the store
 * failed, freed when done. */
void command_begin_alone(struct engine *engine, struct environment *env,
                         struct slice run_id, command_decide_fn *decide);
