/* certainty.c - calls waiters in order of arrival, over several turns if need be. */
#include "core/live/certainty.h"

static void call_soon(struct certainty *certainty)
{
    if (!list_empty(&certainty->waiting))
        loop_defer(certainty->loop, &certainty->deferred);
}

/* Memory has the changes that the waiter lacked. */
static void on_reached(struct reach *reach)
{
    struct certainty_waiter *waiter = container_of(reach, struct certainty_waiter, reach);
    list_append(&waiter->certainty->waiting, &waiter->link);
    call_soon(waiter->certainty);
}

/* Memory that is late waits for the next call, and changes that have arrived for memory. */
static void call(struct certainty *certainty, struct certainty_waiter *waiter)
{
    struct reaches *reaches = waiter->reaches;
    if (reaches && reaches_are_late(reaches)) {
        list_append(&certainty->waiting, &waiter->link);
        return;
    }
    waiter->reaches = NULL;
    waiter->reach.seq = reaches ? reaches->arrived : 0;
    if (reaches && waiter->reach.seq > *reaches->applied)
        reach_wait(reaches, &waiter->reach);
    else
        waiter->fn(waiter);
}

static void call_some(struct deferred *deferred)
{
    struct certainty *certainty = container_of(deferred, struct certainty, deferred);
    struct timeslice timeslice = loop_timeslice(certainty->loop);
    struct list due;
    list_init(&due);
    if (!certainty_holds(certainty))
        return; /* they are called at the end of the new doubt */
    list_move_all(&due, &certainty->waiting);
    while (!list_empty(&due) && timeslice_left(&timeslice))
        call(certainty, container_of(list_take(&due), struct certainty_waiter, link));
    if (list_empty(&due))
        return;
    list_move_all(&due, &certainty->waiting); /* those that wait again come last */
    list_move_all(&certainty->waiting, &due);
    loop_defer(certainty->loop, deferred);
}

/* On a slow connection, a question in each turn would be too many. */
static bool must_wait(const struct certainty *certainty)
{
    return certainty->number >= certainty->answered + CERTAINTY_QUESTIONS;
}

/* One question is enough for all that have begun before it. */
static void ask_for_all(struct deferred *asking)
{
    struct certainty *certainty = container_of(asking, struct certainty, asking);
    if (list_empty(&certainty->unasked) || must_wait(certainty))
        return;
    certainty->asked_ms = loop_now_ms(certainty->loop);
    certainty->number = certainty->ask(certainty->owner);
    list_each (link, &certainty->unasked)
        container_of(link, struct certainty_waiter, link)->number = certainty->number;
    list_move_all(&certainty->asked, &certainty->unasked);
}

static void on_pause_end(struct timer *timer)
{
    struct certainty *certainty = container_of(timer, struct certainty, pause);
    loop_defer(certainty->loop, &certainty->asking);
}

static void ask_soon(struct certainty *certainty)
{
    struct loop *loop = certainty->loop;
    int64_t pause_ms = certainty->asked_ms + CERTAINTY_EVERY_MS - loop_now_ms(loop);
    if (list_empty(&certainty->unasked) || certainty->pause.place)
        return;
    if (pause_ms <= 0)
        loop_defer(loop, &certainty->asking);
    else
        loop_set_timer(loop, &certainty->pause,
                       timers_kind(loop_timers(loop), on_pause_end), pause_ms);
}

void certainty_init(struct certainty *certainty, struct loop *loop)
{
    *certainty = (struct certainty){ .loop = loop, .asked_ms = -CERTAINTY_EVERY_MS };
    certainty->deferred.fn = call_some;
    certainty->asking.fn = ask_for_all;
    list_init(&certainty->deferred.link);
    list_init(&certainty->asking.link);
    list_init(&certainty->unasked);
    list_init(&certainty->asked);
    list_init(&certainty->waiting);
}

void certainty_finish(struct certainty *certainty)
{
    timers_clear(loop_timers(certainty->loop), &certainty->pause);
    loop_cancel_deferred(&certainty->deferred);
    loop_cancel_deferred(&certainty->asking);
}

void certainty_waiter_init(struct certainty_waiter *waiter,
                           void (*fn)(struct certainty_waiter *waiter))
{
    waiter->fn = fn;
    waiter->reaches = NULL;
    reach_init(&waiter->reach, on_reached);
    list_init(&waiter->link);
}

void certainty_wait(struct certainty *certainty, struct certainty_waiter *waiter)
{
    if (!certainty_waits(waiter))
        list_append(&certainty->waiting, &waiter->link);
}

void certainty_confirm(struct certainty *certainty, struct certainty_waiter *waiter,
                       struct reaches *reaches)
{
    if (certainty_waits(waiter))
        return;
    waiter->certainty = certainty;
    waiter->reaches = reaches;
    if (certainty_asks(certainty)) {
        list_append(&certainty->unasked, &waiter->link);
        ask_soon(certainty);
    } else {
        list_append(&certainty->waiting, &waiter->link);
        call_soon(certainty);
    }
}

void certainty_forget(struct certainty_waiter *waiter)
{
    waiter->reaches = NULL;
    reach_forget(&waiter->reach);
    list_remove(&waiter->link);
}

void certainty_return(struct certainty *certainty)
{
    loop_defer(certainty->loop, &certainty->deferred);
}

void certainty_answered(struct certainty *certainty, uint64_t number)
{
    while (!list_empty(&certainty->asked)) {
        struct certainty_waiter *first =
            container_of(certainty->asked.next, struct certainty_waiter, link);
        if (first->number > number)
            break;
        list_remove(&first->link);
        list_append(&certainty->waiting, &first->link);
    }
    if (certainty->answered < number)
        certainty->answered = number;
    call_soon(certainty);
    ask_soon(certainty);
}

void certainty_follow(struct certainty *certainty, bool follows)
{
    certainty->follows = follows;
    if (certainty_asks(certainty))
        return;
    list_move_all(&certainty->waiting, &certainty->asked);
    list_move_all(&certainty->waiting, &certainty->unasked);
    call_soon(certainty);
}
