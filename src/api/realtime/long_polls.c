/* long_polls.c - the long poll of the official SDKs, on the same feeds as WebSockets.
 *
 *   request ─► does it exist, may they read it ─► feed, from the client's position
 *        follows the ring ──┐
 *        or walks ──────────┴─► rows: answered    none: held if live, and answered idle
 *
 * A response is one write: headers and the whole body. If a change ends many polls, they
 * share the body. A poll that got its response leaves a kept view (core/live/kept_view.h)
 * for the client, which is back after a round trip. */
#include "api/realtime/long_polls.h"

#include "api/realtime/gzip.h"
#include "api/realtime/poll.h"
#include "api/realtime/realtime.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/live/kept_view.h"

enum {
    HOLD_MS = 20 * 1000, /* plus or minus 15 % */
    KEPT_VIEW_MS = 2000,
    /* Removed between two checks of the time; each takes about a microsecond. */
    KEPT_VIEWS_AT_ONCE = 16,
    PAGE_BYTES = 64 * 1024, /* and one frame more: gzip still accepts that */
};

#define UP_TO_DATE "{\"headers\":{\"control\":\"up-to-date\"}}"

/* gzip reads one text. */
_Static_assert((int)GZIP_MOST <= (int)ROPE_LONG, "what is compressed has no inserts");

static const char up_to_date[] = "[" UP_TO_DATE "]";
static const char must_refetch[] = "[{\"headers\":{\"control\":\"must-refetch\"}}]";

/* ---- bodies ---- */

/* Turns the rows of one frame into a whole body, as nearly every response needs it. */
static struct bytes *wrap(const struct rope *rows, bool binary)
{
    struct slice end = SLICE("," UP_TO_DATE "]");
    (void)binary;
    return rope_join(SLICE("["), rows, rope_len(rows) ? end : slice_from(end, 1));
}

static bool has_rows(const struct bytes *body)
{
    return body->len > sizeof("[," UP_TO_DATE "]") - 1;
}

static void add_rows(struct rope *rows, const struct bytes *body)
{
    if (!has_rows(body))
        return;
    if (rope_len(rows))
        buf_add_char(&rows->text, ',');
    rope_add_inner(&rows->text, body, 1, sizeof("," UP_TO_DATE "]") - 1);
}

static void burst_forget(struct poll_burst *burst)
{
    for (size_t i = 0; i < burst->count; i++)
        bytes_unref(burst->frames[i]);
    burst->count = 0;
    bytes_clear(&burst->body);
}

static struct bytes *join(struct poll *poll, struct bytes *const *frames, size_t count)
{
    struct poll_burst *burst = &poll->polls->bursts[poll->feed.view->index];
    struct rope rows = { 0 };
    if (count == 1)
        return bytes_ref(frames[0]);
    if (burst->count == count && !memcmp(burst->frames, frames, count * sizeof(*frames)))
        return bytes_ref(burst->body);
    rope_clear(&rows);
    for (size_t i = 0; i < count; i++)
        add_rows(&rows, frames[i]);
    struct bytes *body = wrap(&rows, false);
    rope_finish(&rows);
    if (count > POLL_BURST_MAX)
        return body;
    burst_forget(burst);
    for (size_t i = 0; i < count; i++)
        burst->frames[i] = bytes_ref(frames[i]);
    burst->count = count;
    burst->body = body;
    return bytes_ref(body);
}

/* ---- the answer ---- */

static void leave_count(struct poll *poll)
{
    if (!poll->seat.env)
        return;
    connection_limit_leave(&poll->seat);
    metric_add(M_POLLS, -1);
}

/* Ends the call. The feed is finished later, because this may be inside one of its
 * visits. */
static void end_call(struct poll *poll)
{
    struct api *api = poll->call->api;
    struct loop *loop = engine_loop(api_engine(api));
    bool leaving = api_follows(api) ? api_doubt(api) : api_not_ready(api);
    timers_clear(loop_timers(loop), &poll->timer);
    poll->call = NULL;
    if (leaving)
        poll->polls = NULL; /* no kept view */
    loop_defer(loop, &poll->deferred);
}

