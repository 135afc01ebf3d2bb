/* window_load.c - turns a page of the store into entries.
 *
 *   begun at seq B ──► the store reads at R ──► R is applied ──► entries
 *                          changes after B are in memory, in the order of changes
 *
 * A run of the page that is also in memory is matched as it is in memory. One that is not
 * in memory has ended and still matches, unless it ended after R and was evicted: then the
 * page is read again. Runs that match only since R are found by a walk over the changes. */
#include "core/live/window_load.h"

#include "base/mem.h"
#include "core/live/environment.h"

enum {
    AGAIN_MS = 1000, /* retry after a failure of the store */
};

struct window_load {
    struct store_list list;
    enum store_status status; /* of the read */
    struct environment *env;
    struct window *window; /* NULL: the result is no longer needed */
    struct query *query;
    uint64_t begun;     /* env->applied when the read began */
    struct reach reach; /* linked while the page is ahead of memory */
    struct timer timer; /* set while it does not wait for the store, nor for memory */
    void (*loaded)(struct window *window, enum store_status status);
};

static void load_destroy(struct window_load *load)
{
    store_read_finish(&load->list.read);
    timers_clear(loop_timers(load->env->loop), &load->timer);
    reach_forget(&load->reach);
    environment_release(load->env);
    query_unref(load->query);
    free(load);
}

static void on_page(struct store_read *read, enum store_status status);

/* Reads the runs after the last entry, from memory and store as they are now. */
static void read_page(struct window_load *load)
{
    const struct window *window = load->window;
    struct environment *env = load->env;
    load->list = (struct store_list){ .read = { READ_LIST, env->number, on_page },
                                      .filter = load->query->filter,
                                      .limit = WINDOW_KEPT - window->count,
                                      .parts = STORE_FACTS_ALONE };
    if (window->count)
        memcpy(load->list.after, window_entry(window, window->count - 1)->id, RUN_ID_MAX);
    load->begun = env->applied;
    env->store->ops->read(env->store, &load->list.read);
}

/* Returns false if a run may have changed since, and its current state is not in memory. */
static bool add_page(struct window_load *load)
{
    struct window *window = load->window;
    for (size_t i = 0; i < load->list.count; i++) {
        const struct run *run = &load->list.runs[i];
        const struct tracked *tracked = environment_find(load->env, slice_of(run->id));
        if (!tracked && !run_is_settled(run))
            return false;
        const struct run *now = tracked ? &tracked->run : run;
        if (query_matches(window->query, now))
            window_add(window, now);
    }
    return true;
}

/* Adds runs that have changed since the read began. If the page ended before the last
 * matching run, adds only those newer than its end. */
static void add_changed(struct window_load *load, const char *end)
{
    struct window *window = load->window;
    const struct order *all = &load->env->hub.all.order;
    for (uint32_t i = order_after(all, load->begun); i < all->count; i++) {
        const struct tracked *tracked = order_place(all, i).run;
        if (tracked && (!end || strcmp(tracked->run.id, end) > 0) &&
            query_matches(window->query, &tracked->run))
            window_add(window, &tracked->run);
    }
}

static void complete(struct window_load *load)
{
    struct window *window = load->window;
    char end[RUN_ID_MAX] = "";
    bool more = load->list.more;
    if (load->list.count)
        memcpy(end, load->list.runs[load->list.count - 1].id, sizeof(end));
    if (!add_page(load)) {
        store_read_finish(&load->list.read);
        read_page(load);
        return;
    }
    add_changed(load, more ? end : NULL);
    window->more = more || window->count == WINDOW_KEPT;
    window->listed = true;
    window->step++;
    window->load = NULL;
    void (*loaded)(struct window *, enum store_status) = load->loaded;
    load_destroy(load);
    loaded(window, STORE_OK);
}

static void window_load_refuse(struct window_load *load)
{
    struct window *window = load->window;
    void (*loaded)(struct window *, enum store_status) = load->loaded;
    window->load = NULL;
    load_destroy(load);
    loaded(window, STORE_SLOW);
}

static void on_time(struct timer *timer);

static void wait(struct window_load *load, int64_t ms)
{
    struct loop *loop = load->env->loop;
    loop_set_timer(loop, &load->timer, timers_kind(loop_timers(loop), on_time), ms);
}

static void on_reached(struct reach *reach)
{
    complete(container_of(reach, struct window_load, reach));
}

static void wait_for_memory(struct window_load *load)
{
    load->reach.seq = load->list.seq;
    reach_wait(&load->env->reaches, &load->reach);
}

static void on_time(struct timer *timer)
{
    struct window_load *load = container_of(timer, struct window_load, timer);
    if (load->status == STORE_SLOW)
        window_load_refuse(load);
    else if (load->status)
        read_page(load);
    else if (load->env->applied < load->list.seq)
        wait_for_memory(load);
    else
        complete(load);
}

static void on_page(struct store_read *read, enum store_status status)
{
    struct window_load *load = container_of(read, struct window_load, list.read);
    load->status = status;
    if (!load->window)
        load_destroy(load);
    else
        wait(load, status && status != STORE_SLOW ? AGAIN_MS : 0);
}

void window_load_begin(struct window *window,
                       void (*loaded)(struct window *window, enum store_status status))
{
    bool wanted = window->lists &&
                  (!window->listed || (window->more && window->count < WINDOW_REFILL));
    if (!wanted || window->load)
        return;
    struct window_load *load = mem_new(struct window_load);
    load->env = window->env;
    load->window = window;
    load->query = query_ref(window->query);
    load->loaded = loaded;
    reach_init(&load->reach, on_reached);
    window->load = load;
    environment_hold(load->env);
    read_page(load);
}

void window_load_abandon(struct window *window)
{
    struct window_load *load = window->load;
    window->load = NULL;
    if (load && (load->timer.place || reach_waits(&load->reach)))
        load_destroy(load);
    else if (load) {
        load->window = NULL; /* freed when the store has answered */
        store_read_abandon(&load->list.read);
    }
}
