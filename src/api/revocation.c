/* revocation.c - looks after what is open, when a key or token was revoked, a key's grace period
 * is over, or a branch was archived.
 *
 *   every second: did something end? ─► walk sockets and held calls, a share a turn
 *
 * A request that comes is refused by auth at once; only what was let in before and stays is
 * found here. */
#include "api/revocation.h"

#include "base/mem.h"
#include "notices/run_notifications.h"
#include "realtime/socket.h"
#include "runcast/protocol.h"

enum { EVERY_MS = 1000, AT_ONCE = 100 };

struct ended {
    struct api *api;
    struct timer timer;
    uint32_t kind;
    uint64_t seen;    /* accounts_endings when everything was looked at last */
    int64_t next_end; /* Unix ms; 0: no key ends by itself */
};

static struct loop *loop_of(const struct ended *ended)
{
    return engine_loop(api_engine(ended->api));
}

static bool has_ended(const struct identity *identity, int64_t now_ms)
{
    return identity && identity_has_ended(identity, now_ms);
}

/* Both walks take link by link off a list of their own, because what ends may take others
 * along. False: there is more to end than one turn has time for. */
static bool end_sockets(struct ended *ended, int64_t now_ms)
{
    struct list *all = &api_sockets(ended->api)->all;
    struct list rest;
    size_t count = 0;
    list_init(&rest);
    list_move_all(&rest, all);
    while (!list_empty(&rest) && count < AT_ONCE) {
        struct socket *socket = container_of(list_take(&rest), struct socket, link);
        list_append(all, &socket->link);
        if (!has_ended(socket->identity, now_ms) || ws_closing(socket->ws))
            continue;
        identity_tell_end(socket->identity, "WebSocket", now_ms);
        ws_close(socket->ws, CLOSE_BAD_TOKEN, identity_ended_reason);
        count++;
    }
    list_move_all(all, &rest);
    return count < AT_ONCE;
}

static bool end_held(struct ended *ended, int64_t now_ms)
{
    struct list *all = api_held(ended->api);
    struct list rest;
    size_t count = 0;
    list_init(&rest);
    list_move_all(&rest, all);
    while (!list_empty(&rest) && count < AT_ONCE) {
        struct api_call *call = container_of(list_take(&rest), struct api_call, held);
        if (has_ended(call->identity, now_ms)) {
            identity_tell_end(call->identity, "held call", now_ms);
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
    struct ended *ended = container_of(timer, struct ended, timer);
    struct accounts *accounts = api_accounts(ended->api);
    int64_t now = loop_wall_ms(loop_of(ended)), next = EVERY_MS;
    uint64_t endings = accounts_endings(accounts);
    bool due = ended->next_end && now >= ended->next_end;

    if (endings != ended->seen || due) {
        if (end_sockets(ended, now) && end_held(ended, now) &&
            notifier_end(api_notifier(ended->api), now, AT_ONCE)) {
            ended->seen = endings;
            ended->next_end = accounts_next_end(accounts, now);
        } else {
            next = 1;
        }
    }
    loop_set_timer(loop_of(ended), timer, ended->kind, next);
}

struct ended *ended_create(struct api *api)
{
    struct ended *ended = mem_new(struct ended);
    struct loop *loop = engine_loop(api_engine(api));
    struct accounts *accounts = api_accounts(api);
    ended->api = api;
    ended->kind = timers_kind(loop_timers(loop), on_time);
    ended->seen = accounts_endings(accounts);
    ended->next_end = accounts_next_end(accounts, loop_wall_ms(loop));
    loop_set_timer(loop, &ended->timer, ended->kind, EVERY_MS);
    return ended;
}

void ended_destroy(struct ended *ended)
{
    if (!ended)
        return;
    timers_clear(loop_timers(loop_of(ended)), &ended->timer);
    free(ended);
}