static void long_poll_refuse(struct poll *poll, enum err error)
{
    struct api_call *call = poll->call;
    leave_count(poll);
    end_call(poll);
    api_reply_error(call, error);
}

/* Answers the poll, and takes ownership of the body. */
static void answer(struct poll *poll, struct bytes *body, uint64_t seen, uint64_t base,
                   bool complete)
{
    struct api_call *call = poll->call;
    struct bytes *packed = NULL;

    if (api_check_current(call)) {
        long_poll_refuse(poll, ERR_DRAINING);
        bytes_unref(body);
        return;
    }
    leave_count(poll);
    poll_add_headers(poll, seen, base, complete);
    if (body->len >= GZIP_WORTH) {
        api_add_header(call, "vary", SLICE("accept-encoding"));
        if (api_accepts_gzip(call) && (packed = gzip_shared(body)))
            api_add_header(call, "content-encoding", SLICE("gzip"));
    }
    end_call(poll);
    metric_add(M_POLLS_ANSWERED, 1);
    api_reply_shared(call, 200, packed ? packed : body);
    bytes_unref(packed);
    bytes_unref(body);
}

/* Answers with a page. If it is not complete, the next poll continues the walk. */
static void answer_page(struct poll *poll, uint64_t seen, bool complete)
{
    const struct rope *rows = &poll->rows;
    if (complete)
        answer(poll, wrap(rows, false), poll->feed.seen, poll->feed.base, true);
    else
        answer(poll, rope_join(SLICE("["), rows, SLICE("]")), seen, poll->base, false);
}

/* Returns the position of the walk. Only valid during a walk. */
static uint64_t walked_to(const struct poll *poll)
{
    return container_of(poll->feed.catching.next, struct subscription, link)->own->seen;
}

static void answer_idle(struct poll *poll)
{
    if (!list_empty(&poll->feed.catching)) {
        answer_page(poll, walked_to(poll), false);
        return;
    }
    /* Moves the position forward as far as nothing was missed. */
    feed_in_sync(&poll->feed);
    answer(poll, bytes_create(slice_of(up_to_date)), poll->feed.seen, poll->feed.base,
           true);
}

/* ---- functions of the feed ---- */

static bool have_rows(struct bytes *const *frames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (has_rows(frames[i]))
            return true;
    return false;
}

/* A held poll that is visited late may have to walk, and then gets its rows in parts. */
static bool poll_send(struct feed *feed, struct bytes *const *frames, size_t count)
{
    struct poll *poll = container_of(feed, struct poll, feed);
    bool walking = !list_empty(&feed->catching), complete = feed->seen == feed->base;

    if (!poll->call)
        return false;
    if (!walking && complete && !rope_len(&poll->rows)) {
        bool rows = have_rows(frames, count);
        if (rows || !poll->live)
            answer(poll, join(poll, frames, count), feed->seen, feed->base, true);
        return !rows && poll->live; /* stays held */
    }
    for (size_t i = 0; i < count; i++)
        add_rows(&poll->rows, frames[i]);
    if (!walking) {
        answer_page(poll, feed->seen, complete);
        return false;
    }
    if (rope_len(&poll->rows) < PAGE_BYTES)
        return true;
    answer_page(poll, walked_to(poll), false);
    return false;
}

static bool poll_busy(struct feed *feed)
{
    return !container_of(feed, struct poll, feed)->call;
}

static void poll_lost(struct feed *feed)
{
    struct poll *poll = container_of(feed, struct poll, feed);
    if (!poll->call)
        return;
    explain(&poll->call->why, ERR_STORE, "The store did not respond; try again");
    long_poll_refuse(poll, ERR_STORE);
}

/* Makes the client start over, because its position means nothing any more, or because it may
 * have missed the end of runs that retention has removed. */
