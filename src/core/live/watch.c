/* watch.c - sends differences of a window as frames.
 *
 *   a pass:   the window at `seen` ─┐
 *                                   ├─► left: rows of null ─► rows of runs, newest first
 *             the window at `pass` ─┘                          │
 *                                                   not in memory: read from the store
 *
 * A pass sends one difference. If it takes several frames, it uses the window as it was
 * when the pass began; runs that enter or leave meanwhile are for the next pass. Its frames
 * say `more` until a pass ends at the newest step. Runs that are not in memory are read a
 * few at a time.
 *
 * Rows are of memory as it is now. So none is sent while memory is ahead of the windows, nor
 * while what was read is ahead of memory: the list at its seq would have a later state. */
#include "core/live/watch.h"

#include <inttypes.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "core/live/feed.h"
#include "core/live/frame.h"
#include "core/live/run_read.h"
#include "core/live/windows.h"
#include "core/wire/wire.h"

enum { PAGE_RUNS = 8 };

/* ---- runs that are not in memory ---- */

struct page_run {
    struct watch_page *page;
    struct run_read read;
    struct run run; /* has references of its own; id "": not found */
    char id[RUN_ID_MAX];
};

struct watch_page {
    struct watch *watch; /* NULL: abandoned */
    struct page_run runs[PAGE_RUNS];
    unsigned count, waiting;
    struct reach reach;  /* linked while one of the runs is ahead of memory */
    bool failed;         /* the store failed */
    struct quota *quota; /* they take this many bytes from it */
    size_t held;
};

static void page_destroy(struct watch_page *page)
{
    reach_forget(&page->reach);
    quota_release(page->quota, page->held);
    for (unsigned i = 0; i < page->count; i++)
        run_finish(&page->runs[i].run);
    free(page);
}

static void page_drop(struct watch *watch)
{
    struct watch_page *page = watch->page;
    watch->page = NULL;
    if (page && page->waiting)
        page->watch = NULL;
    else if (page)
        page_destroy(page);
}

static void on_reached(struct reach *reach)
{
    struct feed *feed = container_of(reach, struct watch_page, reach)->watch->feed;
    hub_visit(&feed->env->hub, feed);
}

static void take_run(struct page_run *watched, const struct run *run)
{
    struct watch_page *page = watched->page;
    run_copy(&watched->run, run);
    page->held += run_packet_bytes(run);
    quota_take(page->quota, run_packet_bytes(run));
    if (page->reach.seq < run->rev)
        page->reach.seq = run->rev;
}

/* All runs were read. */
static void take_page(struct watch_page *page)
{
    struct environment *env = page->watch->feed->env;
    if (page->reach.seq > env->applied)
        reach_wait(&env->reaches, &page->reach);
    else
        hub_visit(&env->hub, page->watch->feed);
}

static void on_read(struct run_read *read, enum err status)
{
    struct page_run *watched = container_of(read, struct page_run, read);
    struct watch_page *page = watched->page;
    struct watch *watch = page->watch;
    if (!status) {
        take_run(watched, read->run);
    } else if (status != ERR_NOT_FOUND) {
        page->failed = true;
    } else if (watch) {
        window_take(watch->window, watched->id);
        windows_mark(watch->window);
    }
    if (--page->waiting)
        return;
    if (watch)
        take_page(page);
    else
        page_destroy(page);
}

/* Begins to read the first member, and the next ones that are not in memory. */
static void read_page(struct watch *watch, const struct window_member *members,
                      uint32_t count)
{
    struct environment *env = watch->feed->env;
    struct watch_page *page = mem_new(struct watch_page);
    page->watch = watch;
    page->quota = env->answers;
    reach_init(&page->reach, on_reached);
    watch->page = page;
    for (uint32_t i = 0; i < count && page->count < PAGE_RUNS; i++) {
        if (!members[i].entry || environment_find(env, slice_of(members[i].id)))
            continue;
        struct page_run *watched = &page->runs[page->count++];
        watched->page = page;
        memcpy(watched->id, members[i].id, sizeof(watched->id));
    }
    page->waiting = page->count;
    for (unsigned i = 0; i < page->count; i++)
        run_read_begin(env, slice_of(page->runs[i].id), &page->runs[i].read, on_read);
}

