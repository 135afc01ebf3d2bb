/* drain.c - stops a gateway: notifies clients, hands over, and waits for them. */
#include "server/gateway/drain.h"

#include "api/realtime/sockets.h"
#include "api/request/call.h"
#include "api/router/services.h"
#include "api/worker_notices/run_notifications.h"
#include "core/engine/engine.h"
#include "net/http/server.h"
#include "store/lead/leading.h"

/* With a next process, wait this long for requests on new connections, and for closed peers
 * to confirm: clients that are gone do neither. On a machine with six times as much work as
 * cores, clients took longer than 500 ms, and their polls were reset. */
enum { LEAVING_MS = 1500 };

/* Max time to find out whether a gateway stands by, and for writes in flight. */
enum { HAND_OVER_MS = 300 };

/* If all gateways are stopped at once, a successor drains within this time. */
enum { LOOK_AGAIN_MS = 50 };

/* Pause between sockets that move to a gateway that already leads. */
enum { LEAVE_EVERY_MS = 2 };

/* With a next process, wait at most this long for requests in flight: a client that reads
 * or sends slowly would keep all others waiting for the next process. */
enum { HANDOVER_MS = 5000 };

static void refuse_clients(struct drain *drain, const char *reason)
{
    server_drain(drain->server);
    api_set_ready(drain->api, reason);
    engine_drain(drain->engine);
    api_drain(drain->api);
}

static bool may_hand_over(const struct drain *drain)
{
    return !drain->has_next && (leading_has_successor(drain->leading) ||
                                leading_asks_successor(drain->leading));
}

bool drain_begin(struct drain *drain)
{
    int64_t now = loop_now_ms(drain->loop), hand_over_by = now + HAND_OVER_MS;
    drain->has_next = server_has_next(drain->server);
    drain->linger_until = now + DRAIN_LINGER_MS;
    leading_drain(drain->leading);
    if (drain->has_next)
        server_drain(drain->server);
    else
        refuse_clients(drain, "draining");
    if (may_hand_over(drain)) {
        drain->hand_over_by = hand_over_by < drain->until ? hand_over_by : drain->until;
        api_hand_over(drain->api);
    }
    drain->look_at = now + LOOK_AGAIN_MS;
    if (!drain->hand_over_by)
        drain_sockets(drain);
    return drain->hand_over_by;
}

/* Returns true until a second response has named the successors. */
static bool looks_again(struct drain *drain)
{
    if (drain->look_at && loop_now_ms(drain->loop) >= drain->look_at) {
        drain->look_at = 0;
        leading_ask_successor(drain->leading);
    }
    return drain->look_at || leading_asks_successor(drain->leading);
}

/* A gateway that has just joined may also be a successor, so the database is queried
 * first. */
static bool waits_to_hand_over(struct drain *drain, bool idle)
{
    if (loop_now_ms(drain->loop) >= drain->hand_over_by)
        return false;
    if (!leading_has_successor(drain->leading))
        return leading_asks_successor(drain->leading);
    api_drain_held(drain->api);
    bool looks = looks_again(drain);
    return !idle || !api_has_drained(drain->api) || api_stores_last(drain->api) || looks;
}

/* Clients that connect meanwhile are refused and retry, and calls wait for the next leader: the
 * sooner another gateway leads, the better. So the lead is handed over first, once accepted
 * writes are done; clients move after that. */
enum handover drain_hand_over(struct drain *drain, bool idle)
{
    if (!drain->hand_over_by)
        return HANDOVER_NONE;
    if (waits_to_hand_over(drain, idle))
        return HANDOVER_WAITS;
    drain->hand_over_by = 0;
    drain->hands_over = leading_has_successor(drain->leading);
    if (drain->hands_over)
        return HANDOVER_DUE;
    api_end_hand_over(drain->api);
    drain_sockets(drain);
    return HANDOVER_NONE;
}

/* A gateway that no longer leads sends no runs to its sockets. So they leave as fast as
 * another gateway can accept them. */
void drain_sockets(struct drain *drain)
{
    int64_t timeout_ms = api_options(drain->api)->drain_timeout_ms;
    int64_t soon_ms = 3 * LEAVE_EVERY_MS * (int64_t)sockets_count(api_sockets(drain->api));
    bool is_silent = drain->hands_over && soon_ms < timeout_ms;
    api_drain_sockets(drain->api, is_silent ? soon_ms : timeout_ms, drain->has_next);
}

void drain_to_leader(struct drain *drain)
{
    refuse_clients(drain, "standby");
    api_move(drain->api);
}

/* Stops accepting: new connections wait for the next process. */
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

/* A proxy sends calls here until it has seen that this gateway is not ready. If the address of
 * this gateway vanished before that, as a container's does, these calls would fail. */
static bool waits_for_proxies(const struct drain *drain)
{
    return leading_leader(drain->leading) && loop_now_ms(drain->loop) < drain->linger_until;
}

/* Clients that do not check whether this gateway is ready keep calling, and it passes their
 * calls on. While they may connect, some call may be open at any moment. A proxy that is refused
 * may cut the calls that it sent here before, so these end first. */
static void refuse_late_clients(struct drain *drain)
{
    bool lingers = loop_now_ms(drain->loop) < drain->linger_until;
    bool passes_on = drain->linger_until && leading_leader(drain->leading);
    if (drain->has_next || lingers || !passes_on)
        return;
    if (!drain->notes_late)
        server_note_late(drain->server);
    else if (!server_has_early(drain->server) && sockets_are_gone(drain))
        server_stop_accepting(drain->server);
    drain->notes_late = true;
}

bool drain_step(struct drain *drain)
{
    int64_t since = loop_now_ms(drain->loop) - drain->linger_until;
    if (drain->has_next && since < 0)
        return false;
    if (!api_not_ready(drain->api))
        leave_to_next(drain);
    api_drain_held(drain->api);
    refuse_late_clients(drain);
    if (drain->has_next && since >= HANDOVER_MS)
        return true;
    if (!server_is_idle(drain->server))
        return false;
    if (drain->has_next && since >= LEAVING_MS)
        return true;
    return sockets_are_gone(drain) && !waits_for_proxies(drain) &&
           !(drain->has_next && server_awaits_requests(drain->server));
}
