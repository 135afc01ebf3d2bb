/* engine.c - the engine itself: its parts, writing documents.
 *
 * What happens to a command is in flight.c, what follows from a change in apply.c, reading a
 * run in run_read.c. */
#include "engine/engine.h"

#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "engine/again.h"
#include "engine/leases.h"
#include "engine/state.h"
#include "engine/waiting.h"
#include "engine/worker_versions.h"

enum err err_of_store(enum store_status status)
{
    switch (status) {
    case STORE_OK: return OK;
    case STORE_MISSING: return ERR_NOT_FOUND;
    case STORE_LOST:
    case STORE_TAKEN: return ERR_CONFLICT;
    case STORE_NO_SPACE: return ERR_STORE_FULL;
    default: return ERR_STORE;
    }
}

/* ---- what is stored ---- */

/* What is removed may be more than the sum says, if the sum in the database was too small
 * from the beginning: less than nothing is nothing. */
static void count_stored(struct room *project, int64_t bytes)
{
    size_t less = bytes < 0 ? (size_t)-bytes : 0;
    if (less > project->used)
        less = project->used;
    size_t more = bytes > 0 ? (size_t)bytes : 0;
    room_give(project, less);
    room_take(project, more);
    metric_add(M_STORED_BYTES, (int64_t)more - (int64_t)less);
}

static bool is_full(const struct room *project)
{
    return project && project->limit && !room_has(project, 1);
}

bool engine_is_at_quota(const struct environment *env)
{
    return is_full(env->stored);
}

/* The runs that wait for room to be stored go on, in every environment of the project. */
static void match_project(struct engine *engine, const struct room *project)
{
    uint32_t at = 0;
    for (struct environment *env; (env = slots_next(&engine->environments, &at));)
        if (env->stored == project)
            engine_match(engine, env);
}

void engine_hold_stored(const struct environment *env, size_t bytes)
{
    if (env->stored)
        room_take(env->stored, bytes);
}

/* If the sum in the database was too small, more may have been removed than there was. */
void engine_release_stored(struct engine *engine, const struct environment *env,
                           size_t bytes)
{
    struct room *project = env->stored;
    if (!project || !bytes)
        return;
    bool was_full = is_full(project);
    room_give(project, bytes < project->used ? bytes : project->used);
    if (was_full && !is_full(project))
        match_project(engine, project);
}

static void on_stored(void *owner, uint32_t number, int64_t bytes)
{
    struct engine *engine = owner;
    struct room *project = slots_get(&engine->stored, number);
    if (!project)
        return;
    bool was_full = is_full(project);
    count_stored(project, bytes);
    if (was_full && !is_full(project))
        match_project(engine, project);
}

void engine_join_stored(struct engine *engine, uint32_t number, struct room *project)
{
    struct environment *env = engine_environment(engine, number);
    void **joined = slots_at(&engine->stored, number);
    if (env)
        env->stored = project;
    if (*joined)
        return;
    *joined = project;
    count_stored(project, engine->store->ops->position(engine->store, number).stored);
}

enum err engine_check_quota(const struct environment *env, size_t more, struct failure *why)
{
    const struct room *project = env->stored;
    if (!project || !project->limit || room_has(project, more))
        return OK;
    metric_add(M_OVER_QUOTA, 1);
    return explain(why, ERR_QUOTA,
                   "storage_quota: the project stores %zu of %zu bytes, and this is %zu "
                   "more: wait until retention has removed finished runs, or have the "
                   "quota raised",
                   project->used, project->limit, more);
}

enum err engine_check_growth(const struct environment *env, size_t before, size_t after,
                             struct failure *why)
{
    bool grows = after > before && engine_is_at_quota(env);
    return grows ? engine_check_quota(env, after - before, why) : OK;
}

/* ---- the engine itself ---- */

static bool evict(struct flusher *flusher)
{
    struct engine *engine = container_of(flusher, struct engine, evictor);
    bool more = false;
    uint32_t at = 0;
    for (struct environment *env; (env = slots_next(&engine->environments, &at));)
        more |= environment_evict(env);
    return more;
}

void engine_evict(struct engine *engine, const struct environment *env)
{
    if (env->final_bytes > env->budget)
        loop_wake(engine->loop, &engine->evictor);
}

struct engine *engine_create(struct loop *loop, struct store *store,
                             const struct engine_options *options)
{
    struct engine *engine = mem_new(struct engine);
    engine->loop = loop;
    engine->store = store;
    store->on_stored = on_stored;
    store->stored_owner = engine;
    engine->options = *options;
    again_init(engine);
    flights_init(engine);
    run_loads_init(engine);
    waits_init(engine);
    list_init(&engine->triggers);
    list_init(&engine->writes);
    list_init(&engine->resets);
    list_init(&engine->sweeps);
    engine->evictor = (struct flusher){ .fn = evict };
    loop_add_flusher(loop, &engine->evictor);
    engine->due_kind = timers_kind(loop_timers(loop), run_due);
    engine->leases = leases_create();
    engine->wait_kind = timers_kind(loop_timers(loop), dequeue_timed_out);
    engine->session_kind = timers_kind(loop_timers(loop), sessions_on_time);
    engine->lookout_kind = timers_kind(loop_timers(loop), waiting_on_time);
    return engine;
}

static void destroy_environment(struct environment *env)
{
    timers_clear(loop_timers(env->loop), &env->lookout.timer);
    sessions_destroy(env->sessions);
    workers_destroy(env->workers);
    loop_cancel_deferred(&env->matching);
    environment_destroy(env);
}

