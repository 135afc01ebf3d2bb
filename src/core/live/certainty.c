/* certainty.c - calls waiters in order of arrival, over several turns if need be. */
#include "core/live/certainty.h"

static void call_some(struct deferred *deferred)
{
    struct certainty *certainty = container_of(deferred, struct certainty, deferred);
    struct timeslice timeslice = loop_timeslice(certainty->loop);
    struct list due;
    list_init(&due);
    if (!certainty_holds(certainty))
        return; /* they are called at the end of the new doubt */
    list_move_all(&due, &certainty->waiting);
    while (!list_empty(&due) && timeslice_left(&timeslice)) {
        struct certainty_waiter *waiter =
            container_of(list_take(&due), struct certainty_waiter, link);
        waiter->fn(waiter);
    }
    if (list_empty(&due))
        return;
    list_move_all(&due, &certainty->waiting); /* those that wait again come last */
    list_move_all(&certainty->waiting, &due);
    loop_defer(certainty->loop, deferred);
}

void certainty_init(struct certainty *certainty, struct loop *loop)
{
    *certainty = (struct certainty){ .loop = loop };
    certainty->deferred.fn = call_some;
    list_init(&certainty->deferred.link);
    list_init(&certainty->waiting);
}

void certainty_finish(struct certainty *certainty)
{
    loop_cancel_deferred(&certainty->deferred);
}

void certainty_waiter_init(struct certainty_waiter *waiter,
                           void (*fn)(struct certainty_waiter *waiter))
{
    waiter->fn = fn;
    list_init(&waiter->link);
}

void certainty_wait(struct certainty *certainty, struct certainty_waiter *waiter)
{
    if (list_empty(&waiter->link))
        list_append(&certainty->waiting, &waiter->link);
}

void certainty_forget(struct certainty_waiter *waiter)
{
    list_remove(&waiter->link);
}

void certainty_return(struct certainty *certainty)
{
    loop_defer(certainty->loop, &certainty->deferred);
}
