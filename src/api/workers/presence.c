/* presence.c - a stream by which the gateway knows that a developer's session is connected.
 *
 *   start at once, time every 4 s, the end after 30 s; the client reconnects by itself
 *
 * It does not identify the session: only that a stream is open counts
 * (core/fleet/dev_sessions.h).
 *
 * Above its environment's limit of connections it is refused. The client then retries once
 * a second, and the session works without it. */
#include "api/request/connection_limit.h"
#include "api/workers/worker_routes.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/fleet/dev_sessions.h"

enum { EVENT_MS = 4000, STREAM_MS = 30 * 1000 };

struct presence {
    struct api_call *call;
    struct timer timer;
    int64_t ends_at; /* monotonic ms */
    struct seat seat;
};

static struct loop *loop_of(const struct presence *presence)
{
    return engine_loop(api_engine(presence->call->api));
}

static void end(struct presence *presence)
{
    struct api_call *call = presence->call;
    struct exchange *x = call->x;
    timers_clear(loop_timers(loop_of(presence)), &presence->timer);
    dev_sessions_disconnect(call->env, SESSION_STREAM);
    connection_limit_leave(&presence->seat);
    free(presence);
    api_call_end(call);
    http_stream_end(x);
}

static void stop(struct api_call *call)
{
    end(call->state);
}

static bool send_event(struct presence *presence, const char *event)
{
    char time[TIME_TEXT_LEN + 1];
    struct buf text = { 0 };
    text_from_time(loop_wall_ms(loop_of(presence)), time);
    buf_print(&text, "event: %s\ndata: %s\n\n", event, time);
    bool sent = http_stream_write(presence->call->x, buf_slice(&text));
    buf_finish(&text);
    return sent;
}

static void on_tick(struct timer *timer)
{
    struct presence *presence = container_of(timer, struct presence, timer);
    int64_t left = presence->ends_at - loop_now_ms(loop_of(presence));

    if (left <= 0 || !send_event(presence, "time"))
        end(presence);
    else
        loop_set_timer(loop_of(presence), timer, timer->kind,
                       left < EVENT_MS ? left : EVENT_MS);
}

enum err worker_presence(struct api_call *call)
{
    struct seat seat = { 0 };
    enum err refused = connection_limit_take(&seat, call->api, call->env, &call->why);
    if (refused)
        return refused;
    struct presence *presence = mem_new(struct presence);
    presence->call = call;
    presence->seat = seat;
    dev_sessions_connect(call->env, SESSION_STREAM);
    struct loop *loop = loop_of(presence);
    presence->ends_at = loop_now_ms(loop) + STREAM_MS;

    call->busy = true;
    call->state = presence;
    call->on_gone = stop;
    api_hold(call, stop);
    call->bears_doubt = true;
    api_add_header(call, "content-type", SLICE("text/event-stream"));
    api_add_header(call, "cache-control", SLICE("no-store"));
    http_stream_begin(call->x, 200, buf_slice(&call->headers));
    if (!send_event(presence, "start"))
        end(presence);
    else
        loop_set_timer(loop, &presence->timer, timers_kind(loop_timers(loop), on_tick),
                       EVENT_MS);
    return OK;
}