static const struct run *find_run(const struct watch *watch, const char *id)
{
    const struct tracked *tracked = environment_find(watch->feed->env, slice_of(id));
    const struct watch_page *page = watch->page;
    if (tracked)
        return &tracked->run;
    for (unsigned i = 0; page && i < page->count; i++)
        if (page->runs[i].run.id[0] && !strcmp(page->runs[i].id, id))
            return &page->runs[i].run;
    return NULL;
}

/* ---- a pass ---- */

/* Returns the seq up to which the window has evaluated every change. */
static uint64_t position(const struct window *window)
{
    uint64_t all = environment_evaluated(window->env);
    return window->evaluated > all ? window->evaluated : all;
}

static void begin_pass(struct watch *watch)
{
    if (!watch->fresh && watch->seen < watch->window->forgotten)
        watch->fresh = true;
    watch->pass_step = watch->window->step;
    watch->pass_seq = position(watch->window);
    watch->at[0] = '\0';
    watch->begun = false;
    page_drop(watch);
}

/* Returns true if a pass is in progress, and the window still remembers its two steps. */
static bool is_passing(const struct watch *watch)
{
    return watch->pass_step && watch->pass_step >= watch->window->forgotten &&
           (watch->fresh || watch->seen >= watch->window->forgotten);
}

static bool has_member(const struct window_member *members, uint32_t count, const char *id,
                       uint32_t *at)
{
    while (*at < count && strcmp(members[*at].id, id) > 0)
        ++*at;
    return *at < count && !strcmp(members[*at].id, id);
}

static void add_left(const struct watch *watch, const struct window_member *before,
                     uint32_t before_count, const struct window_member *now,
                     uint32_t now_count)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < before_count; i++)
        if (!has_member(now, now_count, before[i].id, &at))
            frame_add_left(watch->feed->view, before[i].id, before[i].version);
}

enum pass_end { PASS_OVER, PASS_FULL, PASS_WAITS };

/* Adds rows after `at`, as many as fit into a frame. */
static enum pass_end add_rows(struct watch *watch, const struct window_member *before,
                              uint32_t before_count, const struct window_member *now,
                              uint32_t now_count)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < now_count; i++) {
        const struct window_entry *entry = now[i].entry;
        bool known = has_member(before, before_count, now[i].id, &at);
        if (watch->at[0] && strcmp(now[i].id, watch->at) >= 0)
            continue;
        if (!entry || (known && entry->rev <= watch->base))
            continue;
        const struct run *run = find_run(watch, now[i].id);
        if (!run) {
            page_drop(watch);
            read_page(watch, now + i, now_count - i);
            return PASS_WAITS;
        }
        if (!frame_add(watch->feed->view, run, known ? watch->base : 0))
            return PASS_FULL;
        memcpy(watch->at, now[i].id, sizeof(watch->at));
    }
    return PASS_OVER;
}

/* Ends the pass: the client has everything that was in the window when it began. Returns
 * true if there is more to send, or to read from the store. */
static bool end_pass(struct watch *watch)
{
    watch->seen = watch->pass_step;
    watch->base = watch->pass_seq;
    watch->pass_step = 0;
    page_drop(watch);
    return watch->seen != watch->window->step ||
           window_is_short(watch->window, watch->limit);
}

