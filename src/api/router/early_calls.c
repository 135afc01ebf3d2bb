/* early_calls.c - keeps held calls in one list, each with a timer. */
#include "api/router/early_calls.h"

#include <string.h>

#include "base/mem.h"

enum {
    HELD_MS = 8000, /* longer than dead-after plus the reads of a new leader */
    HELD_MAX = 1000,
    HELD_OF_CLIENT_MAX = 250,
};

struct early_call {
    struct early_calls *all;
    struct api_call *call;
    struct timer timer;
    bool complete;
    struct list link; // early_calls::held
};

struct early_calls {
    struct loop *loop;
    early_enter_fn *enter;
    struct list held; // early_call::link, in the order in which they came
    size_t count;
    uint32_t kind; /* of their timers */
    struct deferred entering;
};

static struct api_call *let_go(struct early_call *early)
{
    struct api_call *call = early->call;
    timers_clear(loop_timers(early->all->loop), &early->timer);
    list_remove(&early->link);
    early->all->count--;
    call->early = NULL;
    call->on_gone = NULL;
    free(early);
    return call;
}

static void enter(struct early_call *early)
{
    early_enter_fn *fn = early->all->enter;
    bool complete = early->complete;
    fn(let_go(early), complete);
}

static void on_time(struct timer *timer)
{
    enter(container_of(timer, struct early_call, timer));
}

static void on_gone(struct api_call *call)
{
    let_go(call->early);
    api_reply_gone(call);
}

static void enter_some(struct deferred *entering)
{
    struct early_calls *calls = container_of(entering, struct early_calls, entering);
    struct timeslice timeslice = loop_timeslice(calls->loop);
    while (!list_empty(&calls->held) && timeslice_left(&timeslice))
        enter(container_of(calls->held.next, struct early_call, link));
    if (!list_empty(&calls->held))
        loop_defer(calls->loop, entering);
}

struct early_calls *early_calls_create(struct loop *loop, early_enter_fn *enter_fn)
{
    struct early_calls *calls = mem_new(struct early_calls);
    calls->loop = loop;
    calls->enter = enter_fn;
    calls->entering.fn = enter_some;
    calls->kind = timers_kind(loop_timers(loop), on_time);
    list_init(&calls->held);
    list_init(&calls->entering.link);
    return calls;
}

void early_calls_destroy(struct early_calls *calls)
{
    loop_cancel_deferred(&calls->entering);
    free(calls);
}

/* Clients of an untrusted proxy cannot be distinguished, and are not limited. */
static bool has_too_many(const struct early_calls *calls, const struct exchange *x)
{
    size_t count = 0;
    if (x->hidden)
        return false;
    list_each (link, &calls->held)
        count +=
            !strcmp(container_of(link, struct early_call, link)->call->x->peer, x->peer);
    return count >= HELD_OF_CLIENT_MAX;
}

bool early_calls_hold(struct early_calls *calls, struct api_call *call)
{
    if (calls->count >= HELD_MAX || has_too_many(calls, call->x))
        return false;
    struct early_call *early = mem_new(struct early_call);
    early->all = calls;
    early->call = call;
    list_append(&calls->held, &early->link);
    calls->count++;
    call->early = early;
    call->on_gone = on_gone;
    http_body_pause(call->x);
    loop_set_timer(calls->loop, &early->timer, calls->kind, HELD_MS);
    return true;
}

void early_call_complete(struct early_call *early)
{
    early->complete = true;
}

void early_calls_enter(struct early_calls *calls)
{
    if (!list_empty(&calls->held))
        loop_defer(calls->loop, &calls->entering);
}

void early_calls_end(struct early_calls *calls)
{
    loop_cancel_deferred(&calls->entering);
    while (!list_empty(&calls->held))
        enter(container_of(calls->held.next, struct early_call, link));
}
