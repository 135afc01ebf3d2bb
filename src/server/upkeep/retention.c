/* retention.c - removes old runs and deleted projects, one small purge after another.
 *
 *   every minute, or more often if runs are kept for less than four minutes
 *                ─► each environment: purge some final runs last changed before now - retain,
 *                     at most 200  └─ found that many: again at once; fewer: next environment
 *
 * If a branch was archived that long ago and has no run left, all its data is removed
 * (leftovers.c). So is all data of a deleted project, as soon as its environments have left
 * memory, and finally its account documents:
 *
 *   each environment: emptied ─► keys, tokens, environments, the project ─► forgotten
 *
 * The store removes runs, with batches and packets that no run needs any longer. Then they
 * are removed from memory, and the environment's floor moves. Its clients are notified, so
 * they learn which runs are gone. */
#include "server/upkeep/retention.h"

#include "accounts/account_writer.h"
#include "api/router/services.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "server/upkeep/leftovers.h"

enum {
    EVERY_LEAST_MS = 1000,
    EVERY_MOST_MS = 60 * 1000,
    SOON_MS = 1000,
    AT_ONCE_FIRST = 25,
    AT_ONCE_MOST = 200,
    SLOW_MS =
        100, /* max duration of a purge: a run may have 8 MiB of logs, and others wait meanwhile */
    UNUSED_MS = 3600 * 1000, /* a batch or packet without runs is kept this long */
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
    struct leftovers leftovers; /* of an ended environment */
    struct account_write forgetting;
    const struct project *project; /* being forgotten */
    struct deferred dropping;      /* removes from memory what the store has removed */
    uint64_t dropped;              /* rev up to which memory was checked for that */
    bool under_way;                /* a write or purge is in flight */
    int64_t begun_ms;              /* start of the purge; monotonic */
    unsigned at_once;              /* max runs of the next purge */
    int64_t all_at; /* monotonic ms: until then only deleted projects are processed */
    bool all;       /* this pass processes all environments */
    bool moved;     /* the account's floor moved; its clients must be notified */
    bool soon;      /* something of a deleted project must wait */
    bool stopped, destroyed;
    /* NULL: no listener. */
    void (*on_position)(void *owner, const struct store_position *position);
    void *owner;
};

static void on_purged(struct store_purge *purge, enum store_status status);
static void rest(struct retain *retain);
static void forget_projects(struct retain *retain);

static bool in_memory(const struct retain *retain, const struct account *account)
{
    return engine_environment(retain->engine, account->number) != NULL;
}

/* Returns true if nothing of the environment must be kept. */
static bool is_over(const struct retain *retain, const struct account *account)
{
    int64_t before = loop_wall_ms(engine_loop(retain->engine)) - retain->retain_ms;
    return account->archived && !in_memory(retain, account) &&
           (account->project->deleted_at || account->archived_at < before);
}

static void purge_some(struct retain *retain)
{
    struct store *store = engine_store(retain->engine);
    int64_t before = loop_wall_ms(engine_loop(retain->engine)) - retain->retain_ms;
    bool deleted = retain->account->project->deleted_at;
    retain->purge =
        (struct store_purge){ .env = retain->account->number,
                              .before = deleted ? INT64_MAX : before,
                              .documents_before = deleted ? INT64_MAX : before - UNUSED_MS,
                              .limit = retain->at_once,
                              .whole = is_over(retain, retain->account),
                              .done = on_purged };
    retain->under_way = true;
    retain->begun_ms = loop_now_ms(engine_loop(retain->engine));
    store->ops->purge(store, &retain->purge);
}

static int64_t every_ms(const struct retain *retain)
{
    int64_t every = retain->retain_ms / 4;
    if (!retain->retain_ms)
        return EVERY_MOST_MS;
    if (every < EVERY_LEAST_MS)
        return EVERY_LEAST_MS;
    return every < EVERY_MOST_MS ? every : EVERY_MOST_MS;
}

/* ---- deleted projects ---- */

static bool is_emptied(const struct retain *retain, const struct project *project)
{
    for (struct account *a = NULL; (a = accounts_next(retain->accounts, a));)
        if (a->project == project && !a->emptied && !a->forgotten)
            return false;
    return true;
}

static enum err decide_forget(struct account_write *write, struct accounts *accounts,
                              struct draft *draft)
{
    struct retain *retain = container_of(write, struct retain, forgetting);
    draft_forget_project(draft, accounts, retain->project);
    return OK;
}

static void on_forgotten(struct account_write *write, enum err status)
{
    struct retain *retain = container_of(write, struct retain, forgetting);
    retain->under_way = false;
    if (retain->destroyed)
        free(retain);
    else if (status)
        rest(retain);
    else
        forget_projects(retain);
}

static void forget_projects(struct retain *retain)
{
    const struct list *deleted = accounts_deleted_projects(retain->accounts);
    list_each (link, deleted) {
        const struct project *project = container_of(link, struct project, link);
        if (project->forgotten || !is_emptied(retain, project))
            continue;
        retain->project = project;
        retain->forgetting =
            (struct account_write){ .decide = decide_forget, .done = on_forgotten };
        retain->under_way = true;
        account_write_begin(api_options(retain->api)->writer, &retain->forgetting);
        return;
    }
    rest(retain);
}

/* ---- one environment after the other ---- */

static void rest(struct retain *retain)
{
    struct loop *loop = engine_loop(retain->engine);
    int64_t left = retain->all_at - loop_now_ms(loop);
    loop_set_timer(loop, &retain->timer, retain->kind,
                   retain->soon && left > SOON_MS ? SOON_MS : left);
    retain->soon = false;
}