/* Sends one frame. Returns true if there is more to send now. */
static bool send_rows(struct watch *watch)
{
    struct window_member before[WINDOW_LIMIT_MAX], now[WINDOW_LIMIT_MAX];
    struct window *window = watch->window;
    uint32_t before_count = 0;
    if (!is_passing(watch))
        begin_pass(watch);
    bool begins = !watch->begun;
    watch->begun = true;
    if (!watch->fresh)
        before_count = window_at(window, watch->seen, watch->limit, before);
    uint32_t now_count = window_at(window, watch->pass_step, watch->limit, now);

    frame_start();
    if (begins)
        add_left(watch, before, before_count, now, now_count);
    enum pass_end end = add_rows(watch, before, before_count, now, now_count);
    bool begin = begins && watch->fresh;
    bool more = end != PASS_OVER || end_pass(watch);
    if (end == PASS_OVER)
        watch->fresh = false;
    if (frame_count() || begin || (watch->open && !more)) {
        watch->open = more;
        frame_send_list(watch->feed, watch->id, more ? position(window) : watch->base,
                        begin, more);
    }
    return end == PASS_FULL || (end == PASS_OVER && watch->seen != window->step);
}

static bool rows_are_due(const struct watch *watch)
{
    const struct watch_page *page = watch->page;
    if (!watch->limit || !watch->window->listed ||
        (page && (page->waiting || reach_waits(&page->reach))))
        return false;
    return watch->fresh || watch->pass_step || watch->open ||
           watch->seen != watch->window->step;
}

/* ---- counts ---- */

static void on_counts_time(struct timer *timer)
{
    struct window *window =
        container_of(container_of(timer, struct tally, timer), struct window, tally);
    list_each (link, &window->watches) {
        struct watch *watch = container_of(link, struct watch, window_link);
        if (watch->counts)
            hub_visit(&window->env->hub, watch->feed);
    }
}

static void send_message(struct watch *watch, struct buf *text)
{
    const struct view *view = watch->feed->view;
    struct rope message = { 0 };
    rope_clear(&message);
    buf_add(&message.text, buf_slice(text));
    buf_finish(text);
    struct bytes *wrapped = view->wrap(&message, view->encoding == ENCODING_MSGPACK);
    watch->feed->ops->send(watch->feed, &wrapped, 1);
    bytes_unref(wrapped);
    rope_finish(&message);
}

static void send_counts(struct watch *watch)
{
    struct tally *tally = &watch->window->tally;
    struct loop *loop = watch->feed->env->loop;
    struct buf text = { 0 };
    if (!watch->counts || !tally->exact || watch->sent_step == tally->step)
        return;
    int64_t now = loop_now_ms(loop);
    if (now < watch->counts_at) {
        if (!tally->timer.place)
            loop_set_timer(loop, &tally->timer,
                           timers_kind(loop_timers(loop), on_counts_time),
                           watch->counts_at - now);
        return;
    }
    watch->sent_step = tally->step;
    watch->counts_at = now + WATCH_COUNTS_MS;
    wire_counts(watch->feed->view, watch->id, position(watch->window), tally->counts,
                &text);
    send_message(watch, &text);
}

/* ---- queries that take too long ---- */

/* Rows continue without counts, so the error has no subscription id, but its text names
 * it. */
static void refuse_counts(struct watch *watch)
{
    struct buf message = { 0 };
    char text[128];
    snprintf(text, sizeof(text),
             "counts of %" PRId64 ": finding these runs takes too long; narrow the filter",
             watch->id);
    wire_error(watch->feed->view->encoding, -1, "limit", text, &message);
    send_message(watch, &message);
    watch->counts = false;
    watch->window->tally.users--;
}

static void refuse_rows(struct watch *watch)
{
    struct buf message = { 0 };
    wire_error(watch->feed->view->encoding, watch->id, "limit",
               "finding the runs of this filter takes too long: watch fewer days with "
               "period, or a tag, task or batch",
               &message);
    send_message(watch, &message);
    wire_end(watch->feed->view->encoding, watch->id, "limit", NULL, &message);
    send_message(watch, &message);
}

/* Returns true if the watch was refused and closed. */
static bool end_refused(struct watch *watch)
{
    bool unlisted = watch->limit && watch->window->refused;
    if (watch->counts && watch->window->tally.refused)
        refuse_counts(watch);
    if (unlisted)
        refuse_rows(watch);
    if (!unlisted && (watch->limit || watch->counts))
        return false;
    watch_close(watch);
    return true;
}

/* ---- visits ---- */

