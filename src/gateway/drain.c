/* drain.c - a gateway stops: who is told, who is waited for. */
#include "gateway/drain.h"

#include "api/services.h"
#include "call/call.h"
#include "engine/engine.h"
#include "http/server.h"
#include "notices/run_notifications.h"
#include "realtime/sockets.h"

/* So long the end waits for requests of those who have just connected, and for peers that are
 * closed to say so: who is gone does neither. */
enum { LEAVING_MS = 500 };

/* Between sockets that leave for a gateway that leads already. */
enum { LEAVE_EVERY_MS = 2 };

/* So long it waits for requests that are under way when nobody is accepted any more: whoever reads
 * an answer or sends a body slowly keeps everybody waiting for the next process. */
enum { HANDOVER_MS = 5000 };

static void let_in_nobody(struct drain *drain, const char *reason)
{
    server_drain(drain->server);
    api_set_ready(drain->api, reason);
    engine_drain(drain->engine);
    api_drain(drain->api);
}

void drain_begin(struct drain *drain)
{
    drain->has_next = server_has_next(drain->server);
    drain->linger_until = loop_now_ms(drain->loop) + DRAIN_LINGER_MS;
    if (drain->has_next)
        server_drain(drain->server);
    else
        let_in_nobody(drain, "draining");
    drain_sockets(drain);
}

bool drain_hands_over(struct drain *drain)
{
    if (server_has_next(drain->server))
        return false;
    drain->hands_over = true;
    let_in_nobody(drain, "draining");
    return true;
}

bool drain_has_written(const struct drain *drain)
{
    return api_has_drained(drain->api);
}

/* Sockets of a gateway that does not lead any more are silent: they leave as fast as another one
 * can take them. */
void drain_sockets(struct drain *drain)
{
    int64_t timeout_ms = api_options(drain->api)->drain_timeout_ms;
    int64_t soon_ms = 3 * LEAVE_EVERY_MS * (int64_t)sockets_count(api_sockets(drain->api));
    bool is_silent = drain->hands_over && soon_ms < timeout_ms;
    api_drain_sockets(drain->api, is_silent ? soon_ms : timeout_ms, drain->has_next);
}

void drain_to_leader(struct drain *drain)
{
    let_in_nobody(drain, "standby");
    api_move(drain->api);
}

/* Whoever connects from now on waits for the next process. */
static void leave_to_next(struct drain *drain)
{
    server_pause(drain->server);
    api_set_ready(drain->api, "draining");
    api_serve_on(drain->api);
    api_drain(drain->api);
}

static bool sockets_are_gone(const struct drain *drain)
{
    return sockets_count(api_sockets(drain->api)) == 0 &&
           run_notifications_count(api_run_notifications(drain->api)) == 0;
}

bool drain_step(struct drain *drain)
{
    int64_t since = loop_now_ms(drain->loop) - drain->linger_until;
    if (drain->has_next && since < 0)
        return false;
    if (!api_not_ready(drain->api))
        leave_to_next(drain);
    api_drain_held(drain->api);
    if (drain->has_next && since >= HANDOVER_MS)
        return true;
    if (!server_is_idle(drain->server))
        return false;
    if (drain->has_next && since >= LEAVING_MS)
        return true;
    return sockets_are_gone(drain) &&
           !(drain->has_next && server_awaits_requests(drain->server));
}
