/* revocation.c - ends sockets and held calls of credentials that have ended.
 *
 *   every second: did a credential end? ─► walk sockets and held calls, a share a turn
 *
 * A credential ends when it is revoked, when a key's grace period ends, or when its branch
 * is archived. auth refuses new requests at once; only connections and calls admitted
 * earlier are found here. */
#include "api/router/revocation.h"

#include "api/realtime/socket.h"
#include "api/worker_notices/run_notifications.h"
#include "base/mem.h"
#include "runcast/protocol.h"

enum { EVERY_MS = 1000, AT_ONCE = 100 };

struct revocation {
    struct api *api;
    struct timer timer;
    uint32_t kind;
    uint64_t seen;    /* accounts_endings at the last complete walk */
    int64_t next_end; /* Unix ms; 0: no key expires by itself */
};

static struct loop *loop_of(const struct revocation *revocation)
{
    return engine_loop(api_engine(revocation->api));
}

static bool has_ended(const struct identity *identity, int64_t now_ms)
{
    return identity && identity_has_ended(identity, now_ms);
}

/* Ends sockets of credentials that have ended. Both walks take one link after another off a
 * separate list, because ending one may remove others. Returns false if there are more than
 * one turn has time for. */
static bool end_sockets(struct revocation *revocation, int64_t now_ms)
{
    struct list *all = &api_sockets(revocation->api)->all;
    struct list rest;
    size_t count = 0;
    list_init(&rest);
    list_move_all(&rest, all);
    while (!list_empty(&rest) && count < AT_ONCE) {
        struct socket *socket = container_of(list_take(&rest), struct socket, link);
        list_append(all, &socket->link);
        if (!has_ended(socket->identity, now_ms) || ws_closing(socket->ws))
            continue;
        identity_log_end(socket->identity, "WebSocket", now_ms);
        ws_close(socket->ws, CLOSE_BAD_TOKEN, identity_ended_reason);
        count++;
    }
    list_move_all(all, &rest);
    return count < AT_ONCE;
}

static bool end_held(struct revocation *revocation, int64_t now_ms)
{
    struct list *all = api_held(revocation->api);
    struct list rest;
    size_t count = 0;
    list_init(&rest);
    list_move_all(&rest, all);
    while (!list_empty(&rest) && count < AT_ONCE) {
        struct api_call *call = container_of(list_take(&rest), struct api_call, held);
        if (has_ended(call->identity, now_ms)) {
            identity_log_end(call->identity, "held call", now_ms);
            call->on_drain(call);
            count++;
        } else {
            list_append(all, &call->held);
        }
    }
    list_move_all(all, &rest);
    return count < AT_ONCE;
}

static void on_time(struct timer *timer)
{
    struct revocation *revocation = container_of(timer, struct revocation, timer);
    struct accounts *accounts = api_accounts(revocation->api);
    int64_t now = loop_wall_ms(loop_of(revocation)), next = EVERY_MS;
    uint64_t endings = accounts_endings(accounts);
    bool due = revocation->next_end && now >= revocation->next_end;

    if (endings != revocation->seen || due) {
        if (end_sockets(revocation, now) && end_held(revocation, now) &&
            run_notifications_end(api_run_notifications(revocation->api), now, AT_ONCE)) {
            revocation->seen = endings;
            revocation->next_end = accounts_next_end(accounts, now);
        } else {
            next = 1;
        }
    }
    loop_set_timer(loop_of(revocation), timer, revocation->kind, next);
}

struct revocation *revocation_create(struct api *api)
{
    struct revocation *revocation = mem_new(struct revocation);
    struct loop *loop = engine_loop(api_engine(api));
    struct accounts *accounts = api_accounts(api);
    revocation->api = api;
    revocation->kind = timers_kind(loop_timers(loop), on_time);
    revocation->seen = accounts_endings(accounts);
    revocation->next_end = accounts_next_end(accounts, loop_wall_ms(loop));
    loop_set_timer(loop, &revocation->timer, revocation->kind, EVERY_MS);
    return revocation;
}

void revocation_destroy(struct revocation *revocation)
{
    if (!revocation)
        return;
    timers_clear(loop_timers(loop_of(revocation)), &revocation->timer);
    free(revocation);
}