static bool is_looked_at(struct retain *retain, const struct account *account)
{
    if (account->forgotten || account->emptied)
        return false;
    if (!account->project->deleted_at)
        return retain->retain_ms && retain->all;
    if (in_memory(retain, account))
        retain->soon = true;
    return !in_memory(retain, account);
}

static void next_account(struct retain *retain)
{
    if (retain->stopped)
        return;
    do {
        retain->account = accounts_next(retain->accounts, retain->account);
    } while (retain->account && !is_looked_at(retain, retain->account));
    if (retain->account)
        purge_some(retain);
    else
        forget_projects(retain);
}

static void tell_floor(struct retain *retain)
{
    struct environment *env = engine_environment(retain->engine, retain->purge.env);
    if (env) /* an archived branch has no listeners */
        api_send_floor(retain->api, env);
}

static void on_removed(struct leftovers *leftovers)
{
    struct retain *retain = container_of(leftovers, struct retain, leftovers);
    retain->under_way = false;
    if (retain->destroyed)
        free(retain);
    else
        next_account(retain);
}

static void remove_leftovers(struct retain *retain)
{
    retain->leftovers = (struct leftovers){ .engine = retain->engine,
                                            .account = retain->account,
                                            .done = on_removed };
    retain->under_way = true;
    leftovers_remove(&retain->leftovers);
}

static void go_on(struct retain *retain)
{
    const struct store_purge *purge = &retain->purge;
    if (retain->stopped)
        return;
    if (purge->status == STORE_OK &&
        (purge->count == purge->limit || purge->more_documents)) {
        purge_some(retain);
        return;
    }
    if (retain->moved)
        tell_floor(retain);
    retain->moved = false;
    if (purge->status == STORE_OK && is_over(retain, retain->account))
        remove_leftovers(retain);
    else
        next_account(retain);
}

/* Removes runs from memory for a time slice. Only then are the environment's clients
 * notified of the floor. */
static void drop_some(struct deferred *deferred)
{
    struct retain *retain = container_of(deferred, struct retain, dropping);
    struct environment *env = engine_environment(retain->engine, retain->purge.env);
    if (env && environment_purge(env, &retain->purge.position, &retain->dropped))
        loop_defer(engine_loop(retain->engine), deferred);
    else
        go_on(retain);
}

/* Halves the next purge if this one was slow, otherwise doubles it up to the maximum. */
static void adapt(struct retain *retain)
{
    int64_t took_ms = loop_now_ms(engine_loop(retain->engine)) - retain->begun_ms;
    if (took_ms > SLOW_MS)
        retain->at_once = retain->at_once > 1 ? retain->at_once / 2 : 1;
    else
        retain->at_once =
            2 * retain->at_once < AT_ONCE_MOST ? 2 * retain->at_once : AT_ONCE_MOST;
}

static void on_purged(struct store_purge *purge, enum store_status status)
{
    struct retain *retain = container_of(purge, struct retain, purge);
    retain->under_way = false;
    if (retain->destroyed) {
        free(retain);
        return;
    }
    adapt(retain);
    if (status != STORE_OK || !purge->count) {
        go_on(retain);
        return;
    }
    metric_add(M_PURGED, purge->count);
    retain->moved = true;
    retain->dropped = 0;
    if (retain->on_position)
        retain->on_position(retain->owner, &purge->position);
    drop_some(&retain->dropping);
}

/* Each purge is a synced transaction. So while something of a deleted project must wait,
 * other environments are not purged more often. */
static void on_time(struct timer *timer)
{
    struct retain *retain = container_of(timer, struct retain, timer);
    int64_t now = loop_now_ms(engine_loop(retain->engine));
    retain->all = now >= retain->all_at;
    if (retain->all)
        retain->all_at = now + every_ms(retain);
    next_account(retain);
}

struct retain *retain_create(struct api *api, struct accounts *accounts, int64_t retain_ms)
{
    struct retain *retain = mem_new(struct retain);
    retain->api = api;
    retain->engine = api_engine(api);
    retain->accounts = accounts;
    retain->retain_ms = retain_ms;
    retain->at_once = AT_ONCE_FIRST;
    retain->dropping.fn = drop_some;
    list_init(&retain->dropping.link);
    retain->kind = timers_kind(loop_timers(engine_loop(retain->engine)), on_time);
    loop_set_timer(engine_loop(retain->engine), &retain->timer, retain->kind, 1000);
    return retain;
}

void retain_soon(struct retain *retain)
{
    if (!retain)
        return;
    retain->soon = true;
    if (retain->timer.place)
        loop_set_timer(engine_loop(retain->engine), &retain->timer, retain->kind, SOON_MS);
}

void retain_on_purged(struct retain *retain,
                      void (*fn)(void *owner, const struct store_position *position),
                      void *owner)
{
    retain->on_position = fn;
    retain->owner = owner;
}

bool retain_stop(struct retain *retain)
{
    retain->stopped = retain->leftovers.stopping = true;
    timers_clear(loop_timers(engine_loop(retain->engine)), &retain->timer);
    return !retain->under_way;
}

void retain_destroy(struct retain *retain)
{
    if (!retain)
        return;
    retain_stop(retain);
    loop_cancel_deferred(&retain->dropping);
    if (retain->under_way)
        retain->destroyed = true;
    else
        free(retain);
}
