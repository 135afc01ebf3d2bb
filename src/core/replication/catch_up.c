/* catch_up.c - environments take turns, a page each, in time slices.
 *
 *   next_item ─► clear_some ─► read_position ─► read_page ─► take_page, of unfinished runs ─┐
 *    ▲  │ │                                        ▲                                        │
 *    │  │ └── its next page ───────────────────────┤       ┌── more: its next turn ◄────────┤
 *    │  │                                          ▼       │                                ▼
 *    │  └────── it is loaded ─────► read_changed ─► take_page ──► landed           all are loaded:
 *    │                                                     │                         read_changed
 *    ├──────────────────────────────────◄──────────────────┘
 *    ▼ each had its turn
 *   recount ─► compare_some ── memory below purged: loaded again ─► next_item
 *                    └── purge ─► done
 *
 * So an environment with many changes does not delay the others for long. */
#include "core/replication/catch_up.h"

#include <assert.h>

#include "base/mem.h"

enum {
    PAGE_RUNS = 1000,
    PAGE_BYTES = 8 << 20,
    TAKEN_AT_ONCE = 16, /* runs per check of the clock */
};

static void step(struct deferred *stepping);

void catch_up_init(struct catch_up *catch_up, struct loop *loop, struct store *store,
                   void (*done)(struct catch_up *catch_up, enum store_status status))
{
    *catch_up = (struct catch_up){ .loop = loop, .store = store, .done = done };
    catch_up->stepping.fn = step;
    list_init(&catch_up->stepping.link);
    list_init(&catch_up->waiting);
    list_init(&catch_up->caught);
}

static void end(struct catch_up *catch_up, enum store_status status)
{
    while (!list_empty(&catch_up->waiting))
        container_of(list_take(&catch_up->waiting), struct catch_up_item, link)->continues =
            false;
    while (!list_empty(&catch_up->caught))
        list_take(&catch_up->caught);
    catch_up->item = NULL;
    catch_up->is_active = false;
    catch_up->done(catch_up, status);
}

/* ---- reading ---- */

static void on_page(struct store_read *read, enum store_status status);
static void on_position(struct store_read *read, enum store_status status);

static void read_page(struct catch_up *catch_up, enum walk_kind kind, uint64_t after,
                      uint64_t up_to)
{
    catch_up->walk = (struct store_walk){
        .read = { READ_WALK, catch_up->item->env->number, on_page },
        .kind = kind,
        .after = after,
        .up_to = up_to,
        .takes_its_time = true,
        .is_for_memory = true,
        .limit = PAGE_RUNS,
        .byte_limit = PAGE_BYTES,
    };
    catch_up->store->ops->read(catch_up->store, &catch_up->walk.read);
}

static void read_changed(struct catch_up *catch_up)
{
    read_page(catch_up, WALK_ALL, catch_up->item->env->applied, INT64_MAX);
}

/* Reads no run, only how far the database is. */
static void read_position(struct catch_up *catch_up)
{
    catch_up->walk = (struct store_walk){
        .read = { READ_WALK, catch_up->item->env->number, on_position },
        .kind = WALK_ALL,
        .after = INT64_MAX - 1,
        .up_to = INT64_MAX,
        .takes_its_time = true,
        .is_for_memory = true,
        .limit = 1,
    };
    catch_up->store->ops->read(catch_up->store, &catch_up->walk.read);
}

static void on_position(struct store_read *read, enum store_status status)
{
    struct catch_up *catch_up = container_of(read, struct catch_up, walk.read);
    if (status) {
        end(catch_up, status);
        return;
    }
    free(catch_up->walk.runs);
    read_page(catch_up, WALK_UNFINISHED, 0, catch_up->walk.seq);
}

/* ---- one environment ---- */

static void recount(struct catch_up *catch_up);

/* Each had its turn: those that have landed are shown before others continue. */
static bool must_recount(const struct catch_up *catch_up)
{
    const struct list *waiting = &catch_up->waiting;
    return list_empty(waiting) ||
           (!list_empty(&catch_up->caught) &&
            container_of(waiting->next, struct catch_up_item, link)->continues);
}

/* Pages that an earlier connection has begun with count, too. */
static void begin_item(struct catch_up *catch_up, struct catch_up_item *item)
{
    if (!item->is_partial)
        item->from = item->env->applied;
    item->is_partial = true;
    catch_up->is_clearing = !item->is_loaded;
    if (item->is_loaded)
        read_changed(catch_up);
    else
        loop_defer(catch_up->loop, &catch_up->stepping);
}

static void next_item(struct catch_up *catch_up)
{
    if (must_recount(catch_up)) {
        recount(catch_up);
        return;
    }
    struct catch_up_item *item =
        container_of(list_take(&catch_up->waiting), struct catch_up_item, link);
    catch_up->item = item;
    if (!item->continues) {
        begin_item(catch_up, item);
        return;
    }
    item->continues = false;
    read_page(catch_up, item->kind, item->after, item->up_to);
}

/* Its next page is read after those of the others. */
static void wait_for_turn(struct catch_up *catch_up)
{
    struct catch_up_item *item = catch_up->item;
    const struct store_walk *walk = &catch_up->walk;
    item->continues = true;
    item->kind = walk->kind;
    item->after = walk->after;
    item->up_to = walk->up_to;
    catch_up->item = NULL;
    list_append(&catch_up->waiting, &item->link);
    next_item(catch_up);
}

