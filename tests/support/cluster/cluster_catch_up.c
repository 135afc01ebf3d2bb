/* cluster_catch_up.c - collects pages, then applies their rows in one turn. */
#include "tests/support/cluster/cluster_catch_up.h"

#include <stdlib.h>

#include "base/mem.h"
#include "tests/support/cluster/cluster.h"
#include "tests/support/cluster/cluster_faults.h"

enum { PAGE_RUNS = 8 };

void cluster_catch_up_init(struct cluster_catch_up *catch_up,
                           struct cluster_gateway *gateway)
{
    *catch_up = (struct cluster_catch_up){ .gateway = gateway };
}

static void forget_runs(struct cluster_catch_up *catch_up)
{
    for (size_t i = 0; i < catch_up->count; i++)
        run_finish(&catch_up->runs[i]);
    catch_up->count = 0;
}

void cluster_catch_up_finish(struct cluster_catch_up *catch_up)
{
    forget_runs(catch_up);
    free(catch_up->runs);
    catch_up->runs = NULL;
    catch_up->capacity = 0;
    catch_up->active = catch_up->again = false;
}

/* ---- applying ---- */

static void put(struct environment *env, struct run *run)
{
    if (run->rev <= env->applied)
        return;
    env->applied = run->rev - 1; /* the numbers in between are left out */
    environment_put(env, run, run->rev);
}

/* Counts were kept by changes whose states before are unknown: the store counts again. */
static void read_windows_again(struct environment *env)
{
    size_t at = 0;
    for (struct window *window; (window = table_next(&env->windows.by_key, &at));) {
        tally_stop(window);
        windows_serve(window);
    }
}

/* The ring and the history would show the numbers that were left out as if nothing had
 * happened: feeds walk instead. */
static void apply(struct cluster_catch_up *catch_up)
{
    struct environment *env = catch_up->gateway->env;
    bool any = catch_up->target > env->applied;
    for (size_t i = 0; i < catch_up->count; i++)
        put(env, &catch_up->runs[i]);
    forget_runs(catch_up);
    if (!any)
        return;
    env->applied = catch_up->target;
    if (!has_fault(FAULT_KEEPS_RING)) {
        recent_finish(&env->recent);
        env->recent.dropped = env->applied;
    }
    history_finish(&env->history);
    if (!has_fault(FAULT_KEEPS_COUNTS))
        read_windows_again(env);
}

/* Retention has removed runs that memory may have as unfinished, and no page has them. */
static bool must_load(const struct cluster_gateway *gateway)
{
    return gateway->store.positions[REPL_RUNS].purged > gateway->env->applied &&
           !has_fault(FAULT_KEEPS_PURGED);
}

static void complete(struct cluster_catch_up *catch_up)
{
    struct cluster_gateway *gateway = catch_up->gateway;
    struct store_position position = gateway->store.positions[REPL_RUNS];
    catch_up->active = false;
    if (must_load(gateway)) {
        gateway->must_forget = true;
        return;
    }
    apply(catch_up);
    cluster_gateway_purge(gateway, &position);
    if (gateway->accounts.applied < catch_up->keys_seq)
        gateway->accounts.applied = catch_up->keys_seq;
    catch_up->steps++;
    if (catch_up->again)
        cluster_catch_up_begin(catch_up);
    else
        cluster_gateway_caught_up(gateway);
}

/* ---- reading ---- */

static void add(struct cluster_catch_up *catch_up, const struct run *run)
{
    if (catch_up->count == catch_up->capacity) {
        catch_up->capacity = catch_up->capacity ? 2 * catch_up->capacity : 64;
        catch_up->runs =
            mem_resize(catch_up->runs, catch_up->capacity * sizeof(struct run));
    }
    catch_up->runs[catch_up->count++] = *run;
}

static void read_page(struct cluster_catch_up *catch_up, uint64_t after);

static void on_page(struct store_read *read, enum store_status status)
{
    struct cluster_catch_up *catch_up =
        container_of(read, struct cluster_catch_up, walk.read);
    struct store_walk *walk = &catch_up->walk;
    uint64_t after = walk->after;
    if (status) {
        cluster_catch_up_finish(catch_up);
        return;
    }
    for (size_t i = 0; i < walk->count; i++)
        add(catch_up, &walk->runs[i]);
    if (walk->count)
        after = walk->runs[walk->count - 1].rev;
    free(walk->runs);
    catch_up->target = walk->seq;
    if (walk->more)
        read_page(catch_up, after);
    else
        complete(catch_up);
}

static void read_page(struct cluster_catch_up *catch_up, uint64_t after)
{
    catch_up->walk = (struct store_walk){
        .read = { READ_WALK, REPL_RUNS, on_page },
        .kind = WALK_ALL,
        .after = after,
        .up_to = UINT64_MAX,
        .limit = PAGE_RUNS,
        .byte_limit = SIZE_MAX,
    };
    cluster_store_read(&catch_up->gateway->store, &catch_up->walk.read, false);
}

static void on_keys(struct store_read *read, enum store_status status)
{
    struct cluster_catch_up *catch_up =
        container_of(read, struct cluster_catch_up, keys.read);
    struct cluster_gateway *gateway = catch_up->gateway;
    if (status) {
        cluster_catch_up_finish(catch_up);
        return;
    }
    for (size_t i = 0; i < catch_up->keys.count; i++)
        cluster_accounts_put(&gateway->accounts, &catch_up->keys.documents[i]);
    store_read_finish(read);
    catch_up->keys_seq = gateway->store.positions[REPL_ACCOUNTS].seq;
    read_page(catch_up, gateway->env->applied);
}

void cluster_catch_up_begin(struct cluster_catch_up *catch_up)
{
    catch_up->again = catch_up->active;
    if (catch_up->active)
        return;
    catch_up->active = true;
    catch_up->keys = (struct store_scan){ .read = { READ_SCAN, REPL_ACCOUNTS, on_keys },
                                          .kind = DOC_KEY };
    cluster_store_read(&catch_up->gateway->store, &catch_up->keys.read, false);
}
