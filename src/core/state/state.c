/* state.c - the getters of the engine, used by all its files. It calls none of them. */
#include "core/state/state.h"

#include "core/state/members.h"

/* A gateway whose clock differs from the database's by more than this does not become
 * leader. */
enum { CREATED_AHEAD_MS = 30 * 1000 };

const struct engine_options *engine_options(const struct engine *engine)
{
    return &engine->options;
}

struct loop *engine_loop(const struct engine *engine)
{
    return engine->loop;
}

void engine_make_id(struct engine *engine, const char *prefix, int64_t unix_ms,
                    char out[ID_MAX])
{
    text_make_next_id(prefix, unix_ms, engine->last_id);
    memcpy(out, engine->last_id, sizeof(engine->last_id));
}

int64_t engine_creation_ms(const struct engine *engine)
{
    int64_t now_ms = loop_wall_ms(engine->loop), ahead_ms = engine->newest_ms - now_ms;
    if (ahead_ms <= 0)
        return now_ms;
    return now_ms + (ahead_ms < CREATED_AHEAD_MS ? ahead_ms : CREATED_AHEAD_MS);
}

struct store *engine_store(const struct engine *engine)
{
    return engine->store;
}

struct certainty *engine_certainty(struct engine *engine)
{
    return &engine->certainty;
}

struct environment *engine_environment(const struct engine *engine, uint32_t number)
{
    return slots_get(&engine->environments, number);
}

bool engine_is_retired(const struct environment *env)
{
    return engine_share_of(env)->is_retired;
}

bool engine_follows(const struct engine *engine)
{
    return engine->follows;
}

bool engine_was_left(const struct environment *env)
{
    const struct engine *engine = env->engine;
    return engine->follows && engine->options.was_left(engine->options.owner, env->number);
}

void engine_evict(struct engine *engine, const struct environment *env)
{
    if (environment_is_over_budget(env))
        loop_wake(engine->loop, &engine->evictor);
}

int64_t engine_deadline(const struct engine *engine, int64_t unix_ms)
{
    int64_t left = unix_ms - loop_wall_ms(engine->loop);
    return loop_now_ms(engine->loop) + (left > 0 ? left : 0);
}

bool engine_store_fails(const struct engine *engine)
{
    return engine->store->failing || engine->store->full;
}

void engine_match(struct engine *engine, struct environment *env)
{
    if (engine->follows)
        return;
    bool resumes =
        !engine->is_loading && queues_waiting_for(&env->queues, AUDIENCE_RESUMED);
    if (env->fleet->seated || resumes)
        loop_defer(engine->loop, &engine_share_of(env)->matching);
    if (queues_are_stale(&env->queues))
        loop_wake(engine->loop, &engine_share_of(env)->stale_limits);
}

void engine_on_notice(struct engine *engine, engine_notice_fn *fn, void *owner)
{
    engine->on_notice = fn;
    engine->notice_owner = owner;
}

void engine_notice(const struct engine *engine, const struct tracked *run)
{
    if (engine->on_notice)
        engine->on_notice(engine->notice_owner, run);
}

void engine_on_change(struct engine *engine, engine_change_fn *fn, void *owner)
{
    engine->on_change = fn;
    engine->change_owner = owner;
}

void engine_on_drop(struct engine *engine, engine_drop_fn *fn, void *owner)
{
    engine->on_drop = fn;
    engine->drop_owner = owner;
}

void engine_on_sessions(struct engine *engine, engine_sessions_fn *fn, void *owner)
{
    engine->on_sessions = fn;
    engine->sessions_owner = owner;
}

void engine_drain(struct engine *engine)
{
    engine->draining = engine->fleets.is_draining = true;
}

void engine_stop(struct engine *engine)
{
    engine_drain(engine);
    engine->stopped = true;
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
