/* engine.c - creates, starts and stops the engine and its environments.
 *
 * It uses all of the engine's files, and none of them calls it; getters they need are in
 * state.c. flight.c decides commands, apply.c does what follows from a change. */
#include "core/engine/engine.h"

#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/engine/calls.h"
#include "core/engine/store_retry.h"
#include "core/state/debounce_keys.h"
#include "core/state/ends.h"
#include "core/state/rates.h"
#include "core/state/singletons.h"
#include "core/state/stale_limits.h"

enum {
    PROJECT_SHARES = 4, /* a project has the memory of this many environments */
    TRIMMED_SHARE = 8,  /* evicts 1/8 at once, to avoid a search for each run */
    TAKEN_OVER_AT_ONCE = 16,
};

/* If a project's finished runs exceed its budget, the environment with the most bytes
 * evicts some; preview branches count as one environment. A small environment keeps its
 * runs, however busy the others are. */
static void note_largest(struct environment *env)
{
    struct trimmed_quota *project = env->project_final;
    if (!trimmed_quota_excess(project))
        return;
    const struct environment *largest = project->largest;
    if (!largest || quota_gives_before(&env->finals, &largest->finals, &project->quota))
        project->largest = env;
}

static size_t bytes_to_keep(struct environment *env)
{
    struct trimmed_quota *project = env->project_final;
    if (!project || project->largest != env)
        return env->budget;
    project->largest = NULL;
    size_t surplus = trimmed_quota_excess(project);
    if (!surplus) /* another environment has evicted runs meanwhile */
        return env->budget;
    size_t share = env->finals.used / TRIMMED_SHARE;
    size_t less = surplus > share ? surplus : share;
    size_t keep = less < env->finals.used ? env->finals.used - less : 0;
    return keep < env->budget ? keep : env->budget;
}

void engine_join_finished(struct environment *env, struct trimmed_quota *project,
                          struct quota *branches)
{
    size_t memory = env->engine->options.memory;
    if (branches)
        branches->outer = &project->quota;
    env->project_final = project;
    env->finals.outer = branches ? branches : &project->quota;
    project->quota.limit =
        memory < SIZE_MAX / PROJECT_SHARES ? PROJECT_SHARES * memory : SIZE_MAX;
}

static bool evict(struct flusher *flusher)
{
    struct engine *engine = container_of(flusher, struct engine, evictor);
    bool more = false;
    uint32_t at = 0;
    for (struct environment *env; (env = slots_next(&engine->environments, &at));)
        note_largest(env);
    at = 0;
    for (struct environment *env; (env = slots_next(&engine->environments, &at));)
        more |= engine_was_left(env) ? environment_clear(env)
                                     : environment_evict(env, bytes_to_keep(env));
    return more;
}

static void on_fleet(void *owner, struct environment *env)
{
    struct engine *engine = owner;
    engine_sweep_environment(engine, env);
    engine_match(engine, env);
    if (env->is_dev && engine->on_sessions)
        engine->on_sessions(engine->sessions_owner, env);
}

struct engine *engine_create(struct loop *loop, struct store *store,
                             const struct engine_options *options)
{
    struct engine *engine = mem_new(struct engine);
    engine->loop = loop;
    engine->store = store;
    store->on_stored = quota_on_stored;
    store->share_of = quota_share_of;
    store->stored_owner = engine;
    engine->options = *options;
    certainty_init(&engine->certainty, loop);
    engine->certainty.is_certain = options->is_certain;
    engine->certainty.ask = options->ask;
    engine->certainty.owner = options->owner;
    store_retry_init(engine);
    flights_init(engine);
    waits_init(engine);
    debounce_keys_init(engine);
    ends_init(engine);
    dequeues_init(engine);
    list_init(&engine->triggers);
    list_init(&engine->writes);
    list_init(&engine->resets);
    list_init(&engine->sweeps);
    doubts_init(engine);
    engine->evictor = (struct flusher){ .fn = evict };
    loop_add_flusher(loop, &engine->evictor);
    engine->due_kind = timers_kind(loop_timers(loop), deadlines_on_due);
    engine->refill_kind = timers_kind(loop_timers(loop), rates_on_refill);
    engine->wait_kind = timers_kind(loop_timers(loop), dequeue_timed_out);
    engine->fleets = (struct fleets){ .loop = loop,
                                      .on_change = on_fleet,
                                      .full_quota = engine_full_quota,
                                      .owner = engine };
    fleets_init(&engine->fleets);
    return engine;
}

static void destroy_environment(struct environment *env)
{
    struct engine_share *share = engine_share_of(env);
    loop_cancel_deferred(&share->matching);
    singletons_finish(share);
    stale_limits_finish(share);
    timers_clear(loop_timers(env->loop), &share->refill);
    *slots_at(&env->engine->shares, env->number) = NULL;
    free(share);
    fleet_destroy(env->fleet);
    figures_leave(env->figures);
    environment_destroy(env);
}

void engine_destroy(struct engine *engine)
{
    uint32_t at = 0;
    if (!engine)
        return;
    assert(engine_idle(engine));
    while (!list_empty(&engine->sweeps))
        engine_end_sweep(engine->sweeps.next);
    doubts_finish(engine);
    waits_finish(engine);
    debounce_keys_finish(engine);
    ends_finish(engine);
    dequeues_finish(engine);
    for (struct environment *env; (env = slots_next(&engine->environments, &at));)
        destroy_environment(env);
    slots_finish(&engine->environments);
    slots_finish(&engine->shares);
    slots_finish(&engine->stored);
    loop_remove_flusher(&engine->evictor);
    certainty_finish(&engine->certainty);
    flights_finish(engine);
    store_retry_finish(engine);
    free(engine);
}

