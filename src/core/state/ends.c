/* ends.c - a table of watched ids, and a list of those that have ended.
 *
 *   ends_watch ─► env + id ─► struct end_point ─► its watches
 *                                  │ ends_notify
 *                                  ▼
 *                               the list ─► end of the turn: each watch is called
 *
 * A run that ends unwatched costs a lookup, and not even that if the table is empty. Ends
 * are not recorded: a later caller looks at the run itself. */
#include "core/state/ends.h"

#include <assert.h>

#include "base/mem.h"
#include "core/state/members.h"

enum { NOTIFIED_AT_ONCE = 8 };

struct end_point {
    char key[ENVIRONMENT_KEY];
    struct list watches; // end_watch::link
    struct list link;    // engine::ends_due; if linked, it is not in the table
};

static struct slice key_of(const void *value)
{
    return slice_of(((const struct end_point *)value)->key);
}

static struct end_point *find(const struct engine *engine, const struct environment *env,
                              struct slice id)
{
    char key[ENVIRONMENT_KEY];
    environment_key(env, id, key);
    return table_find(&engine->end_points, slice_of(key));
}

/* Frees a point without watches. */
static void drop(struct engine *engine, struct end_point *point)
{
    if (list_empty(&point->link))
        table_remove(&engine->end_points, slice_of(point->key));
    list_remove(&point->link);
    free(point);
}

void ends_watch(struct engine *engine, const struct environment *env, struct slice id,
                struct end_watch *watch)
{
    struct end_point *point = find(engine, env, id);
    if (!point) {
        point = mem_new(struct end_point);
        environment_key(env, id, point->key);
        list_init(&point->watches);
        list_init(&point->link);
        table_insert(&engine->end_points, point);
    }
    watch->point = point;
    list_append(&point->watches, &watch->link);
}

void ends_unwatch(struct engine *engine, struct end_watch *watch)
{
    struct end_point *point = watch->point;
    if (!point)
        return;
    list_remove(&watch->link);
    watch->point = NULL;
    if (list_empty(&point->watches))
        drop(engine, point);
}

void ends_notify(struct engine *engine, const struct environment *env, struct slice id)
{
    struct end_point *point = engine->end_points.count ? find(engine, env, id) : NULL;
    if (!point)
        return;
    table_remove(&engine->end_points, slice_of(point->key));
    list_append(&engine->ends_due, &point->link);
    loop_wake(engine->loop, &engine->end_notifier);
}

/* Calls watches for a time slice, since thousands may wait for one run. */
static bool notify_some(struct flusher *flusher)
{
    struct engine *engine = container_of(flusher, struct engine, end_notifier);
    struct timeslice timeslice = loop_timeslice(engine->loop);
    while (!list_empty(&engine->ends_due)) {
        struct end_point *point =
            container_of(engine->ends_due.next, struct end_point, link);
        struct end_watch *watch = container_of(point->watches.next, struct end_watch, link);
        if (!timeslice_left_every(&timeslice, NOTIFIED_AT_ONCE))
            return true;
        ends_unwatch(engine, watch);
        watch->fn(watch);
    }
    return false;
}

void ends_init(struct engine *engine)
{
    table_init(&engine->end_points, key_of);
    list_init(&engine->ends_due);
    engine->end_notifier = (struct flusher){ .fn = notify_some };
    loop_add_flusher(engine->loop, &engine->end_notifier);
}

void ends_finish(struct engine *engine)
{
    assert(!engine->end_points.count && list_empty(&engine->ends_due));
    table_finish(&engine->end_points);
    loop_remove_flusher(&engine->end_notifier);
}
