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

/* So long it waits for requests that are under way when nobody is accepted any more: whoever reads
 * an answer or sends a body slowly keeps everybody waiting for the next process. */
enum { HANDOVER_MS = 5000 };

void drain_begin(struct drain *drain)
{
    drain->has_next = server_has_next(drain->server);
    drain->linger_until = loop_now_ms(drain->loop) + DRAIN_LINGER_MS;
    server_drain(drain->server);
    api_drain_sockets(drain->api, drain->has_next);
    if (drain->has_next)
        return;
    api_set_ready(drain->api, "draining");
    engine_drain(drain->engine);
    api_drain(drain->api);
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
