/* gateway_retain.c - retention, one small purge after the other.
 *
 *   every minute, or sooner where runs are kept shorter
 *                ─► each environment: purge 200 final runs last changed before now - retain
 *                     └─ found 200: again at once; fewer: next environment
 *
 * Of a branch that was archived that long ago, and has no run left, everything is removed
 * (gateway_remains.c).
 *
 * The store removes them, with the batches and packets that no run needs any more, then
 * memory, and the environment's floor moves, which tells clients what is gone (runs-v1
 * §4.12). */
#include "gateway_retain.h"

#include "api/events.h"
#include "api/sockets.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "gateway_remains.h"

enum {
    EVERY_LEAST_MS = 1000,
    EVERY_MOST_MS = 60 * 1000,
    AT_ONCE = 200,
    UNUSED_MS = 3600 * 1000, /* a batch or packet whose runs are still to come */
};

struct retain {
    struct api *api;
    struct engine *engine;
    struct accounts *accounts;
    int64_t retain_ms;
    struct timer timer;
    uint32_t kind;
    struct account *account; /* being purged; NULL: none */
    struct store_purge purge;
    struct remains remains;   /* of an archived branch */
    struct deferred dropping; /* from memory what the store has removed */
    uint64_t dropped;         /* rev up to which memory was looked at for it */
    bool under_way;           /* in the store */
    bool moved;               /* the account's floor, and its clients do not know yet */
    bool destroyed;
};

static void on_purged(struct store_purge *purge, enum store_status status);

static void purge_some(struct retain *retain)
{
    struct store *store = engine_store(retain->engine);
    int64_t now = loop_wall_ms(engine_loop(retain->engine));
    retain->purge =
        (struct store_purge){ .env = retain->account->number,
                              .before = now - retain->retain_ms,
                              .documents_before = now - retain->retain_ms - UNUSED_MS,
                              .limit = AT_ONCE,
                              .done = on_purged };
    retain->under_way = true;
    store->ops->purge(store, &retain->purge);
}

static int64_t every_ms(const struct retain *retain)
{
    int64_t every = retain->retain_ms / 4;
    if (every < EVERY_LEAST_MS)
        return EVERY_LEAST_MS;
    return every < EVERY_MOST_MS ? every : EVERY_MOST_MS;
}

static void next_account(struct retain *retain)
{
    do {
        retain->account = accounts_next(retain->accounts, retain->account);
    } while (retain->account && retain->account->forgotten);
    if (retain->account)
        purge_some(retain);
    else
        loop_set_timer(engine_loop(retain->engine), &retain->timer, retain->kind,
                       every_ms(retain));
}

static void tell_floor(struct retain *retain)
{
    struct environment *env = engine_environment(retain->engine, retain->purge.env);
    if (!env)
        return; /* an archived branch: nobody listens */
    sockets_tell_floor(api_sockets(retain->api), env);
    events_tell_floor(api_events(retain->api), env);
}

static void on_removed(struct remains *remains)
{
    struct retain *retain = container_of(remains, struct retain, remains);
    retain->under_way = false;
    if (retain->destroyed)
        free(retain);
    else
        next_account(retain);
}

/* What was written last is as old as its runs were when they went. */
static bool may_forget(const struct retain *retain)
{
    const struct account *account = retain->account;
    int64_t before = loop_wall_ms(engine_loop(retain->engine)) - retain->retain_ms;
    return retain->purge.status == STORE_OK && account->archived &&
           account->archived_at < before &&
           !engine_environment(retain->engine, account->number);
}

static void remove_remains(struct retain *retain)
{
    retain->remains = (struct remains){ .engine = retain->engine,
                                        .accounts = retain->accounts,
                                        .account = retain->account,
                                        .done = on_removed };
    retain->under_way = true;
    remains_remove(&retain->remains);
}

static void go_on(struct retain *retain)
{
    const struct store_purge *purge = &retain->purge;
    if (purge->status == STORE_OK && (purge->count == AT_ONCE || purge->more_documents)) {
        purge_some(retain);
        return;
    }
    if (retain->moved)
        tell_floor(retain);
    retain->moved = false;
    if (may_forget(retain))
        remove_remains(retain);
    else
        next_account(retain);
}

/* Its clients hear of the floor when memory has nothing below it any more. */
static void drop_some(struct deferred *deferred)
{
    struct retain *retain = container_of(deferred, struct retain, dropping);
    struct environment *env = engine_environment(retain->engine, retain->purge.env);
    if (env && environment_purge(env, &retain->purge.position, &retain->dropped))
        loop_defer(engine_loop(retain->engine), deferred);
    else
        go_on(retain);
}

static void on_purged(struct store_purge *purge, enum store_status status)
{
    struct retain *retain = container_of(purge, struct retain, purge);
    retain->under_way = false;
    if (retain->destroyed) {
        free(retain);
        return;
    }
    if (status != STORE_OK || !purge->count) {
        go_on(retain);
        return;
    }
    metric_add(M_PURGED, purge->count);
    retain->moved = true;
    retain->dropped = 0;
    drop_some(&retain->dropping);
}

static void on_time(struct timer *timer)
{
    next_account(container_of(timer, struct retain, timer));
}

struct retain *retain_create(struct api *api, struct accounts *accounts, int64_t retain_ms)
{
    if (!retain_ms)
        return NULL;
    struct retain *retain = mem_new(struct retain);
    retain->api = api;
    retain->engine = api_engine(api);
    retain->accounts = accounts;
    retain->retain_ms = retain_ms;
    retain->dropping.fn = drop_some;
    list_init(&retain->dropping.link);
    retain->kind = timers_kind(loop_timers(engine_loop(retain->engine)), on_time);
    loop_set_timer(engine_loop(retain->engine), &retain->timer, retain->kind, 1000);
    return retain;
}

void retain_destroy(struct retain *retain)
{
    if (!retain)
        return;
    timers_clear(loop_timers(engine_loop(retain->engine)), &retain->timer);
    loop_cancel_deferred(&retain->dropping);
    retain->remains.stopping = true;
    if (retain->under_way)
        retain->destroyed = true;
    else
        free(retain);
}
