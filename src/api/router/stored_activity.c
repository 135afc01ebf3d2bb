/* stored_activity.c - writes the activity that changed, of a few environments in a commit. */
#include "api/router/stored_activity.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/counters/activity_document.h"
#include "core/live/sampling.h"

enum { EVERY_MS = 15 * 60 * 1000, AT_ONCE = 16 };

struct stored_activity {
    struct api *api;
    struct timer timer;
    uint32_t kind;
    uint32_t at; /* place among the environments */
    bool stopped, writing;
    struct document_write write;
    struct change changes[AT_ONCE];
    uint32_t numbers[AT_ONCE]; /* of the environments that are being written */
    size_t count;
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

/* Notes the version of the document, or that it must be written again. */
static void note_result(struct environment *env, enum err status)
{
    if (!status)
        env->stats.version++;
    else
        env->stats.changed = true;
}

static void on_written(struct document_write *write, enum err status)
{
    struct stored_activity *stored = container_of(write, struct stored_activity, write);
    stored->writing = false;
    for (size_t i = 0; i < stored->count; i++) {
        struct environment *env = engine_environment(engine_of(stored), stored->numbers[i]);
        if (env)
            note_result(env, status);
    }
    if (status)
        log_warn("cannot store the activity of environments", "reason", errors[status].text,
                 NULL);
    if (!status)
        write_next(stored);
    else if (!stored->stopped)
        set_timer(stored);
}

static struct change change_of(struct environment *env)
{
    struct buf text = { 0 };
    sampling_pass(env);
    activity_document_write(&env->stats, &env->tasks, &text);
    struct change change = { .kind = CHANGE_DOCUMENT,
                             .env = env->number,
                             .expected = env->stats.version,
                             .document = { .kind = DOC_ACTIVITY,
                                           .env = env->number,
                                           .name = bytes_create(SLICE("activity")),
                                           .body = buf_to_bytes(&text) } };
    buf_finish(&text);
    return change;
}

/* Writes the next environments that changed. After the last one, waits for the next
 * quarter. */
static void write_next(struct stored_activity *stored)
{
    struct environment *env;
    stored->count = 0;
    while (stored->count < AT_ONCE &&
           (env = engine_next_environment(engine_of(stored), &stored->at))) {
        if (!env->stats.changed || engine_is_retired(env))
            continue;
        env->stats.changed = false;
        stored->numbers[stored->count] = env->number;
        stored->changes[stored->count++] = change_of(env);
    }
    if (stored->count) {
        stored->writing = true;
        documents_write_begin(engine_of(stored), stored->changes, stored->count,
                              &stored->write, on_written);
    } else if (!stored->stopped) {
        set_timer(stored);
    }
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