/* Returns true if it has more to send now. */
static bool visit(struct watch *watch)
{
    bool more = false;
    watch->window->marked = false;
    if (watch->page && watch->page->failed) {
        page_drop(watch);
        watch->feed->ops->lost(watch->feed);
        return false;
    }
    if (rows_are_due(watch) && feed_has_quota(watch->feed))
        more = send_rows(watch);
    if (!watch->feed->ops->busy(watch->feed))
        send_counts(watch);
    return more;
}

/* Returns true while the feed waits for the end of its interval. A difference that has
 * begun is sent completely. */
static bool is_early(struct feed *feed)
{
    struct loop *loop = feed->env->loop;
    int64_t now = loop_now_ms(loop);
    list_each (link, &feed->extras->watches)
        if (container_of(link, struct watch, link)->pass_step)
            return false;
    if (now >= feed->extras->watches_at) {
        feed->extras->watches_at = now + feed->extras->every_ms;
        return false;
    }
    feed_wait(feed, feed->extras->watches_at - now);
    return true;
}

/* Each visited watch goes to the end of the list, so the next visit begins with those that
 * had no turn in this one. Rows of one list may fill a frame: a visit ends when the turn's
 * time is used up. */
void watch_visit_all(struct feed *feed)
{
    if (!feed->extras)
        return;
    if (feed->env->evaluation.count) {
        if (list_empty(&feed->visit))
            hub_hold(&feed->env->hub, feed);
        return;
    }
    if (feed->extras->every_ms && is_early(feed))
        return;
    struct list *watches = &feed->extras->watches;
    struct timeslice timeslice = loop_timeslice(feed->env->loop);
    bool more = false;
    for (uint32_t left = feed->extras->watch_count; left > 0; left--) {
        if (feed->ops->busy(feed))
            return; /* feed_drained puts it in line again */
        if (!timeslice_left(&timeslice)) {
            /* The others may send before the end of the interval. */
            feed->extras->watches_at = 0;
            more = true;
            break;
        }
        struct watch *watch = container_of(watches->next, struct watch, link);
        list_append(watches, list_take(watches));
        if (!end_refused(watch))
            more |= visit(watch);
    }
    if (more)
        hub_visit(&feed->env->hub, feed);
}

struct watch *watch_find(struct feed *feed, int64_t id)
{
    if (!feed->extras)
        return NULL;
    list_each (link, &feed->extras->watches) {
        struct watch *watch = container_of(link, struct watch, link);
        if (watch->id == id)
            return watch;
    }
    return NULL;
}

struct watch *watch_open(struct feed *feed, int64_t id, struct query *query, uint32_t limit,
                         bool counts)
{
    struct window *window = windows_find(&feed->env->windows, query);
    if (!window)
        return NULL;
    struct watch *watch = mem_new(struct watch);
    *watch = (struct watch){ .id = id,
                             .feed = feed,
                             .window = window,
                             .limit = limit,
                             .counts = counts,
                             .fresh = true };
    window->lists += limit > 0;
    window->tally.users += counts;
    if (limit)
        window->refused = false;
    if (counts)
        window->tally.refused = false;
    list_append(&window->watches, &watch->window_link);
    list_append(&feed_extras(feed)->watches, &watch->link);
    feed->extras->watch_count++;
    feed->filter_bytes += (uint32_t)query_size(window->query);
    metric_add(M_SUBSCRIPTIONS, 1);
    windows_serve(window);
    hub_visit(&feed->env->hub, feed);
    return watch;
}

void watch_begin_again(struct watch *watch)
{
    page_drop(watch);
    watch->pass_step = 0;
}

void watch_close(struct watch *watch)
{
    struct window *window = watch->window;
    struct feed *feed = watch->feed;
    page_drop(watch);
    list_remove(&watch->link);
    list_remove(&watch->window_link);
    window->lists -= watch->limit > 0;
    window->tally.users -= watch->counts;
    feed->extras->watch_count--;
    feed->filter_bytes -= (uint32_t)query_size(window->query);
    metric_add(M_SUBSCRIPTIONS, -1);
    windows_release(&feed->env->windows, window);
    free(watch);
}