void engine_destroy(struct engine *engine)
{
    uint32_t at = 0;
    if (!engine)
        return;
    assert(engine_idle(engine));
    leases_destroy(engine->leases);
    while (!list_empty(&engine->sweeps))
        engine_end_sweep(engine->sweeps.next);
    waits_finish(engine);
    for (struct environment *env; (env = slots_next(&engine->environments, &at));)
        destroy_environment(env);
    slots_finish(&engine->environments);
    slots_finish(&engine->stored);
    loop_remove_flusher(&engine->evictor);
    flights_finish(engine);
    run_loads_finish(engine);
    again_finish(engine);
    free(engine);
}

const struct engine_options *engine_options(const struct engine *engine)
{
    return &engine->options;
}

struct loop *engine_loop(const struct engine *engine)
{
    return engine->loop;
}

struct store *engine_store(const struct engine *engine)
{
    return engine->store;
}

/* Where developers work, the tasks run on one machine: so many at once that its cores are
 * busy and it does not run out of memory. */
static uint32_t concurrency_of(const struct engine_options *options, bool is_dev)
{
    uint32_t limit = options->dev_concurrency;
    return is_dev && limit && limit < options->concurrency ? limit : options->concurrency;
}

struct environment *engine_add_environment(struct engine *engine, uint32_t number,
                                           const char *id, bool is_dev)
{
    struct environment *env = environment_create(engine->loop, engine->store, number, id,
                                                 is_dev, engine->options.memory,
                                                 concurrency_of(&engine->options, is_dev));
    env->engine = engine;
    env->workers = workers_create();
    env->sessions = sessions_create(engine, env);
    env->matching.fn = engine_match_now;
    list_init(&env->matching.link);
    *slots_at(&engine->environments, number) = env;
    return env;
}

void engine_retire_environment(struct engine *engine, struct environment *env)
{
    log_decision("environment retired", env->id, NULL,
                 "its branch was archived or its project deleted", NULL);
    env->retired = true;
    env->budget = 0;
    history_finish(&env->history); /* nobody may listen any more */
    engine_sweep_environment(engine, env);
    engine_evict(engine, env);
}

bool engine_may_drop_environment(struct engine *engine, const struct environment *env)
{
    engine_evict(engine, env); /* the look before may have passed over what has ended */
    return env->retired && !env->holders && !env->runs.count && !env->hub.feeds;
}

void engine_drop_environment(struct engine *engine, struct environment *env)
{
    assert(engine_may_drop_environment(engine, env));
    log_decision("environment dropped", env->id, NULL,
                 "its runs have ended and nobody holds it", NULL);
    leases_forget(engine->leases, env->number);
    *slots_at(&engine->environments, env->number) = NULL;
    destroy_environment(env);
}

struct environment *engine_environment(const struct engine *engine, uint32_t number)
{
    return slots_get(&engine->environments, number);
}

void engine_drain(struct engine *engine)
{
    engine->draining = true;
}

void engine_stop(struct engine *engine)
{
    engine->draining = engine->stopped = true;
}

bool engine_draining(const struct engine *engine)
{
    return engine->draining;
}

bool engine_idle(const struct engine *engine)
{
    return engine->flights.count == 0 && !engine->reads && list_empty(&engine->triggers) &&
           list_empty(&engine->writes) && list_empty(&engine->resets);
}

/* ---- documents ---- */

/* The environments of the changes, which are as many as they were at the beginning: a write
 * may be of the installation, or of a branch that has left memory. */
static void hold_each(struct document_write *write)
{
    for (size_t i = 0; i < write->commit.change_count; i++) {
        struct environment *env =
            engine_environment(write->engine, write->commit.changes[i].env);
        if (env)
            environment_hold(env);
    }
}

static void release_each(struct document_write *write)
{
    for (size_t i = 0; i < write->commit.change_count; i++) {
        struct environment *env =
            engine_environment(write->engine, write->commit.changes[i].env);
        if (env)
            environment_release(env);
    }
}

static void on_written(struct store_commit *commit, enum store_status status)
{
    struct document_write *write = container_of(commit, struct document_write, commit);
    release_each(write); /* nothing leaves memory before the turn is over */
    if (status == STORE_OK)
        engine_apply(write->engine, commit->changes, commit->change_count);
    for (size_t i = 0; status != STORE_OK && i < commit->change_count; i++)
        change_finish(&commit->changes[i]);
    list_remove(&write->link);
    write->done(write, err_of_store(status));
}

void documents_write_begin(struct engine *engine, struct change *changes, size_t count,
                           struct document_write *write,
                           void (*done)(struct document_write *write, enum err status))
{
    write->engine = engine;
    write->done = done;
    write->commit = (struct store_commit){ .changes = changes,
                                           .change_count = count,
                                           .claims = write->claim,
                                           .claim_count = write->claim ? 1 : 0,
                                           .now_ms = loop_wall_ms(engine->loop),
                                           .done = on_written };
    hold_each(write);
    list_append(&engine->writes, &write->link);
    engine->store->ops->commit(engine->store, &write->commit);
}

void document_write_begin(struct engine *engine, uint32_t env, enum document_kind kind,
                          struct bytes *name, struct bytes *body, uint32_t expected,
                          struct document_write *write,
                          void (*done)(struct document_write *write, enum err status))
{
    *write = (struct document_write){ 0 };
    write->change = (struct change){ .kind = CHANGE_DOCUMENT,
                                     .env = env,
                                     .expected = expected,
                                     .document = { .kind = kind,
                                                   .env = env,
                                                   .name = bytes_ref(name),
                                                   .body = bytes_ref(body) } };
    documents_write_begin(engine, &write->change, 1, write, done);
}