/* Returns the concurrency limit. In dev all tasks run on one machine, so its limit is
 * lower: enough to keep the cores busy without running out of memory. */
static uint32_t concurrency_of(const struct engine_options *options, bool is_dev)
{
    uint32_t limit = options->dev_concurrency;
    return is_dev && limit && limit < options->concurrency ? limit : options->concurrency;
}

static void add_share(struct engine *engine, struct environment *env)
{
    struct engine_share *share = mem_new(struct engine_share);
    share->env = env;
    share->matching.fn = engine_match_now;
    list_init(&share->matching.link);
    singletons_init(share);
    stale_limits_init(share);
    *slots_at(&engine->shares, env->number) = share;
}

struct environment *engine_add_environment(struct engine *engine, uint32_t number,
                                           const char *id, bool is_dev)
{
    struct environment *env = environment_create(engine->loop, engine->store, number, id,
                                                 is_dev, engine->options.memory,
                                                 concurrency_of(&engine->options, is_dev));
    env->engine = engine;
    env->certainty = &engine->certainty;
    env->figures = &engine->figures.rest;
    env->is_followed = engine->follows;
    fleet_create(&engine->fleets, env);
    add_share(engine, env);
    *slots_at(&engine->environments, number) = env;
    return env;
}

void engine_count_with(struct engine *engine, struct environment *env, uint32_t number)
{
    figures_leave(env->figures);
    env->figures = figures_join(&engine->figures, number);
}

const struct figures_table *engine_figures(const struct engine *engine)
{
    return &engine->figures;
}

struct environment *engine_next_environment(const struct engine *engine, uint32_t *at)
{
    return slots_next(&engine->environments, at);
}

void engine_retire_environment(struct engine *engine, struct environment *env)
{
    log_decision("environment retired", env->id, NULL,
                 "its branch was archived or its project deleted", NULL);
    engine_share_of(env)->is_retired = true;
    env->budget = 0;
    history_finish(&env->history); /* no listener is left to read it */
    engine_sweep_environment(engine, env);
    engine_evict(engine, env);
}

bool engine_may_drop_environment(struct engine *engine, const struct environment *env)
{
    engine_evict(engine, env); /* the call before may have left ended runs in memory */
    if (engine->follows && !engine_was_left(env))
        return false; /* its changes still arrive */
    return engine_is_retired(env) && !env->holders && !env->runs.count && !env->hub.feeds;
}

void engine_drop_environment(struct engine *engine, struct environment *env)
{
    assert(engine_may_drop_environment(engine, env));
    log_decision("environment dropped", env->id, NULL,
                 "its runs have ended and no request uses it", NULL);
    uint32_t number = env->number;
    *slots_at(&engine->environments, number) = NULL;
    destroy_environment(env);
    if (engine->on_drop)
        engine->on_drop(engine->drop_owner, number);
}

void engine_trim(struct engine *engine, struct environment *env)
{
    if (environment_is_over_budget(env) || engine_was_left(env))
        loop_wake(engine->loop, &engine->evictor);
}

void engine_follow(struct engine *engine)
{
    engine->follows = true;
}

void engine_stop_following(struct engine *engine)
{
    uint32_t at = 0;
    engine->follows = false;
    for (struct environment *env; (env = slots_next(&engine->environments, &at));) {
        stats_finish(&env->stats);
        stats_init(&env->stats, loop_wall_ms(engine->loop));
        task_table_finish(&env->tasks);
        env->is_followed = false;
        engine_share_of(env)->is_retired = false; /* its runs were not canceled here */
    }
}

void engine_note_newest(struct engine *engine, const char *id, int64_t created_ms)
{
    if (*id)
        text_note_id(id, engine->last_id);
    if (engine->newest_ms < created_ms)
        engine->newest_ms = created_ms;
}

/* Sets no timer: no deadline is due before everything is in memory; the sweep sets them. */
static void decide_from_now(struct engine *engine, struct tracked *run)
{
    engine_note_newest(engine, run->run.id, run->run.created_at);
    run->alive_until = loop_now_ms(engine->loop) + engine->options.heartbeat_ms;
    debounce_keys_note(engine, run);
    singletons_note(run);
    engine_place(engine, run);
    timers_clear(loop_timers(engine->loop), &run->timer);
}

/* A command may have loaded the run while the page was being read (take_loaded in flight.c). */
void engine_load_run(struct engine *engine, struct environment *env, struct run *run)
{
    struct tracked *loaded = environment_find(env, slice_of(run->id));
    engine->is_loading = true;
    run_share_names(run);
    if (loaded)
        run_finish(run);
    else
        loaded = environment_load(env, run);
    if (env->evicted_to >= loaded->run.rev)
        env->evicted_to = loaded->run.rev - 1; /* it leaves memory before newer ones */
    decide_from_now(engine, loaded);
}

bool engine_take_over(struct engine *engine, struct environment *env, uint64_t *at)
{
    const struct order *all = &env->hub.all.order;
    struct timeslice timeslice = loop_timeslice(engine->loop);
    engine->is_loading = true;
    for (uint32_t i = order_after(all, *at); i < all->count; i++) {
        struct place place = order_place(all, i);
        if (!timeslice_left_every(&timeslice, TAKEN_OVER_AT_ONCE))
            return true;
        *at = place.rev;
        if (place.run)
            decide_from_now(engine, place.run);
    }
    return false;
}