static void refetch(struct poll *poll)
{
    struct api_call *call = poll->call;
    struct bytes *body = bytes_create(slice_of(must_refetch));
    leave_count(poll);
    poll_add_headers(poll, 0, 0, false);
    end_call(poll);
    api_reply_shared(call, 409, body);
    bytes_unref(body);
}

static void poll_begins_again(struct feed *feed)
{
    struct poll *poll = container_of(feed, struct poll, feed);
    if (poll->call)
        refetch(poll);
}

static const struct feed_ops feed_ops = { .send = poll_send,
                                          .busy = poll_busy,
                                          .lost = poll_lost,
                                          .begins_again = poll_begins_again,
                                          .heavy = true };

/* ---- its end ---- */

static void poll_destroy(struct poll *poll)
{
    filter_finish(&poll->filter);
    rope_finish(&poll->rows);
    free(poll);
}

static void on_end(struct deferred *deferred)
{
    struct poll *poll = container_of(deferred, struct poll, deferred);

    if (poll->started && poll->polls)
        feed_finish_keeping_view(&poll->feed, KEPT_VIEW_MS, &poll->polls->kept_views);
    else if (poll->started)
        feed_finish(&poll->feed);
    poll_destroy(poll);
}

static void on_time(struct timer *timer)
{
    answer_idle(container_of(timer, struct poll, timer));
}

static void on_gone(struct api_call *call)
{
    struct poll *poll = call->state;
    leave_count(poll);
    end_call(poll);
    api_reply_gone(call);
}

static void on_drain(struct api_call *call)
{
    answer_idle(call->state);
}

struct long_polls *long_polls_create(struct loop *loop)
{
    struct long_polls *polls = mem_new(struct long_polls);
    list_init(&polls->kept_views);
    polls->kind = timers_kind(loop_timers(loop), on_time);
    return polls;
}

bool long_polls_stop(struct long_polls *polls, struct timeslice *timeslice)
{
    while (!list_empty(&polls->kept_views)) {
        if (timeslice && !timeslice_left_every(timeslice, KEPT_VIEWS_AT_ONCE))
            return false;
        kept_view_end(container_of(polls->kept_views.next, struct kept_view, link));
    }
    for (size_t i = 0; i < VIEWS_MAX; i++)
        burst_forget(&polls->bursts[i]);
    gzip_forget();
    return true;
}

/* ---- its beginning ---- */

/* Returns how long the poll is held, never beyond the end of its token. The spread needs no
 * random number: polls that begin at different times also end at different times. */
