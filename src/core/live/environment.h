/* environment.h - one environment in memory: its runs, their order, and their listeners.
 *
 *   run table: every unfinished run, and every run changed after `cold`
 *   hub:       topics, their orders, and their listeners
 *   windows:   the runs that live lists and counts show, as of environment_evaluated
 *   recent:    the ring of updates
 *   queues:    runs that wait for a worker
 *   stats:     samples of its activity
 *   tasks:     what each task did in the last few hours
 *
 *   seq:   0 ────── purged ───────── cold ──────────────────────── applied
 *               retention         only the store has it    memory has everything
 *
 * Each change of a run has a number in its environment, its seq. A run's rev is the seq of
 * its last change.
 *
 * Anything that a client can name is looked up inside its environment, never by id alone,
 * so no tenant reaches another's runs. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/quota.h"
#include "base/table.h"
#include "core/changes/history.h"
#include "core/changes/reach.h"
#include "core/changes/recent.h"
#include "core/changes/tracked.h"
#include "core/counters/figures.h"
#include "core/counters/stats.h"
#include "core/counters/task_figures.h"
#include "core/live/certainty.h"
#include "core/live/evaluation.h"
#include "core/live/hub.h"
#include "core/live/windows.h"
#include "core/queues/queue.h"
#include "core/wire/view.h"
#include "runcast/store.h"

struct engine;
struct fleet;

enum { GENERATION_BITS = 5 };

struct environment {
    uint32_t number;
    char id[ID_MAX]; /* what clients see */
    bool is_dev;
    bool is_followed; /* another gateway decides, and counts in its figures */
    bool is_cleared;  /* environment_clear was called, and environment_land was not yet */
    /* How often memory was cleared, modulo 32. A feed of another generation begins again. */
    uint8_t generation : GENERATION_BITS;
    struct store *store;
    struct loop *loop;

    struct table runs;     /* of struct tracked, by id */
    struct table children; /* of struct children, by parent id */
    /* Reads in progress: struct run_load by run id (run_read.h). */
    struct table loads;
    struct hub hub;
    struct windows windows;       /* live lists and counts */
    struct evaluation evaluation; /* changes that the windows have yet to evaluate */
    struct recent recent;
    struct history history;
    struct queues queues;
    struct stats stats;
    struct task_table tasks;
    struct figures *figures; /* the engine's; NULL: nothing is counted */
    struct view views[VIEWS_MAX];
    /* Counts the views in use by its project, or by the project's preview branches; NULL:
     * no project. */
    struct quota *project_views;

    uint64_t applied;       /* every change up to here is in memory */
    struct reaches reaches; /* wait until it is higher */
    uint64_t cold;   /* of runs last changed up to here, memory has only unfinished ones */
    uint64_t purged; /* highest rev that retention removed */
    int64_t floor;   /* Unix ms; every final run last changed before it was removed */

    struct certainty *certainty; /* the engine's; NULL: memory is never in doubt */
    struct engine *engine;       /* decides about runs; borrowed */
    struct fleet *fleet;         /* executes runs (core/fleet/fleet.h) */

    size_t run_bytes;    /* of all runs in memory */
    struct quota finals; /* bytes of the final ones; it has no limit of its own */
    size_t budget;       /* for finals.used */
    uint64_t evicted_to; /* rev after which eviction continues */
    uint32_t unfinished;
    uint32_t unfinished_by_status[RUN_CANCELED];
    /* The sum of run_sum of the unfinished runs: equal in two memories that have the same
     * ones (run_sum.h). */
    uint64_t sum;
    uint32_t holders; /* references by environment_hold */
    /* Counts the unfinished runs of its project, or of the project's preview branches, and
     * runs being triggered; NULL: no project. */
    struct quota *project_unfinished;
    /* Bytes of the project's final runs in memory. trimmed_quota::largest is an
     * environment. NULL: no project. */
    struct trimmed_quota *project_final;
    /* Bytes of unsent responses of its project, or of the project's preview branches. Feeds
     * wait until it has room. NULL: no project. */
    struct quota *answers;
};

/* Unfinished runs in memory by parent. */
struct children {
    char parent[RUN_ID_MAX];
    struct tracked **runs;
    uint32_t count, capacity;
};

struct environment *environment_create(struct loop *loop, struct store *store,
                                       uint32_t number, const char *id, bool is_dev,
                                       size_t budget, uint32_t concurrency);
/* Keeps the environment until environment_release, for a caller that will use it again. The
 * environment of an archived branch leaves memory once it has no holders. */
static inline void environment_hold(struct environment *env)
{
    env->holders++;
}

static inline void environment_release(struct environment *env)
{
    assert(env->holders > 0);
    env->holders--;
}

/* Requires that every feed was finished. */
void environment_destroy(struct environment *env);

