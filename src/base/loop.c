/* loop.c - the end of each turn: deferred calls, flushers, timers, and CPU time.
 *
 *   poll ─► timers ─► prepare: deferred ─► flushers ─► last ones ─► CPU time of the turn
 *   noted ─► poll
 *
 * Lists are emptied into local ones before they are walked, because a callback may add to
 * them. */
#include "base/loop.h"

#include <assert.h>
#include <time.h>
#include <uv.h>

#include "base/mem.h"
#include "base/metrics.h"

enum {
    BUDGET_NS = 500000,        /* CPU time per turn, or per share of it, for long work */
    BEHIND_NS = BUDGET_NS / 2, /* the share of work that did not fit into the last turn */
    WORTH_NOTING_NS = 20000,   /* below this, a turn without callbacks did nothing */
    STEPPED_BUDGET = 1000,
};

/* With libuv, a turn ends in the prepare handle, just before the poll. Everything from
 * there to the next prepare handle belongs to the next turn: the poll's callbacks, then the
 * uv timer. Waiting in the poll costs no CPU time. uv_run may return between the timer and
 * the prepare handle: from libuv 1.45 on, it checks there whether anything is left to wait
 * for. */
struct loop {
    uv_loop_t *uv;    /* NULL: stepped by a test */
    uv_prepare_t end; /* ends the turn; does not keep the libuv loop alive */
    uv_timer_t alarm; /* set for the nearest deadline of timers */
    uv_idle_t again;  /* active while something is left, so that the poll does not wait */
    unsigned handles; /* open ones */

    struct timers timers;
    struct list deferred; /* deferred::link */
    struct list awake;    /* flusher::link, of those that do not run last */
    struct list last;     /* flusher::link, of those that do */
    int64_t alarm_at;     /* in loop_now_ms time; INT64_MAX: the alarm is off */
    bool timers_running;
    bool worked; /* a callback ran in this turn */
    bool behind; /* a flusher had more to do than fitted into the last turn */
    bool over;   /* the share is used up; noted because thousands of sockets may ask */

    int64_t turn_cpu_ns;  /* thread CPU time when the turn began */
    int64_t share_cpu_ns; /* thread CPU time when the current share began */
    int64_t in_budget_ns; /* until this monotonic time, the share cannot be used up */

    int64_t now_ms, wall_ms; /* of a stepped loop */
    unsigned budget, asked;  /* stepped: loop_time_left returns true budget times a turn */
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* cpu_ns: thread CPU time now. */
static void begin_share(struct loop *loop, int64_t cpu_ns, int64_t budget_ns)
{
    loop->share_cpu_ns = cpu_ns - (BUDGET_NS - budget_ns);
    loop->in_budget_ns = clock_ns(CLOCK_MONOTONIC) + budget_ns;
    loop->over = false;
}

static void begin_turn(struct loop *loop, int64_t cpu_ns)
{
    begin_share(loop, cpu_ns, BUDGET_NS);
    loop->turn_cpu_ns = cpu_ns;
    loop->asked = 0;
    loop->worked = false;
}

void loop_begin_share(struct loop *loop)
{
    if (loop->uv && !loop_time_left(loop))
        begin_share(loop, clock_ns(CLOCK_THREAD_CPUTIME_ID), BUDGET_NS);
    else
        loop->asked = 0;
}

/* Reading the CPU clock is a system call, reading the monotonic clock is not. CPU time
 * cannot grow faster than time, so the monotonic clock suffices for most calls. */
bool loop_time_left(struct loop *loop)
{
    if (!loop->uv)
        return loop->asked++ < loop->budget;
    if (loop->over)
        return false;
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now < loop->in_budget_ns)
        return true;
    int64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - loop->share_cpu_ns;
    if (used >= BUDGET_NS) {
        loop->over = true;
        return false;
    }
    loop->in_budget_ns = now + BUDGET_NS - used;
    return true;
}

/* Runs at least one call, then more while there is time. Calls deferred meanwhile wait for
 * the next turn. */
