/* windows.c - the places of windows at topics, and the watches that a change concerns.
 *
 * A window that has changed is marked, and the feeds of its watches are put in line for a
 * visit. The first visit removes the mark (watch.c). */
#include "core/live/windows.h"

#include "base/mem.h"
#include "core/live/environment.h"
#include "core/live/watch.h"
#include "core/live/window_load.h"

enum { MINUTE_MS = 60 * 1000 };

static struct slice window_key(const void *value)
{
    return query_key(((const struct window *)value)->query);
}

void windows_init(struct windows *windows, struct environment *env)
{
    windows->env = env;
    windows->quota.limit = WINDOWS_MAX;
    table_init(&windows->by_key, window_key);
    for (int i = 0; i < RUN_STATUS_COUNT; i++)
        list_init(&windows->by_status[i]);
}

void windows_finish(struct windows *windows)
{
    timers_clear(loop_timers(windows->env->loop), &windows->timer);
    table_finish(&windows->by_key);
}

/* ---- places ---- */

static void add_place(struct window *window, struct topic *topic, struct list *places)
{
    struct window_place *place = &window->standing[window->standing_count++];
    place->window = window;
    place->topic = topic;
    list_append(places, &place->link);
}

static void add_topics(struct window *window, enum topic_kind kind,
                       const struct slice *names, size_t count)
{
    window->standing = mem_new_array(struct window_place, count);
    for (size_t i = 0; i < count; i++) {
        struct bytes *name = bytes_create_shared(names[i]);
        struct topic *topic = hub_topic(&window->env->hub, kind, name);
        bytes_unref(name);
        add_place(window, topic, &topic->places);
    }
}

static void add_statuses(struct windows *windows, struct window *window)
{
    window->standing = mem_new_array(struct window_place, RUN_STATUS_COUNT);
    for (int i = 0; i < RUN_STATUS_COUNT; i++)
        if (window->query->filter.statuses & 1u << i)
            add_place(window, NULL, &windows->by_status[i]);
}

static void settle_down(struct windows *windows, struct window *window)
{
    const struct run_filter *f = &window->query->filter;
    if (f->batch.ptr)
        add_topics(window, TOPIC_BATCH, &f->batch, 1);
    else if (f->tag_count)
        add_topics(window, TOPIC_TAG, f->tags, f->every_tag ? 1 : f->tag_count);
    else if (f->task_count)
        add_topics(window, TOPIC_TASK, f->tasks, f->task_count);
    else if (f->queue_count)
        add_topics(window, TOPIC_QUEUE, f->queues, f->queue_count);
    else if (f->statuses)
        add_statuses(windows, window);
    else
        add_topics(window, TOPIC_ALL, &(struct slice){ 0 }, 1);
}

static void leave_places(struct window *window)
{
    for (size_t i = 0; i < window->standing_count; i++) {
        struct window_place *place = &window->standing[i];
        list_remove(&place->link);
        if (place->topic)
            hub_release(&window->env->hub, place->topic);
    }
}

/* ---- changed windows ---- */

void windows_mark(struct window *window)
{
    if (window->marked)
        return;
    window->marked = true;
    list_each (link, &window->watches) {
        struct watch *watch = container_of(link, struct watch, window_link);
        hub_visit(&window->env->hub, watch->feed);
    }
}

static void on_loaded(struct window *window, enum store_status status)
{
    window->refused = status == STORE_SLOW;
    windows_mark(window);
    if (!status)
        window_load_begin(window, on_loaded);
}

/* The counts are known, or the period has moved, and with it the set of the window. */
static void on_counted(struct window *window)
{
    window_cut(window, window->env->floor, window->query->filter.created_from);
    windows_mark(window);
    windows_serve(window);
}

void windows_serve(struct window *window)
{
    if (!window->refused)
        window_load_begin(window, on_loaded);
    tally_begin(window);
}

/* ---- each minute ---- */

/* Moves periods, and has removed runs counted again. */
static void on_minute(struct timer *timer)
{
    struct windows *windows = container_of(timer, struct windows, timer);
    struct loop *loop = windows->env->loop;
    int64_t now = loop_wall_ms(loop);
    size_t at = 0;
    for (struct window *window; (window = table_next(&windows->by_key, &at));) {
        int64_t period = window->query->period_ms;
        if (period)
            tally_advance(window, now > period ? now - period : 1);
        windows_serve(window);
    }
    if (windows->by_key.count)
        loop_set_timer(loop, timer, timers_kind(loop_timers(loop), on_minute), MINUTE_MS);
}

/* ---- windows ---- */

struct window *windows_find(struct windows *windows, struct query *query)
{
    struct window *window = table_find(&windows->by_key, query_key(query));
    size_t cost = query_cost(query).queries;
    if (window || !quota_has(&windows->quota, cost)) {
        query_unref(query);
        return window;
    }
    window = window_create(windows->env, query);
    window->tally.changed = on_counted;
    table_insert(&windows->by_key, window);
    quota_take(&windows->quota, cost);
    settle_down(windows, window);
    if (!windows->timer.place)
        loop_set_timer(windows->env->loop, &windows->timer,
                       timers_kind(loop_timers(windows->env->loop), on_minute), MINUTE_MS);
    return window;
}

void windows_release(struct windows *windows, struct window *window)
{
    if (!window->tally.users)
        tally_stop(window);
    if (!list_empty(&window->watches))
        return;
    window_load_abandon(window);
    leave_places(window);
    table_remove(&windows->by_key, query_key(window->query));
    quota_release(&windows->quota, query_cost(window->query).queries);
    window_destroy(window);
}

/* ---- changes ---- */

void windows_evaluate(struct window *window, const struct run *before,
                      const struct run *after)
{
    const struct query *query = window->query;
    if (window->evaluated == after->rev)
        return;
    window->evaluated = after->rev;
    bool had = before && query_matches(query, before), has = query_matches(query, after);
    if (!had && !has)
        return;
    uint64_t counted = window->tally.step;
    tally_note(&window->tally, after, had ? before->status : TALLY_NONE,
               has ? after->status : TALLY_NONE);
    if (window_evaluate(window, after, has) || counted != window->tally.step)
        windows_mark(window);
    window_load_begin(window, on_loaded);
}

void windows_purge(struct windows *windows)
{
    size_t at = 0;
    for (struct window *window; (window = table_next(&windows->by_key, &at));) {
        if (window_cut(window, windows->env->floor, window->query->filter.created_from))
            windows_mark(window);
        window->tally.stale = true;
    }
}

void windows_begin_again(struct windows *windows)
{
    size_t at = 0;
    for (struct window *window; (window = table_next(&windows->by_key, &at));) {
        window_load_abandon(window);
        window_forget(window);
        windows_mark(window);
    }
}

void windows_count_again(struct windows *windows)
{
    size_t at = 0;
    for (struct window *window; (window = table_next(&windows->by_key, &at));) {
        tally_stop(window);
        windows_serve(window);
    }
}