static int64_t hold_ms(const struct poll *poll)
{
    uint64_t mixed = ((uintptr_t)poll >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    int64_t hold = HOLD_MS * 85 / 100 + (int64_t)((mixed >> 32) % (HOLD_MS * 30 / 100));
    const struct identity *who = poll->call->identity;
    int64_t left = who->expires_at - loop_wall_ms(poll->call->env->loop);
    if (!who->expires_at || left > hold)
        return hold;
    return left > 0 ? left : 0;
}

/* Chooses the view of the response. One with more columns than requested is only for a new
 * client: any other knows only the types of the columns that its first response named. */
static enum err open_view(struct poll *poll, struct view **view)
{
    struct api_call *call = poll->call;
    struct view wanted = { .encoding = ENCODING_SHAPE,
                           .vocabulary = call->vocabulary,
                           .fields = FIELDS_ALL,
                           .skipped = poll->skipped,
                           .unwanted = poll->unwanted,
                           .wrap = wrap };
    *view = environment_view(call->env, &wanted);
    if (*view && (*view)->skipped != poll->skipped && poll->seen) {
        view_release(*view);
        *view = NULL;
    }
    if (*view) {
        poll->skipped = (*view)->skipped;
        return OK;
    }
    return explain(
        &call->why, ERR_BUSY,
        "Too many different sets of columns are being watched; skip fewer columns");
}

static enum err take_place(struct poll *poll)
{
    struct api_call *call = poll->call;
    if (!poll->live)
        return OK;
    enum err refused = connection_limit_take(&poll->seat, call->api, call->env, &call->why);
    metric_add(M_POLLS, !refused);
    return refused;
}

static void start(struct poll *poll)
{
    struct api_call *call = poll->call;
    struct view *view;
    if (call->x->gone) {
        end_call(poll);
        api_reply_gone(call);
        return;
    }
    if (poll->refetches) {
        refetch(poll);
        return;
    }
    enum err refused = api_check_current(call);

    if (!refused)
        refused = open_view(poll, &view);
    if (!refused && (refused = take_place(poll)))
        view_release(view);
    if (refused) {
        long_poll_refuse(poll, refused);
        return;
    }
    feed_init(&poll->feed, &feed_ops, call->env, view);
    poll->started = true;
    bool follows = poll->live && poll->base && poll->seen == poll->base &&
                   feed_follow(&poll->feed, 0, &poll->filter, poll->seen);
    if (!follows)
        feed_subscribe(&poll->feed, 0, &poll->filter, poll->seen, poll->base);
    if (!poll->base && !poll->seen)
        metric_add(M_SNAPSHOTS, 1);
    if (poll->live)
        loop_set_timer(call->env->loop, &poll->timer, poll->polls->kind, hold_ms(poll));
    call->on_gone = on_gone;
    api_hold(call, on_drain);
}

static void on_run(struct run_read *read, enum err status)
{
    struct poll *poll = container_of(read, struct poll, run);
    struct api_call *call = poll->call;
    if (status == ERR_NOT_FOUND)
        explain(&call->why, ERR_NOT_FOUND, "Not found");
    if (!status && !api_identity_may_run(call->identity, "read", read->run))
        status = ERR_FORBIDDEN;
    if (status)
        long_poll_refuse(poll, status);
    else
        start(poll);
}

static void on_batch(struct batch_load *load, enum err status)
{
    struct poll *poll = container_of(load, struct poll, batch);
    struct api_call *call = poll->call;
    if (status == ERR_NOT_FOUND)
        explain(&call->why, ERR_NOT_FOUND, "Not found");
    if (!status && !api_identity_may_follow(call->identity, &poll->filter))
        status = ERR_FORBIDDEN;
    if (!status)
        start(poll);
    else
        long_poll_refuse(poll, status);
    batch_finish(&load->batch);
}

/* Returns true for a poll without a position, with one that memory lacks, or while memory is too
 * old. It also does within a walk: the gateway that began it may be ahead of this one. There, a
 * run that has changed since is not sent before the walk has reached its last change. Here, its
 * last change may be one that the walk has passed. */
static bool must_confirm(const struct poll *poll)
{
    bool knows = poll->seen && poll->seen == poll->base;
    return !poll->refetches && (!knows || environment_is_late(poll->call->env));
}

static enum err long_poll_begin(struct api_call *call, char kind)
{
    struct poll *poll = mem_new(struct poll);
    poll->call = call;
    poll->kind = kind;
    poll->polls = api_long_polls(call->api);
    poll->deferred.fn = on_end;
    rope_clear(&poll->rows);
    call->state = poll;
    enum err refused = poll_read(poll);
    if (refused) {
        api_reply_details(call, "Query Error", "details", poll->bad_parameter,
                          poll->bad_reason);
        poll_destroy(poll);
        return OK;
    }
    if (kind == 't' && !api_identity_may_follow(call->identity, &poll->filter)) {
        poll_destroy(poll);
        return ERR_FORBIDDEN;
    }
    if (must_confirm(poll) && api_confirm(call)) {
        poll_destroy(poll);
        return OK;
    }
    call->busy = true;
    if (kind == 'r')
        run_read_begin(call->env, call->params[0], &poll->run, on_run);
    else if (kind == 'b')
        batch_load_begin(call, call->params[0], &poll->batch, on_batch);
    else
        start(poll);
    return OK;
}

enum err long_poll_run(struct api_call *call)
{
    return long_poll_begin(call, 'r');
}

enum err long_poll_tags(struct api_call *call)
{
    return long_poll_begin(call, 't');
}

enum err long_poll_batch(struct api_call *call)
{
    return long_poll_begin(call, 'b');
}