static void run_deferred(struct loop *loop)
{
    struct timeslice timeslice = loop_timeslice(loop);
    struct list due;
    list_init(&due);
    list_move_all(&due, &loop->deferred);
    while (!list_empty(&due) && timeslice_left(&timeslice)) {
        struct deferred *deferred = container_of(list_take(&due), struct deferred, link);
        loop->worked = true;
        deferred->fn(deferred); /* may free it */
    }
    list_move_all(&due, &loop->deferred);
    list_move_all(&loop->deferred, &due);
}

/* Calls each flusher once; flushers check the time themselves. One that frees itself must
 * return false. */
static void run_line(struct loop *loop, struct list *awake)
{
    struct list due;
    list_init(&due);
    list_move_all(&due, awake);
    while (!list_empty(&due)) {
        struct flusher *flusher = container_of(list_take(&due), struct flusher, link);
        flusher->awake = false;
        loop->worked = true;
        if (flusher->fn(flusher)) {
            loop_wake(loop, flusher);
            loop->behind = true;
        }
    }
}

/* A flusher that had more to do than fitted into the last turn gets a share of its own, a
 * smaller one. Responses that the last flushers send do not wait for it. */
static void run_flushers(struct loop *loop)
{
    if (loop->behind) {
        run_line(loop, &loop->last);
        begin_share(loop, clock_ns(CLOCK_THREAD_CPUTIME_ID), BEHIND_NS);
    }
    loop->behind = false;
    run_line(loop, &loop->awake);
    run_line(loop, &loop->last);
}

static void run_timers(struct loop *loop)
{
    if (timers_next(&loop->timers) > loop_now_ms(loop))
        return;
    struct timeslice timeslice = loop_timeslice(loop);
    bool more = true;
    loop->worked = true;
    loop->timers_running = true;
    while (more && timeslice_left(&timeslice))
        more = timers_run(&loop->timers, loop_now_ms(loop), 1);
    loop->timers_running = false;
}

static bool has_more(const struct loop *loop)
{
    return !list_empty(&loop->deferred) || !list_empty(&loop->awake) ||
           !list_empty(&loop->last);
}

static void on_again(uv_idle_t *again)
{
    (void)again;
}

static void run_again(struct loop *loop)
{
    if (loop->uv)
        uv_idle_start(&loop->again, on_again);
}

/* Runs due timers. The end of the turn sets the alarm for the remaining ones. Until then it
 * is off: it neither keeps the libuv loop alive nor limits the poll, so the idle handle
 * makes the loop take another turn. */
static void on_alarm(uv_timer_t *alarm)
{
    struct loop *loop = container_of(alarm, struct loop, alarm);
    loop->alarm_at = INT64_MAX;
    run_timers(loop);
    run_again(loop);
}

static void set_alarm(struct loop *loop)
{
    int64_t next = timers_next(&loop->timers);
    if (next == loop->alarm_at)
        return;
    loop->alarm_at = next;
    if (next == INT64_MAX) {
        uv_timer_stop(&loop->alarm);
        return;
    }
    int64_t ms = next - loop_now_ms(loop);
    uv_timer_start(&loop->alarm, on_alarm, ms > 0 ? (uint64_t)ms : 0, 0);
}

static void on_end(uv_prepare_t *end)
{
    struct loop *loop = container_of(end, struct loop, end);
    run_deferred(loop);
    run_flushers(loop);
    if (!has_more(loop))
        uv_idle_stop(&loop->again);
    set_alarm(loop);

    int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t used = cpu_ns - loop->turn_cpu_ns;
    if (loop->worked || used >= WORTH_NOTING_NS)
        metric_observe_us(H_TURN_CPU, used / 1000);
    begin_turn(loop, cpu_ns);
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
    return loop->uv;
}

struct timers *loop_timers(struct loop *loop)
{
    return &loop->timers;
}

int64_t loop_wall_ms(struct loop *loop)
{
    return loop->uv ? clock_ns(CLOCK_REALTIME) / 1000000 : loop->wall_ms;
}

int64_t loop_now_ms(struct loop *loop)
{
    return loop->uv ? (int64_t)uv_now(loop->uv) : loop->now_ms;
}

int64_t loop_boot_ms(struct loop *loop)
{
    return loop->uv ? clock_ns(CLOCK_BOOTTIME) / 1000000 : loop->now_ms;
}

