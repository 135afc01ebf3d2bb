/* tally.c - adds the changes since a count of the store to that count.
 *
 * A count has a seq up to which it includes everything. The store may be ahead: then the
 * count waits until the changes up to that seq were applied and evaluated. Changes noted up
 * to that seq are left out. */
#include "core/live/tally.h"

#include "base/log.h"
#include "base/mem.h"
#include "core/live/environment.h"
#include "core/live/window.h"

enum {
    NOTES_MAX = 1 << 16, /* changes during one count; with more, it is repeated */
    EVALUATES_MS = 1, /* between two checks whether the windows have evaluated a change */
    AGAIN_MS = 1000,  /* retry after a failure of the store */
};

struct tally_change {
    uint64_t seq;
    uint8_t before, after;
};

struct tally_load {
    struct store_count count;
    enum store_status status; /* of the count */
    struct environment *env;
    struct window *window; /* NULL: the result is no longer needed */
    struct query *query;
    /* It counts the runs that leave the period, to be subtracted. */
    bool taken_away;
    int64_t from; /* the new start of the period */
    struct tally_change *changes;
    size_t change_count, capacity;
    bool overflown;
    struct reach reach; /* linked while the count is ahead of memory */
    struct timer timer;
};

static void load_destroy(struct tally_load *load)
{
    timers_clear(loop_timers(load->env->loop), &load->timer);
    reach_forget(&load->reach);
    environment_release(load->env);
    query_unref(load->query);
    free(load->changes);
    free(load);
}

static void shift(struct tally *tally, uint8_t before, uint8_t after)
{
    if (before != TALLY_NONE)
        tally->counts[before]--;
    if (after != TALLY_NONE)
        tally->counts[after]++;
}

static void note_change(struct tally_load *load, const struct run *run, uint8_t before,
                        uint8_t after)
{
    if (load->taken_away && run->created_at > load->count.filter.created_to)
        return;
    if (load->change_count == NOTES_MAX) {
        load->overflown = true;
        return;
    }
    if (load->change_count == load->capacity) {
        load->capacity = load->capacity ? load->capacity * 2 : 64;
        load->changes = mem_resize(load->changes, load->capacity * sizeof(*load->changes));
    }
    load->changes[load->change_count++] = (struct tally_change){ run->rev, before, after };
}

void tally_note(struct tally *tally, const struct run *run, uint8_t before, uint8_t after)
{
    if (before == after)
        return;
    if (tally->load)
        note_change(tally->load, run, before, after);
    if (!tally->exact)
        return;
    shift(tally, before, after);
    tally->step++;
}

/* ---- a count of the store has ended ---- */

static void on_time(struct timer *timer);

static void wait(struct tally_load *load, int64_t ms)
{
    struct loop *loop = load->env->loop;
    loop_set_timer(loop, &load->timer, timers_kind(loop_timers(loop), on_time), ms);
}

/* Sets the counts as they are now: those of the store, plus the changes after it. */
static void add_changes(struct tally_load *load, struct tally *sum)
{
    memcpy(sum->counts, load->count.counts, sizeof(sum->counts));
    for (size_t i = 0; i < load->change_count; i++)
        if (load->changes[i].seq > load->count.seq)
            shift(sum, load->changes[i].before, load->changes[i].after);
}

static void take_away(struct tally *tally, const struct tally *sum)
{
    for (int i = 0; i < RUN_STATUS_COUNT; i++)
        tally->counts[i] -= sum->counts[i];
}

static void complete(struct tally_load *load)
{
    struct window *window = load->window;
    struct tally *tally = &window->tally;
    struct tally sum = { .step = 0 };
    bool failed = load->status || load->overflown;
    bool advances = load->taken_away;
    int64_t from = load->from;

    add_changes(load, &sum);
    tally->load = NULL;
    if (failed && advances)
        tally->exact = false; /* everything is counted again, from the new start */
    else if (!failed && advances)
        take_away(tally, &sum);
    else if (!failed)
        memcpy(tally->counts, sum.counts, sizeof(tally->counts));
    tally->exact = tally->exact || (!failed && !advances);
    tally->refused = load->status == STORE_SLOW && !tally->exact;
    tally->step++;
    load_destroy(load);
    if (advances)
        window->query->filter.created_from = from;
    tally->changed(window);
}

static void complete_or_wait(struct tally_load *load)
{
    struct environment *env = load->env;
    if (!load->status && env->applied < load->count.seq) {
        load->reach.seq = load->count.seq;
        reach_wait(&env->reaches, &load->reach);
    } else if (!load->status && environment_evaluated(env) < load->count.seq) {
        wait(load, EVALUATES_MS);
    } else {
        complete(load);
    }
}

static void on_reached(struct reach *reach)
{
    complete_or_wait(container_of(reach, struct tally_load, reach));
}

static void on_time(struct timer *timer)
{
    complete_or_wait(container_of(timer, struct tally_load, timer));
}

static void on_counted(struct store_read *read, enum store_status status)
{
    struct tally_load *load = container_of(read, struct tally_load, count.read);
    load->status = status;
    if (!load->window)
        load_destroy(load);
    else
        wait(load, status && status != STORE_SLOW ? AGAIN_MS : 0);
}

static struct tally_load *load_create(struct window *window)
{
    struct environment *env = window->env;
    struct tally_load *load = mem_new(struct tally_load);
    load->env = env;
    load->window = window;
    load->query = query_ref(window->query);
    load->count = (struct store_count){ .read = { READ_COUNT, env->number, on_counted },
                                        .filter = window->query->filter };
    reach_init(&load->reach, on_reached);
    environment_hold(env);
    window->tally.load = load;
    return load;
}

void tally_begin(struct window *window)
{
    struct tally *tally = &window->tally;
    if (!tally->users || tally->load || tally->refused || (tally->exact && !tally->stale))
        return;
    tally->stale = false;
    struct tally_load *load = load_create(window);
    load->env->store->ops->read(load->env->store, &load->count.read);
}

void tally_advance(struct window *window, int64_t from)
{
    struct tally *tally = &window->tally;
    struct run_filter *filter = &window->query->filter;
    if (tally->load && tally->users)
        return; /* try again in a minute */
    if (!tally->users || !tally->exact) {
        filter->created_from = from;
        tally->changed(window);
        return;
    }
    struct tally_load *load = load_create(window);
    load->taken_away = true;
    load->from = from;
    load->count.filter.created_to = from - 1;
    load->env->store->ops->read(load->env->store, &load->count.read);
}

void tally_stop(struct window *window)
{
    struct tally *tally = &window->tally;
    struct tally_load *load = tally->load;
    timers_clear(loop_timers(window->env->loop), &tally->timer);
    tally->load = NULL;
    if (load && (load->timer.place || reach_waits(&load->reach)))
        load_destroy(load);
    else if (load) {
        load->window = NULL; /* freed when the store has answered */
        store_read_abandon(&load->count.read);
    }
    tally->exact = tally->refused = false;
}
