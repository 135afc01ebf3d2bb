/* environment.h - one environment: its runs in memory, their order, its listeners.
 *
 *   run table: every unfinished run, and everything changed after `cold`
 *   hub:       topics, their orders, who listens
 *   windows:   what live lists and counts are cut from
 *   recent:    the ring of updates
 *   queues:    what waits for a worker
 *   stats:     samples of what happened
 *
 *   seq:   0 ────── purged ───────── cold ──────────────────────── applied
 *               retention         only the store has it    memory has everything
 *
 * Everything a client can name is looked up in here: nothing is found by id alone, so no
 * tenant meets another's runs. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/room.h"
#include "base/table.h"
#include "core/counters/figures.h"
#include "core/counters/stats.h"
#include "core/live/certainty.h"
#include "core/live/history.h"
#include "core/live/hub.h"
#include "core/live/recent.h"
#include "core/live/windows.h"
#include "core/model/queue.h"
#include "core/wire/view.h"
#include "runcast/store.h"

struct engine;
struct fleet;

/* A run in memory. */
struct tracked {
    struct run run;
    struct environment *env;
    struct timer timer; /* until due_at, or it is given up */
    struct queue_item item;
    struct topic *topic; /* of its own listeners; NULL: none */
    int64_t alive_until; /* monotonic ms; moved by heartbeats */
    int64_t heard_until; /* the same by any call of the CLI that polls it; 0: none does */
    bool in_flight;      /* a commit of it is on its way */
};

struct environment {
    uint32_t number;
    char id[ID_MAX]; /* what clients see */
    bool is_dev;
    struct store *store;
    struct loop *loop;

    struct table runs;     /* of struct tracked, by id */
    struct table children; /* of struct children, by parent id */
    struct table loads;    /* of struct run_load, by run id: reads under way (run_read.h) */
    struct hub hub;
    struct windows windows; /* live lists and counts */
    struct recent recent;
    struct history history;
    struct queues queues;
    struct stats stats;
    struct figures *figures; /* the engine's; NULL: what happens here is counted nowhere */
    struct view views[VIEWS_MAX];
    struct room *project_views; /* counts those of its project in use; NULL: no project */

    uint64_t applied; /* every change up to here is in memory */
    uint64_t cold;    /* changes up to here: only unfinished runs are in memory */
    uint64_t purged;  /* highest rev that retention removed */
    int64_t floor;    /* every final run last changed before is gone; Unix ms */

    struct certainty *certainty; /* the engine's; NULL: memory is never in doubt */
    struct engine *engine;       /* who decides; borrowed */
    struct fleet *fleet;         /* who executes (core/fleet/fleet.h) */

    size_t run_bytes;    /* of all runs in memory */
    size_t final_bytes;  /* of the final ones */
    size_t budget;       /* for final_bytes */
    uint32_t evict_from; /* place in the order of all where the next look starts */
    uint32_t unfinished;
    uint32_t unfinished_by_status[RUN_CANCELED];
    uint32_t holders; /* environment_hold */
    /* Counts the unfinished runs of its project, and runs that arrive; NULL: no project. */
    struct room *project_unfinished;
    /* Bytes of the final runs of its project in memory; largest is an environment. NULL: no
     * project. */
    struct trimmed_room *project_final;
    struct room
        *answers; /* of its project: unsent ones; feeds wait for it. NULL: of none */
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
/* Who will look at an environment again later holds it until then: the environment of a
 * branch that was archived leaves memory when nobody does. */
static inline void environment_hold(struct environment *env)
{
    env->holders++;
}

static inline void environment_release(struct environment *env)
{
    assert(env->holders > 0);
    env->holders--;
}

/* Every feed has left. */
void environment_destroy(struct environment *env);

/* "<number>:<id>": names a run or a document in a table of all environments. */
enum { ENVIRONMENT_KEY = ID_MAX + 12 };
void environment_key(const struct environment *env, struct slice id,
                     char key[ENVIRONMENT_KEY]);
struct slice environment_key_id(const char *key);

/* NULL: not in memory; the store may have it if it is final. */
static inline struct tracked *environment_find(const struct environment *env,
                                               struct slice id)
{
    return table_find(&env->runs, id);
}

/* Returns false if another process may have written since, so nothing may be reported as in
 * sync. */
static inline bool environment_is_certain(const struct environment *env)
{
    return !env->certainty || certainty_holds(env->certainty);
}

/* False: memory has every run, and the store need not be asked for one. */
static inline bool environment_is_cold(const struct environment *env)
{
    return env->cold > 0;
}

/* The one way in for a change that the store has numbered: takes over the run's texts.
 * Moves it in its orders, publishes the update to who listens. seq is applied + 1. */
struct tracked *environment_put(struct environment *env, struct run *run, uint64_t seq);

/* Retention has removed the run from memory, although a read of the store that began before may
 * still bring it. */
bool environment_has_purged(const struct environment *env, const struct run *run);

/* A run found in the store at start; takes over its texts. Nobody hears of it. */
struct tracked *environment_load(struct environment *env, struct run *run);

/* Returns true if its final runs take more than its budget, or those of its project more than
 * the project may. */
static inline bool environment_is_over_budget(const struct environment *env)
{
    return env->final_bytes > env->budget || trimmed_room_surplus(env->project_final);
}

/* Drops the final runs with the lowest rev until the rest takes no more bytes than keep; cold
 * rises. Stops when the turn's time is over: true when more is to do. */
bool environment_evict(struct environment *env, size_t keep);

/* Retention removed final runs up to this position: floors move, and the runs leave memory.
 * Stops when the turn's time is over: true when more is to do. *at is the rev up to which
 * it has looked; it begins at 0 for each position. */
bool environment_purge(struct environment *env, const struct store_position *position,
                       uint64_t *at);

const struct children *environment_children(const struct environment *env,
                                            struct slice parent);

/* The view of these wishes, counted as used once more; a wider one, up to all that the
 * token allows, when too many leave something out. NULL when VIEWS_MAX others are in use.
 * view_release ends the use. */
struct view *environment_view(struct environment *env, const struct view *wish);
