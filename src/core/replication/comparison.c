/* comparison.c - reads pages of unfinished runs, and steps through them and the order of runs
 * in memory. */
#include "core/replication/comparison.h"

#include "base/log.h"
#include "base/metrics.h"

enum {
    PAGE_RUNS = 500,
    PAGE_BYTES = 2 << 20,
    STEPS_AT_ONCE = 16, /* per check of the clock */
    AGAIN_MS = 1000,
    FAILURES_MAX = 30, /* of reads, one after the other */
};

static void step_some(struct deferred *stepping);
static void on_reached(struct reach *reach);
static void next_environment(struct comparison *comparison);

void comparison_init(struct comparison *comparison, struct loop *loop, struct store *store,
                     const struct comparison_options *options)
{
    *comparison = (struct comparison){ .loop = loop, .store = store, .options = *options };
    comparison->stepping.fn = step_some;
    list_init(&comparison->stepping.link);
    reach_init(&comparison->reach, on_reached);
}

bool comparison_is_idle(const struct comparison *comparison)
{
    return !comparison->is_reading;
}

/* ---- sums ---- */

static void log_sums(const struct environment *env, const struct repl_sum *sum)
{
    char ours[24], theirs[24];
    snprintf(ours, sizeof(ours), "%016llx", (unsigned long long)env->sum);
    snprintf(theirs, sizeof(theirs), "%016llx", (unsigned long long)sum->sum);
    log_error("memory differs from the leader's", "env", env->id, "seq",
              log_number((int64_t)sum->seq), "runs", log_number(env->unfinished),
              "leader_runs", log_number((int64_t)sum->count), "sum", ours, "leader_sum",
              theirs, NULL);
}

bool comparison_of_sums(const struct environment *env, const struct repl_sum *sum)
{
    bool is_same = env->unfinished == sum->count && env->sum == sum->sum;
    if (!is_same)
        log_sums(env, sum);
    return is_same;
}

/* ---- pages ---- */

static void on_page(struct store_read *read, enum store_status status);

static void read_page(struct comparison *comparison, uint64_t after)
{
    comparison->is_reading = true;
    comparison->walk = (struct store_walk){
        .read = { READ_WALK, comparison->env->number, on_page },
        .kind = WALK_UNFINISHED,
        .after = after,
        .up_to = comparison->up_to,
        .limit = PAGE_RUNS,
        .byte_limit = PAGE_BYTES,
    };
    comparison->store->ops->read(comparison->store, &comparison->walk.read);
}

static void on_again(struct timer *timer)
{
    struct comparison *comparison = container_of(timer, struct comparison, again);
    read_page(comparison, comparison->walk.after);
}

static void on_reached(struct reach *reach)
{
    struct comparison *comparison = container_of(reach, struct comparison, reach);
    loop_defer(comparison->loop, &comparison->stepping);
}

/* The store may be ahead by commits whose responses are in flight. */
static void wait_for_memory(struct comparison *comparison)
{
    struct environment *env = comparison->env;
    comparison->taken = 0;
    comparison->place = comparison->walk.after;
    comparison->reach.seq = comparison->walk.seq;
    if (env->applied >= comparison->walk.seq)
        on_reached(&comparison->reach);
    else
        reach_wait(&env->reaches, &comparison->reach);
}

static void leave_environment(struct comparison *comparison)
{
    environment_release(comparison->env);
    comparison->env = NULL;
}

/* Gives up in the end, because a read that takes too long does so each time. */
static void read_again(struct comparison *comparison)
{
    struct timers *timers = loop_timers(comparison->loop);
    if (++comparison->failures < FAILURES_MAX) {
        loop_set_timer(comparison->loop, &comparison->again, timers_kind(timers, on_again),
                       AGAIN_MS);
        return;
    }
    log_warn("cannot compare memory with the database", "env", comparison->env->id, NULL);
    comparison_stop(comparison);
}

static void on_page(struct store_read *read, enum store_status status)
{
    struct comparison *comparison = container_of(read, struct comparison, walk.read);
    comparison->is_reading = false;
    if (!status)
        comparison->failures = 0;
    if (comparison->stopped && !status)
        store_read_finish(read);
    if (comparison->stopped)
        leave_environment(comparison);
    else if (status)
        read_again(comparison);
    else
        wait_for_memory(comparison);
}

/* ---- the merge ---- */

static uint64_t page_end(const struct comparison *comparison)
{
    const struct store_walk *walk = &comparison->walk;
    return walk->more && walk->count ? walk->runs[walk->count - 1].rev : walk->up_to;
}

