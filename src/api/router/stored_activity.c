/* stored_activity.c - writes the activity that changed, one environment after another. */
#include "api/router/stored_activity.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/counters/activity_document.h"
#include "core/live/sampling.h"

enum { EVERY_MS = 15 * 60 * 1000 };

struct stored_activity {
    struct api *api;
    struct timer timer;
    uint32_t kind;
    uint32_t at; /* place among the environments */
    bool stopped, writing;
    struct document_write write;
    uint32_t number; /* of the environment that is being written */
};

static void write_next(struct stored_activity *stored);

static struct engine *engine_of(const struct stored_activity *stored)
{
    return api_engine(stored->api);
}

static void set_timer(struct stored_activity *stored)
{
    loop_set_timer(engine_loop(engine_of(stored)), &stored->timer, stored->kind, EVERY_MS);
}

/* Notes the version of the document, or that it must be written again. After a conflict, an
 * earlier write may have succeeded although its commit was reported as failed. */
static void note_result(struct environment *env, enum err status)
{
    if (!status || status == ERR_CONFLICT)
        env->stats.version++;
    if (!status)
        return;
    env->stats.changed = true;
    if (env->store->failing)
        return; /* reported already, or the lead was handed over */
    log_warn("cannot store the activity of an environment", "environment", env->id,
             "reason", errors[status].text, NULL);
}

static void on_written(struct document_write *write, enum err status)
{
    struct stored_activity *stored = container_of(write, struct stored_activity, write);
    struct environment *env = engine_environment(engine_of(stored), stored->number);
    stored->writing = false;
    if (env)
        note_result(env, status);
    write_next(stored);
}

/* Leaves the open sample to the next write. At a stop there is no next one, so the sample
 * is closed first. */
static void write_activity(struct stored_activity *stored, struct environment *env)
{
    struct buf text = { 0 };
    struct bytes *name = bytes_create(SLICE("activity"));
    if (stored->stopped)
        sampling_end(env);
    else
        sampling_pass(env);
    env->stats.changed = env->stats.used;
    activity_document_write(&env->stats, &env->tasks, &text);
    struct bytes *body = buf_to_bytes(&text);
    stored->number = env->number;
    stored->writing = true;
    document_write_begin(engine_of(stored), env->number, DOC_ACTIVITY, name, body,
                         env->stats.version, &stored->write, on_written);
    bytes_unref(name);
    bytes_unref(body);
    buf_finish(&text);
}

/* Writes the next environment that changed, one in a turn. After the last one, waits for
 * the next quarter. */
static void write_next(struct stored_activity *stored)
{
    struct environment *env;
    while ((env = engine_next_environment(engine_of(stored), &stored->at)))
        if (env->stats.changed && !engine_is_retired(env)) {
            write_activity(stored, env);
            return;
        }
    if (!stored->stopped)
        set_timer(stored);
}

static void on_time(struct timer *timer)
{
    struct stored_activity *stored = container_of(timer, struct stored_activity, timer);
    stored->at = 0;
    write_next(stored);
}

struct stored_activity *stored_activity_create(struct api *api)
{
    struct stored_activity *stored = mem_new(struct stored_activity);
    stored->api = api;
    stored->kind = timers_kind(loop_timers(engine_loop(api_engine(api))), on_time);
    return stored;
}

void stored_activity_destroy(struct stored_activity *stored)
{
    free(stored);
}

void stored_activity_start(struct stored_activity *stored)
{
    if (!stored->timer.place && !stored->writing)
        set_timer(stored);
}

void stored_activity_stop(struct stored_activity *stored)
{
    bool waits = stored->timer.place != 0;
    stored->stopped = true;
    timers_clear(loop_timers(engine_loop(engine_of(stored))), &stored->timer);
    if (waits)
        on_time(&stored->timer);
}

bool stored_activity_has_ended(const struct stored_activity *stored)
{
    return !stored->writing;
}

void stored_activity_restore(struct environment *env, const struct document *document)
{
    struct failure why = { 0 };
    env->stats.version = document->version;
    if (activity_document_read(bytes_slice(document->body), loop_wall_ms(env->loop),
                               &env->stats, &env->tasks, &why))
        log_warn("stored activity of an environment is damaged", "environment", env->id,
                 "reason", why.text, NULL);
}
