/* reach.c - calls those that memory has reached, in time slices. */
#include "core/changes/reach.h"

#include <assert.h>

enum { LOOKED_AT_ONCE = 16 };

static void call_some(struct deferred *calling)
{
    struct reaches *reaches = container_of(calling, struct reaches, calling);
    struct timeslice timeslice = loop_timeslice(reaches->loop);
    struct list due;
    list_init(&due);
    list_move_all(&due, &reaches->waiting);
    while (!list_empty(&due) && timeslice_left_every(&timeslice, LOOKED_AT_ONCE)) {
        struct reach *reach = container_of(list_take(&due), struct reach, link);
        if (reach->seq <= *reaches->applied)
            reach->fn(reach);
        else
            list_append(&reaches->waiting, &reach->link);
    }
    if (list_empty(&due))
        return;
    list_move_all(&due, &reaches->waiting); /* those that were not due come last */
    list_move_all(&reaches->waiting, &due);
    loop_defer(reaches->loop, calling);
}

void reaches_init(struct reaches *reaches, struct loop *loop, const uint64_t *applied)
{
    reaches->loop = loop;
    reaches->applied = applied;
    reaches->shown_until = INT64_MAX;
    reaches->calling.fn = call_some;
    list_init(&reaches->calling.link);
    list_init(&reaches->waiting);
}

void reaches_finish(struct reaches *reaches)
{
    assert(list_empty(&reaches->waiting));
    loop_cancel_deferred(&reaches->calling);
}

void reach_init(struct reach *reach, void (*fn)(struct reach *reach))
{
    reach->seq = 0;
    reach->fn = fn;
    list_init(&reach->link);
}

void reach_wait(struct reaches *reaches, struct reach *reach)
{
    if (list_empty(&reach->link))
        list_append(&reaches->waiting, &reach->link);
}

void reach_forget(struct reach *reach)
{
    list_remove(&reach->link);
}
