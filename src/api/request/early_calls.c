/* early_calls.c - keeps held calls in lists, each with a timer. */
#include "api/request/early_calls.h"

#include <string.h>

#include "api/request/parts.h"
#include "api/request/route.h"
#include "base/mem.h"

enum {
    HELD_MS = 8000,    /* longer than dead-after plus the reads of a new leader */
    CONFIRM_MS = 5000, /* the same as for subscriptions of a socket */
    HELD_MAX = 1000,
    HELD_OF_CLIENT_MAX = 250,
};

struct early_call {
    struct early_calls *all;
    struct api_call *call;
    struct environment *env; /* whose runs have to be confirmed; held. NULL: none */
    struct timer timer;
    struct certainty_waiter confirming;
    bool complete;
    bool is_known;    /* its credential was accepted */
    struct list link; // early_calls::held or ::confirmed
};

struct early_calls {
    struct loop *loop;
    struct certainty *certainty;
    early_enter_fn *enter;
    struct list held;      // early_call::link, in the order in which they came
    struct list confirmed; // early_call::link; wait until memory is confirmed
    size_t count;          /* in both, of clients that are not known */
    uint32_t kind;         /* of their timers */
    struct deferred entering;
};

static struct api_call *let_go(struct early_call *early)
{
    struct api_call *call = early->call;
    timers_clear(loop_timers(early->all->loop), &early->timer);
    certainty_forget(&early->confirming);
    if (early->env)
        environment_release(early->env);
    list_remove(&early->link);
    early->all->count -= !early->is_known;
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
    struct early_call *early = container_of(timer, struct early_call, timer);
    early->call->is_unconfirmed = certainty_waits(&early->confirming);
    enter(early);
}

static void on_confirmed(struct certainty_waiter *confirming)
{
    enter(container_of(confirming, struct early_call, confirming));
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

struct early_calls *early_calls_create(struct loop *loop, struct certainty *certainty,
                                       early_enter_fn *enter_fn)
{
    struct early_calls *calls = mem_new(struct early_calls);
    calls->loop = loop;
    calls->certainty = certainty;
    calls->enter = enter_fn;
    calls->entering.fn = enter_some;
    calls->kind = timers_kind(loop_timers(loop), on_time);
    list_init(&calls->held);
    list_init(&calls->confirmed);
    list_init(&calls->entering.link);
    return calls;
}

void early_calls_destroy(struct early_calls *calls)
{
    loop_cancel_deferred(&calls->entering);
    free(calls);
}

static size_t count_of(const struct list *calls, const char *peer)
{
    size_t count = 0;
    list_each (link, calls) {
        const struct early_call *early = container_of(link, struct early_call, link);
        count += !early->is_known && !strcmp(early->call->x->peer, peer);
    }
    return count;
}

/* Clients of an untrusted proxy cannot be distinguished, and are not limited. */
static bool has_too_many(const struct early_calls *calls, const struct exchange *x)
{
    if (calls->count >= HELD_MAX)
        return true;
    return !x->hidden &&
           count_of(&calls->held, x->peer) + count_of(&calls->confirmed, x->peer) >=
               HELD_OF_CLIENT_MAX;
}

static struct early_call *early_call_create(struct early_calls *calls,
                                            struct api_call *call, struct list *list)
{
    struct early_call *early = mem_new(struct early_call);
    early->all = calls;
    early->call = call;
    early->is_known = call->account;
    certainty_waiter_init(&early->confirming, on_confirmed);
    list_append(list, &early->link);
    calls->count += !early->is_known;
    call->early = early;
    call->on_gone = on_gone;
    return early;
}

bool early_calls_hold(struct early_calls *calls, struct api_call *call)
{
    if (has_too_many(calls, call->x))
        return false;
    struct early_call *early = early_call_create(calls, call, &calls->held);
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

static void enter_all(struct list *calls)
{
    while (!list_empty(calls))
        enter(container_of(calls->next, struct early_call, link));
}

void early_calls_end(struct early_calls *calls)
{
    loop_cancel_deferred(&calls->entering);
    enter_all(&calls->held);
    enter_all(&calls->confirmed);
}

/* ---- until memory is confirmed ---- */

static void confirm(struct early_calls *calls, struct early_call *early)
{
    struct environment *env = early->env;
    certainty_confirm(calls->certainty, &early->confirming, env ? &env->reaches : NULL);
    loop_set_timer(calls->loop, &early->timer, calls->kind, CONFIRM_MS);
}

/* Forgets what the call will find again: its credential may have ended meanwhile. */
static void begin_again(struct api_call *call)
{
    call->why = (struct failure){ 0 };
    if (call->is_admitted && call->route->auth != AUTH_NONE)
        return; /* dispatch.c checks that it is still authorized */
    if (call->env)
        environment_release(call->env);
    identity_unref(call->identity);
    call->env = NULL;
    call->account = NULL;
    call->identity = NULL;
}

bool api_confirm(struct api_call *call)
{
    struct early_calls *calls = call->api->early_calls;
    bool is_known = call->account;
    if (call->is_confirmed || !certainty_asks(calls->certainty))
        return false;
    if (!is_known && has_too_many(calls, call->x)) {
        explain(&call->why, ERR_BUSY,
                "Too many calls wait until their credentials are known; try again");
        api_reply_error(call, ERR_BUSY);
        return true;
    }
    struct early_call *early = early_call_create(calls, call, &calls->confirmed);
    early->complete = call->is_admitted;
    early->env = call->env;
    if (early->env)
        environment_hold(early->env);
    call->is_confirmed = true;
    begin_again(call);
    if (!early->complete)
        http_body_pause(call->x);
    confirm(calls, early);
    return true;
}

static struct slice credential_of(const struct api_call *call)
{
    struct slice header = http_header(call->x, "authorization");
    return header.ptr || !call->is_admitted ? header : api_query(call, "token");
}

bool api_confirm_credential(struct api_call *call)
{
    struct unknown_credentials *unknown = &call->api->unknown_credentials;
    struct slice credential = credential_of(call);
    struct slice branch = http_header(call->x, "x-trigger-branch");
    int64_t now_ms = loop_now_ms(call->api->early_calls->loop);
    if (!credential.len || call->account || !call->route || !call->route->follows)
        return false;
    if (!certainty_asks(call->api->early_calls->certainty))
        return false;
    if (call->is_confirmed)
        unknown_credentials_note(unknown, credential, branch, now_ms);
    else if (!unknown_credentials_have(unknown, credential, branch, now_ms))
        return api_confirm(call);
    return false;
}