/* "<number>:<id>", the name of a run or a document in a table of all environments. */
enum { ENVIRONMENT_KEY = ID_MAX + 12 };
void environment_key(const struct environment *env, struct slice id,
                     char key[ENVIRONMENT_KEY]);
struct slice environment_key_id(const char *key);

/* Returns true for preview and its branches, which count as one environment for the limits
 * of their project. */
static inline bool environment_is_branch(const struct environment *env)
{
    return env->project_unfinished && env->project_unfinished->outer;
}

/* Returns NULL if the run is not in memory; the store may have it if it is final. */
static inline struct tracked *environment_find(const struct environment *env,
                                               struct slice id)
{
    return table_find(&env->runs, id);
}

/* Returns the seq up to which the windows have evaluated every change. */
static inline uint64_t environment_evaluated(const struct environment *env)
{
    return env->evaluation.count ? env->evaluation.first - 1 : env->applied;
}

/* Returns true if memory is too old to be shown, although that of other environments is not. */
static inline bool environment_is_late(const struct environment *env)
{
    return reaches_are_late(&env->reaches);
}

/* Returns false if another process may have written since, so that nothing may be reported
 * as in sync. */
static inline bool environment_is_certain(const struct environment *env)
{
    return (!env->certainty || certainty_holds(env->certainty)) &&
           !environment_is_late(env);
}

/* Returns true if another gateway decides about the runs, and memory may lag. */
static inline bool environment_follows(const struct environment *env)
{
    return env->certainty && certainty_asks(env->certainty);
}

/* Returns false if a client that begins here has to wait until memory is confirmed
 * (certainty_confirm). */
static inline bool environment_may_serve(const struct environment *env)
{
    return environment_is_certain(env) && !environment_follows(env);
}

/* Returns false if memory has every run, so the store need not be read. */
static inline bool environment_is_cold(const struct environment *env)
{
    return env->cold > 0;
}

/* Applies a change that the store has numbered; seq is applied + 1. Every change enters
 * memory here. Takes ownership of the run's texts, moves the run in its orders, and
 * publishes the update to its listeners. */
struct tracked *environment_put(struct environment *env, struct run *run, uint64_t seq);

/* Notes a change that is not of a run: seq is applied + 1. */
void environment_pass(struct environment *env, uint64_t seq);

/* Applies the newest state of a run, read from the store. Its rev is above applied, and the
 * numbers in between are left out. Takes ownership of the run's texts. Call it in the order
 * of revs, and environment_land after the last one. Until then memory has no state of any
 * moment, and nothing of it may be shown. */
struct tracked *environment_jump(struct environment *env, struct run *run);

/* Ends a jump to the state at seq, also if no run has changed. Listeners get what is new by
 * walks, and the store counts for the windows again. If memory was cleared before, listeners
 * begin again: each subscription with a snapshot, each live list with all of its rows. */
void environment_land(struct environment *env, uint64_t seq);

/* Drops every run from memory, because they cannot be used, and forgets all positions: those
 * that follow may be lower. Stops when the turn's time is used up, and then returns true: call
 * it again. Load the unfinished runs afterwards (environment_load), and call
 * environment_begin_at. No listener may be visited before environment_land. */
bool environment_clear(struct environment *env);

/* Memory has every unfinished run as of seq, and no other. */
void environment_begin_at(struct environment *env, uint64_t seq);

/* Returns true if retention has removed the run. A read of the store that began earlier may
 * still deliver it. */
bool environment_has_purged(const struct environment *env, const struct run *run);

/* Adds a run found in the store at startup, without an update to listeners. Takes ownership
 * of its texts. */
struct tracked *environment_load(struct environment *env, struct run *run);

/* Returns true if the final runs take more than the environment's budget, or those of its
 * project more than the project's. */
static inline bool environment_is_over_budget(const struct environment *env)
{
    return env->finals.used > env->budget || trimmed_quota_excess(env->project_final);
}

/* Drops final runs, lowest rev first, until the rest takes at most `keep` bytes; raises
 * cold. Stops when the turn's time is used up, and then returns true: call it again. */
bool environment_evict(struct environment *env, size_t keep);

/* Moves purged and floor to this position, up to which retention has removed final runs,
 * and drops those runs from memory. Stops when the turn's time is used up, and then returns
 * true: call it again. *at is the rev that it has got to, 0 at the first call for a
 * position. */
bool environment_purge(struct environment *env, const struct store_position *position,
                       uint64_t *at);

const struct children *environment_children(const struct environment *env,
                                            struct slice parent);

/* Returns the view that wanted describes, and counts one more use of it, until
 * view_release. If too many views leave fields out, returns a wider one, with up to all
 * that the token allows. Returns NULL if VIEWS_MAX others are in use. */
struct view *environment_view(struct environment *env, const struct view *wanted);
