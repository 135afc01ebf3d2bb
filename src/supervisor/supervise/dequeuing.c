/* dequeuing.c - sends connect and dequeue calls, with growing pauses after failures. */
#include "supervisor/supervise/dequeuing.h"

#include "base/mem.h"
#include "base/text.h"
#include "supervisor/gateway_client/run_message.h"

enum {
    HOLD_MS = 5 * 60 * 1000, /* longer than any gateway holds a dequeue */
    PAUSE_MS = 250,          /* after the first failure; doubles with each further one */
    PAUSE_MAX_MS = 5 * 1000,
    EMPTY_MS = 500, /* pause after an empty response that was not held this long */
    RENEW_MS = 100, /* a dequeue must be this old before it is renewed */
    HEARTBEAT_MS = 30 * 1000,
    KEY_LEN = 32,
    ANSWER_MAX = 4 << 20,
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

struct dequeuing {
    struct loop *loop;
    struct upward *upward;
    const struct dequeuing_events *events;
    void *owner;
    struct upward_call call, heartbeat;
    bool asks, beats;                       /* the call, the heartbeat is in flight */
    bool connected, stopped, reached, told; /* told: reached was reported */
    /* idempotency key of the dequeue; "": it was answered, draw another */
    char key[KEY_LEN + 1];
    struct timer timer, heart;
    uint32_t look_kind, heart_kind;
    int64_t pause_ms;
    int64_t asked_ms;   /* when the dequeue was sent; monotonic */
    unsigned told_room; /* what events->room returned then */
    bool holds;         /* the call in flight is a dequeue */
    bool renews;        /* it was canceled, to be sent again */
};

static void tell_reach(struct dequeuing *dequeuing, bool reached, const char *why)
{
    if (dequeuing->told && dequeuing->reached == reached)
        return;
    dequeuing->told = true;
    dequeuing->reached = reached;
    dequeuing->events->on_reach(dequeuing->owner, reached, why);
}

static void look_in(struct dequeuing *dequeuing, int64_t ms)
{
    loop_set_timer(dequeuing->loop, &dequeuing->timer, dequeuing->look_kind, ms);
}

static void pause(struct dequeuing *dequeuing, const char *why)
{
    tell_reach(dequeuing, false, why);
    dequeuing->connected = false;
    if (dequeuing->stopped)
        return;
    look_in(dequeuing, dequeuing->pause_ms);
    dequeuing->pause_ms *= 2;
    if (dequeuing->pause_ms > PAUSE_MAX_MS)
        dequeuing->pause_ms = PAUSE_MAX_MS;
}

/* Returns why a response counts as a failure. */
static const char *reason_of(const struct upward_call *call)
{
    if (!call->status)
        return call->fetch.why;
    return call->status == 401 || call->status == 403 ? "it rejects the worker token"
           : call->status == 404 ? "it does not support the calls of workers"
                                 : "it rejects the call";
}

static bool dequeuing_begin(struct dequeuing *dequeuing, const char *path, struct buf *body,
                            upward_done_fn *done)
{
    struct failure why = { 0 };
    struct upward_call *call = &dequeuing->call;
    struct bytes *content = buf_to_bytes(body);
    *call = (struct upward_call){ .fetch = { .method = "POST",
                                             .body = content,
                                             .answer_max = ANSWER_MAX,
                                             .first_byte_ms = HOLD_MS,
                                             .total_ms = HOLD_MS },
                                  .path = path,
                                  .key = slice_of(dequeuing->key),
                                  .done = done };
    enum err refused = upward_begin(dequeuing->upward, call, &why);
    bytes_unref(content);
    dequeuing->asks = !refused;
    if (refused)
        pause(dequeuing, why.text);
    return !refused;
}

/* ---- dequeue ---- */

static void on_dequeued(struct upward_call *call)
{
    struct dequeuing *dequeuing = container_of(call, struct dequeuing, call);
    struct slice message;
    size_t at = 0, count = 0;
    bool renews = dequeuing->renews;
    dequeuing->asks = dequeuing->holds = dequeuing->renews = false;
    if (renews && call->status != 200) {
        dequeuing_look(
            dequeuing); /* keep the key: behind a proxy the first call may still be held */
        return;
    }
    if (call->status != 200) {
        pause(dequeuing, reason_of(call));
        return;
    }
    dequeuing->key[0] = '\0';
    dequeuing->pause_ms = PAUSE_MS;
    tell_reach(dequeuing, true, NULL);
    for (; run_message_next(call->answer, &at, &message); count++)
        dequeuing->events->on_message(dequeuing->owner, message);
    bool was_held = loop_now_ms(dequeuing->loop) - dequeuing->asked_ms >= EMPTY_MS;
    if (!dequeuing->stopped)
        look_in(dequeuing, count || was_held ? 0 : EMPTY_MS);
}

static void ask(struct dequeuing *dequeuing)
{
    struct buf body = { 0 };
    if (!dequeuing->key[0])
        text_random(dequeuing->key, KEY_LEN, letters);
    buf_add_text(&body, "{\"deployed\":true,\"maxResources\":");
    if (!dequeuing->events->tell_room(dequeuing->owner, &body))
        buf_add_text(&body, "null");
    buf_add_char(&body, '}');
    dequeuing->asked_ms = loop_now_ms(dequeuing->loop);
    dequeuing->told_room = dequeuing->events->room(dequeuing->owner);
    dequeuing->holds = dequeuing_begin(dequeuing, "/dequeue", &body, on_dequeued);
    buf_finish(&body);
}

/* ---- connect ---- */

static void on_connected(struct upward_call *call)
{
    struct dequeuing *dequeuing = container_of(call, struct dequeuing, call);
    dequeuing->asks = false;
    if (call->status != 200) {
        pause(dequeuing, reason_of(call));
        return;
    }
    dequeuing->connected = true;
    dequeuing->pause_ms = PAUSE_MS;
    tell_reach(dequeuing, true, NULL);
    dequeuing_look(dequeuing);
}

static void connect_now(struct dequeuing *dequeuing)
{
    struct buf body = { 0 };
    buf_add_text(&body, "{\"metadata\":{}}");
    dequeuing_begin(dequeuing, "/connect", &body, on_connected);
    buf_finish(&body);
}

/* Cancels the held dequeue if the free places have changed; on_dequeued sends it again. */
static void maybe_renew(struct dequeuing *dequeuing)
{
    int64_t held_ms = loop_now_ms(dequeuing->loop) - dequeuing->asked_ms;
    if (!dequeuing->holds || dequeuing->renews ||
        dequeuing->events->room(dequeuing->owner) == dequeuing->told_room)
        return;
    if (held_ms < RENEW_MS) {
        look_in(dequeuing, RENEW_MS - held_ms);
        return;
    }
    dequeuing->renews = true;
    fetch_cancel(&dequeuing->call.fetch);
}

void dequeuing_look(struct dequeuing *dequeuing)
{
    if (dequeuing->stopped || dequeuing->timer.place)
        return;
    if (dequeuing->asks)
        maybe_renew(dequeuing);
    else if (!dequeuing->connected)
        connect_now(dequeuing);
    else if (dequeuing->events->room(dequeuing->owner))
        ask(dequeuing);
}

static void on_time(struct timer *timer)
{
    dequeuing_look(container_of(timer, struct dequeuing, timer));
}

/* ---- heartbeat ---- */

static void on_beaten(struct upward_call *call)
{
    container_of(call, struct dequeuing, heartbeat)->beats = false;
}

static void on_heart(struct timer *timer)
{
    struct dequeuing *dequeuing = container_of(timer, struct dequeuing, heart);
    struct failure why;
    struct buf body = { 0 };
    loop_set_timer(dequeuing->loop, timer, dequeuing->heart_kind, HEARTBEAT_MS);
    if (dequeuing->beats || !dequeuing->connected)
        return;
    buf_add_text(&body, "{\"tasks\":[],\"resources\":");
    if (!dequeuing->events->tell_room(dequeuing->owner, &body))
        buf_add_text(&body, "null");
    buf_add_char(&body, '}');
    struct bytes *content = buf_to_bytes(&body);
    dequeuing->heartbeat =
        (struct upward_call){ .fetch = { .method = "POST", .body = content },
                              .path = "/heartbeat",
                              .done = on_beaten };
    dequeuing->beats = !upward_begin(dequeuing->upward, &dequeuing->heartbeat, &why);
    bytes_unref(content);
    buf_finish(&body);
}

/* ---- interface ---- */

struct dequeuing *dequeuing_create(struct loop *loop, struct upward *upward,
                                   const struct dequeuing_events *events, void *owner)
{
    struct dequeuing *dequeuing = mem_new(struct dequeuing);
    *dequeuing = (struct dequeuing){ .loop = loop,
                                     .upward = upward,
                                     .events = events,
                                     .owner = owner,
                                     .pause_ms = PAUSE_MS };
    dequeuing->look_kind = timers_kind(loop_timers(loop), on_time);
    dequeuing->heart_kind = timers_kind(loop_timers(loop), on_heart);
    loop_set_timer(loop, &dequeuing->heart, dequeuing->heart_kind, HEARTBEAT_MS);
    look_in(dequeuing, 0);
    return dequeuing;
}

void dequeuing_stop(struct dequeuing *dequeuing)
{
    dequeuing->stopped = true;
    timers_clear(loop_timers(dequeuing->loop), &dequeuing->timer);
    timers_clear(loop_timers(dequeuing->loop), &dequeuing->heart);
    if (dequeuing->asks)
        fetch_cancel(&dequeuing->call.fetch);
}

bool dequeuing_is_idle(const struct dequeuing *dequeuing)
{
    return !dequeuing->asks && !dequeuing->beats;
}

void dequeuing_destroy(struct dequeuing *dequeuing)
{
    free(dequeuing);
}
