/* state.c - what all files of the engine reach: its getters, and reading a run. It calls none
 * of them. */
#include "engine/state.h"

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

struct environment *engine_environment(const struct engine *engine, uint32_t number)
{
    return slots_get(&engine->environments, number);
}

void engine_evict(struct engine *engine, const struct environment *env)
{
    if (env->final_bytes > env->budget)
        loop_wake(engine->loop, &engine->evictor);
}

int64_t engine_deadline(const struct engine *engine, int64_t unix_ms)
{
    int64_t left = unix_ms - loop_wall_ms(engine->loop);
    return loop_now_ms(engine->loop) + (left > 0 ? left : 0);
}

void engine_match(struct engine *engine, struct environment *env)
{
    if (env->seated)
        loop_defer(engine->loop, &env->matching);
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

/* ---- reading a run ---- */

/* done may free the operation. */
static void finish_read(struct run_read *read, enum err status)
{
    struct environment *env = read->env;
    bytes_clear(&read->load.name);
    read->done(read, status);
    environment_release(env);
}

static void on_read_deferred(struct deferred *deferred)
{
    struct run_read *read = container_of(deferred, struct run_read, deferred);
    struct slice id = bytes_slice(read->load.name);
    struct tracked *run = environment_find(read->env, id);
    if (!run) {
        read->env->store->ops->load(read->env->store, &read->load);
        return;
    }
    read->run = &run->run;
    finish_read(read, OK);
}

static void on_read_loaded(struct store_load *load, enum store_status status)
{
    struct run_read *read = container_of(load, struct run_read, load);
    struct run run = load->run; /* done may free the operation */
    read->run = status ? NULL : &run;
    read->loaded = !status;
    finish_read(read, err_of_store(status));
    if (!status)
        run_finish(&run);
}

void run_read_begin(struct environment *env, struct slice run_id, struct run_read *read,
                    void (*done)(struct run_read *read, enum err status))
{
    *read = (struct run_read){ .env = env, .done = done };
    environment_hold(env);
    read->load = (struct store_load){ .env = env->number,
                                      .name = bytes_create(run_id),
                                      .done = on_read_loaded };
    read->deferred.fn = on_read_deferred;
    list_init(&read->deferred.link);
    loop_defer(env->loop, &read->deferred);
}
