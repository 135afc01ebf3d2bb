/* store_timeout.c - replies 503 to calls that wait for a database that does not respond.
 *
 *   every second: does the store fail?
 *     ├─► commands that wait for a commit: refused
 *     └─► each call that an operation will reply to, and that has waited for 2 s:
 *         503, and the operation continues
 *
 * Changes that were not sent to the database yet are refused, here or by the store itself.
 * Changes that were sent may have been written, so the store reports nothing before it
 * knows. But a client should not wait minutes for a response. It gets one that leaves the
 * outcome open, and may retry with the same idempotency key. Without a key, SDKs do not retry.
 *
 * A call that is held on purpose (a poll or a dequeue) has an on_gone, and waits for no
 * write. Reads time out by themselves. */
#include "api/router/store_timeout.h"

#include "api/triggers/own_keys.h"
#include "base/mem.h"
#include "net/http/relayed.h"

enum { EVERY_MS = 1000, WAITS_US = 2000000, AT_ONCE = 256 };

struct store_timeout {
    struct api *api;
    struct timer timer;
    uint32_t kind;
};

static struct loop *loop_of(const struct store_timeout *store_timeout)
{
    return engine_loop(api_engine(store_timeout->api));
}

static bool has_waited(const struct api_call *call)
{
    bool changes = call->x->method != HTTP_GET_ && call->x->method != HTTP_HEAD_;
    return changes && call->busy && !call->on_gone && http_is_awaited(call->x) &&
           http_elapsed_us(call->x) >= WAITS_US;
}

/* SDK 3.3.17 repeats a trigger without any key, which could create a second run. A follower knows
 * the keys of its client. */
static const char *line_for(const struct api_call *call)
{
    if (call->x->relayed)
        return RELAYED_UNSURE ": 1\r\n";
    return own_keys_lack(call, call->x->body) ? API_DO_NOT_RETRY : "";
}

/* Returns false if there are more than one turn has time for. */
static bool answer_calls(struct api *api)
{
    size_t count = 0;
    list_each (link, api_calls(api)) {
        struct api_call *call = container_of(link, struct api_call, link);
        if (!has_waited(call))
            continue;
        explain(&call->why, ERR_STORE,
                "The database does not respond, so it is unknown whether this was done; "
                "try again, with the same idempotency key if it is a trigger");
        api_reply_early(call, ERR_STORE, line_for(call));
        list_remove(&call->link);
        if (++count == AT_ONCE)
            return false;
    }
    return true;
}

static void on_time(struct timer *timer)
{
    struct store_timeout *store_timeout = container_of(timer, struct store_timeout, timer);
    struct engine *engine = api_engine(store_timeout->api);
    bool failing = engine_store(engine)->failing, through = true;
    if (failing) {
        engine_refuse_waiting(engine);
        through = answer_calls(store_timeout->api);
    }
    loop_set_timer(loop_of(store_timeout), timer, store_timeout->kind,
                   through ? EVERY_MS : 1);
}

struct store_timeout *store_timeout_create(struct api *api)
{
    if (!engine_store(api_engine(api))->ops->limit_wait)
        return NULL; /* it responds whatever happens to its disk */
    struct store_timeout *store_timeout = mem_new(struct store_timeout);
    struct loop *loop = engine_loop(api_engine(api));
    store_timeout->api = api;
    store_timeout->kind = timers_kind(loop_timers(loop), on_time);
    loop_set_timer(loop, &store_timeout->timer, store_timeout->kind, EVERY_MS);
    return store_timeout;
}

void store_timeout_destroy(struct store_timeout *store_timeout)
{
    if (!store_timeout)
        return;
    timers_clear(loop_timers(loop_of(store_timeout)), &store_timeout->timer);
    free(store_timeout);
}