static void clear_some(struct catch_up *catch_up)
{
    if (environment_clear(catch_up->item->env)) {
        loop_defer(catch_up->loop, &catch_up->stepping);
        return;
    }
    catch_up->is_clearing = false;
    read_position(catch_up);
}

/* Every unfinished run is in memory. */
static void end_loading(struct catch_up *catch_up)
{
    struct catch_up_item *item = catch_up->item;
    environment_begin_at(item->env, catch_up->walk.up_to);
    item->from = item->env->applied;
    item->is_loaded = true;
    read_changed(catch_up);
}

static void land(struct catch_up *catch_up)
{
    struct catch_up_item *item = catch_up->item;
    item->target = catch_up->walk.seq;
    environment_land(item->env, item->target);
    item->is_partial = false;
    catch_up->item = NULL;
    list_append(&catch_up->caught, &item->link);
    next_item(catch_up);
}

/* A failover has lost commits that memory has: nothing in it can be used. */
static bool has_gone_back(const struct catch_up *catch_up)
{
    const struct store_walk *walk = &catch_up->walk;
    return walk->kind == WALK_ALL && walk->seq < catch_up->item->env->applied;
}

static void end_page(struct catch_up *catch_up)
{
    struct store_walk *walk = &catch_up->walk;
    free(walk->runs);
    walk->runs = NULL;
    if (catch_up->took)
        catch_up->took(catch_up, catch_up->item->env);
    if (has_gone_back(catch_up)) {
        catch_up->item->is_loaded = false;
        end(catch_up, STORE_MOVED);
        return;
    }
    if (walk->more)
        wait_for_turn(catch_up);
    else if (walk->kind == WALK_UNFINISHED)
        end_loading(catch_up);
    else
        land(catch_up);
}

static void take_run(struct environment *env, enum walk_kind kind, struct run *run)
{
    run_share_names(run);
    if (kind == WALK_UNFINISHED)
        environment_load(env, run);
    else if (run->rev > env->applied)
        environment_jump(env, run);
    else
        run_finish(run);
}

static void take_page(struct catch_up *catch_up)
{
    struct store_walk *walk = &catch_up->walk;
    struct timeslice timeslice = loop_timeslice(catch_up->loop);
    struct environment *env = catch_up->item->env;
    while (catch_up->taken < walk->count &&
           timeslice_left_every(&timeslice, TAKEN_AT_ONCE)) {
        struct run *run = &walk->runs[catch_up->taken++];
        walk->after = run->rev;
        if (catch_up->takes)
            catch_up->takes(catch_up, run);
        take_run(env, walk->kind, run);
    }
    if (catch_up->taken < walk->count)
        loop_defer(catch_up->loop, &catch_up->stepping);
    else
        end_page(catch_up);
}

static void on_page(struct store_read *read, enum store_status status)
{
    struct catch_up *catch_up = container_of(read, struct catch_up, walk.read);
    if (status) {
        end(catch_up, status);
        return;
    }
    catch_up->taken = 0;
    take_page(catch_up);
}

/* ---- the counters ---- */

static void compare_some(struct catch_up *catch_up)
{
    while (!list_empty(&catch_up->caught)) {
        struct catch_up_item *item =
            container_of(catch_up->caught.next, struct catch_up_item, link);
        struct store_position position =
            catch_up->store->ops->position(catch_up->store, item->env->number);
        item->is_loaded = position.purged <= item->from;
        if (item->is_loaded &&
            environment_purge(item->env, &position, &catch_up->purged_at)) {
            loop_defer(catch_up->loop, &catch_up->stepping);
            return;
        }
        catch_up->purged_at = 0;
        list_remove(&item->link);
        if (!item->is_loaded)
            list_append(&catch_up->waiting, &item->link);
        else if (catch_up->landed)
            catch_up->landed(catch_up, item);
    }
    if (list_empty(&catch_up->waiting))
        end(catch_up, STORE_OK);
    else
        next_item(catch_up);
}

static void on_recounted(struct store_recount *req, enum store_status status)
{
    struct catch_up *catch_up = container_of(req, struct catch_up, recount);
    if (status)
        end(catch_up, status);
    else
        compare_some(catch_up);
}

/* A store that no other process uses has current counters. */
static void recount(struct catch_up *catch_up)
{
    struct store *store = catch_up->store;
    catch_up->recount = (struct store_recount){ .done = on_recounted };
    if (store->ops->recount)
        store->ops->recount(store, &catch_up->recount);
    else
        loop_defer(catch_up->loop, &catch_up->stepping);
}

static void step(struct deferred *stepping)
{
    struct catch_up *catch_up = container_of(stepping, struct catch_up, stepping);
    if (!catch_up->item)
        compare_some(catch_up);
    else if (catch_up->is_clearing)
        clear_some(catch_up);
    else
        take_page(catch_up);
}

/* ---- beginning ---- */

void catch_up_add(struct catch_up *catch_up, struct catch_up_item *item)
{
    if (!item->link.next)
        list_init(&item->link);
    if (list_empty(&item->link) && item != catch_up->item)
        list_append(&catch_up->waiting, &item->link);
}

void catch_up_begin(struct catch_up *catch_up)
{
    assert(!catch_up->is_active);
    catch_up->is_active = true;
    next_item(catch_up);
}
