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
    struct gateway_client *gateway_client;
    const struct dequeuing_events *events;
    void *owner;
    struct gateway_call call, heartbeat;
    bool asks, beats;                           /* the call, the heartbeat is in flight */
    bool connected, stopped, reached, reported; /* reported: reached was */
    /* idempotency key of the dequeue; "": it has its response, generate another */
    char key[KEY_LEN + 1];
    struct timer timer, heartbeat_timer;
    uint32_t look_kind, heartbeat_kind;
    int64_t pause_ms;
    int64_t asked_ms;           /* when the dequeue was sent; monotonic */
    unsigned reported_capacity; /* what events->capacity returned then */
    bool holds;                 /* the call in flight is a dequeue */
    bool renews;                /* it was canceled, to be sent again */
};

static void report_reachable(struct dequeuing *dequeuing, bool reached, const char *why)
{
    if (dequeuing->reported && dequeuing->reached == reached)
        return;
    dequeuing->reported = true;
    dequeuing->reached = reached;
    dequeuing->events->on_reach(dequeuing->owner, reached, why);
}

static void look_in(struct dequeuing *dequeuing, int64_t ms)
{
    loop_set_timer(dequeuing->loop, &dequeuing->timer, dequeuing->look_kind, ms);
}

static void pause(struct dequeuing *dequeuing, const char *why)
{
    report_reachable(dequeuing, false, why);
    dequeuing->connected = false;
    if (dequeuing->stopped)
        return;
    look_in(dequeuing, dequeuing->pause_ms);
    dequeuing->pause_ms *= 2;
    if (dequeuing->pause_ms > PAUSE_MAX_MS)
        dequeuing->pause_ms = PAUSE_MAX_MS;
}

/* Returns why a response counts as a failure. */
static const char *reason_of(const struct gateway_call *call)
{
    if (!call->status)
        return call->fetch.why;
    return call->status == 401 || call->status == 403 ? "it rejects the worker token"
           : call->status == 404 ? "it does not support the calls of workers"
           : call->status >= 500 ? "it cannot serve the call now"
                                 : "it rejects the call";
}

static bool dequeuing_begin(struct dequeuing *dequeuing, const char *path, struct buf *body,
                            gateway_call_done_fn *done)
{
    struct failure why = { 0 };
    struct gateway_call *call = &dequeuing->call;
    struct bytes *content = buf_to_bytes(body);
    *call = (struct gateway_call){ .fetch = { .method = "POST",
                                              .body = content,
                                              .answer_max = ANSWER_MAX,
                                              .first_byte_ms = HOLD_MS,
                                              .total_ms = HOLD_MS },
                                   .path = path,
                                   .key = slice_of(dequeuing->key),
                                   .done = done };
    enum err refused = gateway_call_begin(dequeuing->gateway_client, call, &why);
    bytes_unref(content);
    dequeuing->asks = !refused;
    if (refused)
        pause(dequeuing, why.text);
    return !refused;
}

/* ---- dequeue ---- */

static void on_dequeued(struct gateway_call *call)
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
    report_reachable(dequeuing, true, NULL);
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
    if (!dequeuing->events->write_capacity(dequeuing->owner, &body))
        buf_add_text(&body, "null");
    buf_add_char(&body, '}');
    dequeuing->asked_ms = loop_now_ms(dequeuing->loop);
    dequeuing->reported_capacity = dequeuing->events->capacity(dequeuing->owner);
    dequeuing->holds = dequeuing_begin(dequeuing, "/dequeue", &body, on_dequeued);
    buf_finish(&body);
}

/* ---- connect ---- */

static void on_connected(struct gateway_call *call)
{
    struct dequeuing *dequeuing = container_of(call, struct dequeuing, call);
    dequeuing->asks = false;
    if (call->status != 200) {
        pause(dequeuing, reason_of(call));
        return;
    }
    dequeuing->connected = true;
    dequeuing->pause_ms = PAUSE_MS;
    report_reachable(dequeuing, true, NULL);
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
        dequeuing->events->capacity(dequeuing->owner) == dequeuing->reported_capacity)
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
    else if (dequeuing->events->capacity(dequeuing->owner))
        ask(dequeuing);
}

static void on_time(struct timer *timer)
{
    dequeuing_look(container_of(timer, struct dequeuing, timer));
}

/* ---- heartbeat ---- */

static void on_beaten(struct gateway_call *call)
{
    container_of(call, struct dequeuing, heartbeat)->beats = false;
}

static void on_heartbeat_due(struct timer *timer)
{
    struct dequeuing *dequeuing = container_of(timer, struct dequeuing, heartbeat_timer);
    struct failure why;
    struct buf body = { 0 };
    loop_set_timer(dequeuing->loop, timer, dequeuing->heartbeat_kind, HEARTBEAT_MS);
    if (dequeuing->beats || !dequeuing->connected)
        return;
    buf_add_text(&body, "{\"tasks\":[],\"resources\":");
    if (!dequeuing->events->write_capacity(dequeuing->owner, &body))
        buf_add_text(&body, "null");
    buf_add_char(&body, '}');
    struct bytes *content = buf_to_bytes(&body);
    dequeuing->heartbeat =
        (struct gateway_call){ .fetch = { .method = "POST", .body = content },
                               .path = "/heartbeat",
                               .done = on_beaten };
    dequeuing->beats =
        !gateway_call_begin(dequeuing->gateway_client, &dequeuing->heartbeat, &why);
    bytes_unref(content);
    buf_finish(&body);
}

/* ---- interface ---- */

struct dequeuing *dequeuing_create(struct loop *loop, struct gateway_client *gateway_client,
                                   const struct dequeuing_events *events, void *owner)
{
    struct dequeuing *dequeuing = mem_new(struct dequeuing);
    *dequeuing = (struct dequeuing){ .loop = loop,
                                     .gateway_client = gateway_client,
                                     .events = events,
                                     .owner = owner,
                                     .pause_ms = PAUSE_MS };
    dequeuing->look_kind = timers_kind(loop_timers(loop), on_time);
    dequeuing->heartbeat_kind = timers_kind(loop_timers(loop), on_heartbeat_due);
    loop_set_timer(loop, &dequeuing->heartbeat_timer, dequeuing->heartbeat_kind,
                   HEARTBEAT_MS);
    look_in(dequeuing, 0);
    return dequeuing;
}

void dequeuing_stop(struct dequeuing *dequeuing)
{
    dequeuing->stopped = true;
    timers_clear(loop_timers(dequeuing->loop), &dequeuing->timer);
    timers_clear(loop_timers(dequeuing->loop), &dequeuing->heartbeat_timer);
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
