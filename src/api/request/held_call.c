/* held_call.c - holds a call until an awaited end, a timer, a drain, or its client
 * leaves. */
#include "api/request/held_call.h"

#include "base/metrics.h"

enum { WAIT_MAX_MS = 55 * 1000 }; /* proxies give up after a minute */

static struct loop *loop_of(const struct held_call *held)
{
    return held->call->env->loop;
}

static struct engine *engine_of(const struct held_call *held)
{
    return api_engine(held->call->api);
}

/* ---- ?wait= ---- */

/* Reads a duration. Digits alone are seconds. */
static enum err read_ms(struct slice text, int64_t *ms)
{
    uint64_t seconds;
    if (text_to_u64(text, &seconds))
        return text_to_duration_ms(text, ms);
    *ms = seconds <= WAIT_MAX_MS ? (int64_t)seconds * 1000 : WAIT_MAX_MS + 1;
    return OK;
}

/* Shortens a wait to the remaining life of its token. */
static int64_t time_left(const struct api_call *call, int64_t ms)
{
    int64_t left = call->identity->expires_at - loop_wall_ms(call->env->loop);
    if (!call->identity->expires_at || left > ms)
        return ms;
    return left > 0 ? left : 0;
}

enum err held_call_read(struct held_call *held, struct api_call *call)
{
    struct slice text = api_query(call, "wait");
    int64_t ms = 0;
    if (text.ptr && (read_ms(text, &ms) || ms > WAIT_MAX_MS))
        return explain(&call->why, ERR_INVALID,
                       "wait must be a duration like 30s or seconds (max 55s); repeat the "
                       "call to wait longer");
    int64_t left = time_left(call, ms);
    held->call = call;
    held->ends_with_token = left < ms;
    if (ms)
        held->until_ms = loop_now_ms(call->env->loop) + left;
    return OK;
}

bool held_call_may_wait(const struct held_call *held)
{
    const struct api_call *call = held->call;
    return held->until_ms && loop_now_ms(loop_of(held)) < held->until_ms &&
           !call->x->gone && !api_not_ready(call->api) &&
           identity_is_valid(call->identity, loop_wall_ms(loop_of(held)));
}

/* ---- held ---- */

static enum err refuse_ended(struct held_call *held)
{
    return explain(&held->call->why, ERR_UNAUTHORIZED,
                   "The credential expired or was revoked while the call waited");
}

static void over(struct held_call *held, enum err status)
{
    struct api_call *call = held->call;
    timers_clear(loop_timers(loop_of(held)), &held->timer);
    ends_unwatch(engine_of(held), &held->watch);
    held->is_held = false;
    list_remove(&call->held);
    call->on_gone = NULL;
    call->state = NULL;
    if (!status && !identity_is_valid(call->identity, loop_wall_ms(loop_of(held))))
        status = refuse_ended(held);
    held->over(held, status);
}

static void on_end(struct end_watch *watch)
{
    struct held_call *held = container_of(watch, struct held_call, watch);
    held->has_ended = true;
    if (held->is_held)
        over(held, OK);
}

/* The token expires by a different clock than the timer's, maybe a moment later. If the
 * awaited end came before the call was held, the timer fires at once, while the token is
 * valid. */
static void on_time(struct timer *timer)
{
    struct held_call *held = container_of(timer, struct held_call, timer);
    bool is_at_end = held->ends_with_token && !held->has_ended;
    over(held, is_at_end ? refuse_ended(held) : OK);
}

static void on_gone(struct api_call *call)
{
    over(call->state, ERR_CANCELED);
}

static void on_drain(struct api_call *call)
{
    over(call->state, OK);
}

void held_call_listen(struct held_call *held, struct slice id)
{
    ends_unwatch(engine_of(held), &held->watch);
    held->watch.fn = on_end;
    held->has_ended = false;
    ends_watch(engine_of(held), held->call->env, id, &held->watch);
}

enum err held_call_hold(struct held_call *held,
                        void (*on_over)(struct held_call *held, enum err status))
{
    struct api_call *call = held->call;
    struct loop *loop = loop_of(held);
    int64_t left = held->has_ended ? 0 : held->until_ms - loop_now_ms(loop);
    bool has_seat = held->seat.env;
    enum err full = connection_limit_take(&held->seat, call->api, call->env, &call->why);
    if (full)
        return full;
    metric_add(M_POLLS, !has_seat);
    held->over = on_over;
    held->is_held = true;
    call->state = held;
    call->on_gone = on_gone;
    api_hold(call, on_drain);
    loop_set_timer(loop, &held->timer, timers_kind(loop_timers(loop), on_time), left);
    return OK;
}

void held_call_finish(struct held_call *held)
{
    ends_unwatch(engine_of(held), &held->watch);
    metric_add(M_POLLS, held->seat.env ? -1 : 0);
    connection_limit_leave(&held->seat);
}

void held_call_refuse(struct held_call *held, enum err status)
{
    held_call_finish(held);
    if (status == ERR_CANCELED)
        api_reply_gone(held->call);
    else
        api_reply_error(held->call, status);
}