/* Within a timer, the minimum is 1 ms: a timer of 0 ms would run in the same turn,
 * forever. */
void loop_set_timer(struct loop *loop, struct timer *timer, uint32_t kind, int64_t ms)
{
    int64_t least = loop->timers_running ? 1 : 0;
    int64_t at;
    if (__builtin_add_overflow(loop_now_ms(loop), ms > least ? ms : least, &at))
        at = INT64_MAX - 1;
    timers_set(&loop->timers, timer, kind, at);
    if (loop->uv && at < loop->alarm_at && !loop->timers_running)
        set_alarm(loop);
}

/* Returns true if the link is in a list. A zeroed or initialized link is in none. */
static bool is_linked(const struct list *link)
{
    return link->next && link->next != link;
}

void loop_defer(struct loop *loop, struct deferred *deferred)
{
    assert(deferred->fn);
    if (is_linked(&deferred->link))
        return;
    list_append(&loop->deferred, &deferred->link);
    run_again(loop);
}

void loop_cancel_deferred(struct deferred *deferred)
{
    if (is_linked(&deferred->link))
        list_remove(&deferred->link);
}

void loop_add_flusher(struct loop *loop, struct flusher *flusher)
{
    (void)loop;
    assert(flusher->fn);
    flusher->awake = false;
    list_init(&flusher->link);
}

void loop_remove_flusher(struct flusher *flusher)
{
    flusher->awake = false;
    if (is_linked(&flusher->link))
        list_remove(&flusher->link);
}

void loop_wake(struct loop *loop, struct flusher *flusher)
{
    assert(flusher->link.next); /* loop_add_flusher was called */
    if (flusher->awake)
        return;
    flusher->awake = true;
    list_append(flusher->runs_last ? &loop->last : &loop->awake, &flusher->link);
    run_again(loop);
}

bool loop_turn(struct loop *loop, int64_t ms)
{
    assert(!loop->uv && ms >= 0);
    loop->now_ms += ms;
    loop->wall_ms += ms;
    begin_turn(loop, 0);
    run_timers(loop);
    run_deferred(loop);
    run_flushers(loop);
    return has_more(loop) || timers_next(&loop->timers) <= loop->now_ms;
}

void loop_set_wall(struct loop *loop, int64_t unix_ms)
{
    assert(!loop->uv);
    loop->wall_ms = unix_ms;
}

void loop_set_budget(struct loop *loop, unsigned asks)
{
    assert(!loop->uv);
    loop->budget = asks;
}

static void start_handles(struct loop *loop)
{
    uv_prepare_init(loop->uv, &loop->end);
    uv_timer_init(loop->uv, &loop->alarm);
    uv_idle_init(loop->uv, &loop->again);
    loop->handles = 3;
    uv_prepare_start(&loop->end, on_end);
    uv_unref((uv_handle_t *)&loop->end);
}

struct loop *loop_create(struct uv_loop_s *uv)
{
    struct loop *loop = mem_new(struct loop);
    loop->uv = uv;
    loop->alarm_at = INT64_MAX;
    loop->budget = STEPPED_BUDGET;
    list_init(&loop->deferred);
    list_init(&loop->awake);
    list_init(&loop->last);
    timers_init(&loop->timers);
    if (uv)
        start_handles(loop);
    begin_turn(loop, clock_ns(CLOCK_THREAD_CPUTIME_ID));
    return loop;
}

static void on_closed(struct uv_handle_s *handle)
{
    struct loop *loop = handle->data;
    if (--loop->handles == 0)
        free(loop);
}

static void close_handle(struct loop *loop, uv_handle_t *handle)
{
    handle->data = loop; /* three types of handle share one callback */
    uv_close(handle, on_closed);
}

void loop_destroy(struct loop *loop)
{
    if (!loop)
        return;
    assert(timers_next(&loop->timers) == INT64_MAX && !has_more(loop));
    timers_finish(&loop->timers);
    if (!loop->uv) {
        free(loop);
        return;
    }
    close_handle(loop, (uv_handle_t *)&loop->end);
    close_handle(loop, (uv_handle_t *)&loop->alarm);
    close_handle(loop, (uv_handle_t *)&loop->again);
}
