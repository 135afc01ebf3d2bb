/* run_read.c - reads a run from memory, or from the store, once for all callers that wait
 * for it.
 *
 *   read ─► in memory? ── yes ─────────────────────────────────────────► done
 *               │ no
 *               ▼
 *             is it being loaded? ── yes ──► waits with the others ─┐
 *               │ no                                                ▼
 *               └──► store ─► loaded: some of the waiting callers, each turn ─► done
 *
 * A load in progress may be older than what a caller knows. It is joined only while every
 * change since it began is still in memory. */
#include "core/live/run_read.h"

#include "base/mem.h"

struct run_load {
    struct environment *env;
    struct store_load load;
    enum store_status status; /* of the load */
    uint64_t applied;         /* the load includes at least every change up to this seq */
    struct list reads;        // run_read::link
    struct deferred deferred;
};

static struct slice load_key(const void *value)
{
    return bytes_slice(((const struct run_load *)value)->load.name);
}

void run_loads_init(struct table *loads)
{
    table_init(loads, load_key);
}

void run_loads_forget(struct table *loads)
{
    table_finish(loads);
    run_loads_init(loads);
}

/* done may free the read. */
static void finish_read(struct run_read *read, const struct run *run, enum err status)
{
    struct environment *env = read->env;
    bytes_clear(&read->id);
    read->run = run;
    read->done(read, status);
    environment_release(env);
}

/* ---- from the store ---- */

static void finish_load(struct run_load *load)
{
    environment_release(load->env);
    bytes_unref(load->load.name);
    run_finish(&load->load.run);
    free(load);
}

static void answer_some(struct deferred *deferred)
{
    struct run_load *load = container_of(deferred, struct run_load, deferred);
    struct timeslice timeslice = loop_timeslice(load->env->loop);
    enum err status = err_of_store(load->status);
    while (!list_empty(&load->reads) && timeslice_left(&timeslice)) {
        struct run_read *read =
            container_of(list_take(&load->reads), struct run_read, link);
        read->loaded = !status;
        finish_read(read, status ? NULL : &load->load.run, status);
    }
    if (list_empty(&load->reads))
        finish_load(load);
    else
        loop_defer(load->env->loop, &load->deferred);
}

/* Removes the load from the table, unless another load of the run has replaced it. */
static void forget(struct run_load *load)
{
    struct table *loads = &load->env->loads;
    if (table_find(loads, load_key(load)) == load)
        table_remove(loads, load_key(load));
}

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct run_load *load = container_of(read, struct run_load, load.read);
    load->status = status;
    forget(load);
    loop_defer(load->env->loop, &load->deferred);
}

static struct run_load *begin_load(struct environment *env, struct bytes *id)
{
    struct run_load *load = mem_new(struct run_load);
    load->env = env;
    load->applied = env->applied;
    load->deferred.fn = answer_some;
    load->load = (struct store_load){ .read = { READ_LOAD, env->number, on_loaded },
                                      .name = bytes_ref(id) };
    list_init(&load->reads);
    list_init(&load->deferred.link);
    environment_hold(env);
    table_remove(&env->loads, bytes_slice(id));
    table_insert(&env->loads, load);
    return load;
}

static void load(struct run_read *read)
{
    struct environment *env = read->env;
    struct run_load *load = table_find(&env->loads, bytes_slice(read->id));
    bool joins = load && env->cold <= load->applied;
    if (!joins)
        load = begin_load(env, read->id);
    list_append(&load->reads, &read->link);
    if (!joins)
        env->store->ops->read(env->store, &load->load.read);
}

/* ---- reading ---- */

static void on_deferred(struct deferred *deferred)
{
    struct run_read *read = container_of(deferred, struct run_read, deferred);
    struct tracked *run = environment_find(read->env, bytes_slice(read->id));
    if (run)
        finish_read(read, &run->run, OK);
    else
        load(read);
}

void run_read_begin(struct environment *env, struct slice run_id, struct run_read *read,
                    void (*done)(struct run_read *read, enum err status))
{
    *read = (struct run_read){ .env = env, .id = bytes_create(run_id), .done = done };
    environment_hold(env);
    read->deferred.fn = on_deferred;
    list_init(&read->deferred.link);
    loop_defer(env->loop, &read->deferred);
}
