/* windows.c - where windows stand, and who is told of a change.
 *
 * A window that was touched is marked, and the feeds of its watches are put in line for a
 * visit; the first visit takes the mark away (watch.c). */
#include "core/live/windows.h"

#include "base/mem.h"
#include "core/live/environment.h"
#include "core/live/watch.h"
#include "core/live/window_load.h"

enum { MINUTE_MS = 60 * 1000 };

/* Windows whose filters name one batch, tag, task or queue. */
struct window_topic {
    struct bytes *key;  /* a letter for the kind, and the name */
    struct list places; // window_place::link
};

struct window_place {
    struct window *window;
    struct window_topic *topic; /* NULL: of a status, or of none */
    struct list link;           // window_topic::places, windows::by_status or others
};

static struct slice window_key(const void *value)
{
    return query_key(((const struct window *)value)->query);
}

static struct slice topic_key(const void *value)
{
    return bytes_slice(((const struct window_topic *)value)->key);
}

void windows_init(struct windows *windows, struct environment *env)
{
    windows->env = env;
    windows->room.limit = WINDOWS_MAX;
    table_init(&windows->by_key, window_key);
    table_init(&windows->topics, topic_key);
    for (int i = 0; i < RUN_STATUS_COUNT; i++)
        list_init(&windows->by_status[i]);
    list_init(&windows->others);
}

void windows_finish(struct windows *windows)
{
    timers_clear(loop_timers(windows->env->loop), &windows->timer);
    table_finish(&windows->by_key);
    table_finish(&windows->topics);
}

/* ---- places ---- */

static struct bytes *make_key(char kind, struct slice name)
{
    const struct slice parts[] = { { &kind, 1 }, name };
    return bytes_join(parts, 2);
}

static struct window_topic *make_topic(struct windows *windows, char kind,
                                       struct slice name)
{
    struct bytes *key = make_key(kind, name);
    struct window_topic *topic = table_find(&windows->topics, bytes_slice(key));
    if (topic) {
        bytes_unref(key);
        return topic;
    }
    topic = mem_new(struct window_topic);
    topic->key = key;
    list_init(&topic->places);
    table_insert(&windows->topics, topic);
    return topic;
}

static void add_topics(struct windows *windows, struct window *window, char kind,
                       const struct slice *names, size_t count)
{
    window->standing = mem_new_array(struct window_place, count);
    for (size_t i = 0; i < count; i++) {
        struct window_place *place = &window->standing[window->standing_count++];
        place->window = window;
        place->topic = make_topic(windows, kind, names[i]);
        list_append(&place->topic->places, &place->link);
    }
}

static void add_statuses(struct windows *windows, struct window *window)
{
    unsigned statuses = window->query->filter.statuses;
    window->standing = mem_new_array(struct window_place, RUN_STATUS_COUNT);
    for (int i = 0; i < RUN_STATUS_COUNT; i++) {
        if (statuses && !(statuses & 1u << i))
            continue;
        struct window_place *place = &window->standing[window->standing_count++];
        place->window = window;
        list_append(statuses ? &windows->by_status[i] : &windows->others, &place->link);
        if (!statuses)
            return;
    }
}

static void settle_down(struct windows *windows, struct window *window)
{
    const struct run_filter *f = &window->query->filter;
    if (f->batch.ptr)
        add_topics(windows, window, 'b', &f->batch, 1);
    else if (f->tag_count)
        add_topics(windows, window, 'g', f->tags, f->every_tag ? 1 : f->tag_count);
    else if (f->task_count)
        add_topics(windows, window, 't', f->tasks, f->task_count);
    else if (f->queue_count)
        add_topics(windows, window, 'q', f->queues, f->queue_count);
    else
        add_statuses(windows, window);
}

static void leave_places(struct windows *windows, struct window *window)
{
    for (size_t i = 0; i < window->standing_count; i++) {
        struct window_place *place = &window->standing[i];
        list_remove(&place->link);
        if (!place->topic || !list_empty(&place->topic->places))
            continue;
        table_remove(&windows->topics, bytes_slice(place->topic->key));
        bytes_unref(place->topic->key);
        free(place->topic);
    }
}

/* ---- who is told ---- */

void windows_mark(struct window *window)
{
    if (window->marked)
        return;
    window->marked = true;
    list_each (link, &window->watches) {
        struct watch *watch = container_of(link, struct watch, beside);
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

/* The counts are known, or the period has moved, and with it what is in the window. */
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

/* Periods move, and what retention has removed is counted away. */
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
    if (window || !room_has(&windows->room, cost)) {
        query_unref(query);
        return window;
    }
    window = window_create(windows->env, query);
    window->tally.changed = on_counted;
    table_insert(&windows->by_key, window);
    room_take(&windows->room, cost);
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
    leave_places(windows, window);
    table_remove(&windows->by_key, query_key(window->query));
    room_give(&windows->room, query_cost(window->query).queries);
    window_destroy(window);
}

/* ---- changes ---- */

struct window_change {
    struct windows *windows;
    const struct run *before, *after;
};

static void judge(const struct window_change *change, struct window *window)
{
    const struct query *query = window->query;
    const struct run *before = change->before, *after = change->after;
    if (window->judged == after->rev)
        return;
    window->judged = after->rev;
    bool had = before && query_matches(query, before), has = query_matches(query, after);
    if (!had && !has)
        return;
    uint64_t counted = window->tally.step;
    tally_note(&window->tally, after, had ? before->status : TALLY_NONE,
               has ? after->status : TALLY_NONE);
    if (window_judge(window, after, has) || counted != window->tally.step)
        windows_mark(window);
    window_load_begin(window, on_loaded);
}

static void judge_list(const struct window_change *change, const struct list *places)
{
    list_each (link, places)
        judge(change, container_of(link, struct window_place, link)->window);
}

static void judge_topic(const struct window_change *change, char kind,
                        const struct bytes *name)
{
    char room[256];
    if (!name)
        return;
    struct bytes *key = name->len < sizeof(room) ? NULL : make_key(kind, bytes_slice(name));
    if (!key) {
        room[0] = kind;
        memcpy(room + 1, name->data, name->len);
    }
    const struct window_topic *topic =
        table_find(&change->windows->topics,
                   key ? bytes_slice(key) : (struct slice){ room, name->len + 1 });
    bytes_unref(key);
    if (topic)
        judge_list(change, &topic->places);
}

void windows_judge_all(struct windows *windows, const struct run *before,
                       const struct run *after)
{
    const struct window_change change = { windows, before, after };
    const struct tag_list *tags = after->tags;
    judge_list(&change, &windows->others);
    judge_list(&change, &windows->by_status[after->status]);
    if (before && before->status != after->status)
        judge_list(&change, &windows->by_status[before->status]);
    if (!windows->topics.count)
        return;
    judge_topic(&change, 'b', after->batch);
    judge_topic(&change, 't', after->task);
    judge_topic(&change, 'q', after->queue);
    for (uint32_t i = 0; tags && i < tags->count; i++)
        judge_topic(&change, 'g', tags->names[i]);
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