/* Returns the next run of the page; NULL: all were compared. */
static const struct run *next_stored(const struct comparison *comparison)
{
    const struct store_walk *walk = &comparison->walk;
    return comparison->taken < walk->count ? &walk->runs[comparison->taken] : NULL;
}

/* Steps over the next run in memory. Returns false at the next one of the page. */
static bool step_memory(struct comparison *comparison, struct place *place)
{
    const struct order *all = &comparison->env->hub.all.order;
    const struct run *stored = next_stored(comparison);
    uint32_t i = order_after(all, comparison->place);
    if (i == all->count)
        return false;
    *place = order_place(all, i);
    if (stored ? place->rev >= stored->rev : place->rev > page_end(comparison))
        return false;
    comparison->place = place->rev;
    return true;
}

/* A run that is not in memory may have ended since, and left it. */
static bool is_equal(const struct comparison *comparison, const struct run *stored)
{
    const struct environment *env = comparison->env;
    const struct tracked *tracked = environment_find(env, slice_of(stored->id));
    uint64_t read_at = comparison->walk.seq;
    if (!tracked)
        return env->cold > read_at || env->purged > read_at;
    const struct run *run = &tracked->run;
    return run->rev > read_at ||
           (run->rev == stored->rev && run->version == stored->version &&
            run->status == stored->status && run->execution == stored->execution);
}

static void end_page(struct comparison *comparison)
{
    uint64_t end = page_end(comparison);
    bool more = comparison->walk.more;
    store_read_finish(&comparison->walk.read);
    if (more) {
        read_page(comparison, end);
        return;
    }
    leave_environment(comparison);
    next_environment(comparison);
}

static void report_difference(struct comparison *comparison, const char *run)
{
    log_error("memory differs from the database", "env", comparison->env->id, "run", run,
              "seq", log_number((int64_t)comparison->walk.seq), NULL);
    metric_add(M_MEMORY_DIFFERENT, 1);
    comparison_stop(comparison);
    comparison->options.differs(comparison->options.owner);
}

enum comparison_step { STEP_EQUAL, STEP_DIFFERS, STEP_END };

/* Compares one run. run gets its id. */
static enum comparison_step step(struct comparison *comparison, char run[RUN_ID_MAX])
{
    struct place place;
    if (step_memory(comparison, &place)) {
        bool has_ended = !place.run || run_is_settled(&place.run->run);
        if (!has_ended)
            memcpy(run, place.run->run.id, RUN_ID_MAX);
        return has_ended ? STEP_EQUAL : STEP_DIFFERS;
    }
    const struct run *stored = next_stored(comparison);
    if (!stored)
        return STEP_END;
    comparison->taken++;
    comparison->runs++;
    comparison->place = stored->rev;
    memcpy(run, stored->id, RUN_ID_MAX);
    return is_equal(comparison, stored) ? STEP_EQUAL : STEP_DIFFERS;
}

static void step_some(struct deferred *stepping)
{
    struct comparison *comparison = container_of(stepping, struct comparison, stepping);
    struct timeslice timeslice = loop_timeslice(comparison->loop);
    enum comparison_step found = STEP_EQUAL;
    char run[RUN_ID_MAX];
    while (found == STEP_EQUAL && timeslice_left_every(&timeslice, STEPS_AT_ONCE))
        found = step(comparison, run);
    if (found == STEP_EQUAL)
        loop_defer(comparison->loop, stepping);
    else if (found == STEP_END)
        end_page(comparison);
    else
        report_difference(comparison, run);
}

/* ---- environments ---- */

static void next_environment(struct comparison *comparison)
{
    comparison->env = comparison->options.next(comparison->options.owner, &comparison->at);
    if (!comparison->env) {
        log_info("memory equals the database", "runs",
                 log_number((int64_t)comparison->runs), NULL);
        metric_add(M_MEMORY_EQUAL, 1);
        return;
    }
    environment_hold(comparison->env);
    comparison->up_to = comparison->env->applied;
    read_page(comparison, 0);
}

void comparison_begin(struct comparison *comparison)
{
    next_environment(comparison);
}

void comparison_stop(struct comparison *comparison)
{
    if (comparison->stopped)
        return;
    comparison->stopped = true;
    timers_clear(loop_timers(comparison->loop), &comparison->again);
    reach_forget(&comparison->reach);
    loop_cancel_deferred(&comparison->stepping);
    if (comparison->is_reading || !comparison->env)
        return;
    store_read_finish(&comparison->walk.read);
    leave_environment(comparison);
}
