/* catch_up.c - a subscription that catches up, one frame at a time.
 *
 *   its position ──► below cold: pages of the store ──► memory: its topic's order ──► live
 *
 * Live subscriptions that fell below cold read the same pages, as if they were one
 * subscription. Below cold, only the store has every run. It may be ahead of memory by
 * commits that have not been applied yet, so a page is merged with what memory has in its
 * range. At a gateway that follows, a run that such a commit has changed is in neither, if
 * it had left memory: so no walk ends before memory has what a page includes (feed_reach). */
#include "core/live/catch_up.h"

#include "base/mem.h"
#include "core/live/frame.h"

enum {
    PLACES = 4096, /* visited at a time */
    PAGE_RUNS = 256,
    PAGE_BYTES = 256 * 1024,
};

/* ---- memory ---- */

/* Adds the subscription's part of the order to the frame. Returns true when nothing is
 * left; the last frame is not sent then, so that it can go without `more` once the live
 * subscriptions are complete too. */
static bool collect(struct feed *feed, struct subscription *sub, uint64_t *at)
{
    const struct order *order = &sub->topic->order;
    uint32_t looked = 0;

    *at = sub->own->seen;
    if (sub->filter.kind == TOPIC_RUN) {
        struct tracked *run = subscription_run(sub);
        if (run && run->run.rev > sub->own->seen && filter_wants(&sub->filter, &run->run))
            frame_add(feed->view, &run->run, sub->own->base);
        return true;
    }
    for (uint32_t i = order_after(order, sub->own->seen); i < order->count; i++) {
        struct place place = order_place(order, i);
        if (++looked > PLACES)
            return false;
        if (place.run && filter_wants(&sub->filter, &place.run->run) &&
            !ahead_has(sub->own->ahead, place.rev) &&
            !frame_add(feed->view, &place.run->run, sub->own->base))
            return false;
        *at = place.rev;
    }
    return true;
}

static void to_the_end_of_the_line(struct feed *feed, struct subscription *sub)
{
    list_remove(&sub->link);
    list_append(&feed->catching, &sub->link);
}

static bool walk_memory(struct feed *feed, struct subscription *sub, bool live_clean)
{
    uint64_t applied = feed->env->applied, at;

    if (feed_is_ahead(feed)) {
        to_the_end_of_the_line(feed, sub);
        return false;
    }
    if (ahead_visit(feed, sub)) {
        to_the_end_of_the_line(feed, sub);
        return true;
    }
    frame_start();
    if (!collect(feed, sub, &at)) {
        sub->own->seen = at;
        ahead_note_step(&sub->own->ahead, at, applied);
        to_the_end_of_the_line(feed, sub);
        if (frame_count())
            frame_send(feed, sub->id, sub->own->seen, true);
        return true;
    }
    if (!live_clean) {
        to_the_end_of_the_line(feed, sub);
        return false; /* it becomes live once the live ones are complete */
    }
    list_remove(&sub->link);
    list_append(&feed->live, &sub->link);
    subscription_drop_own(sub);
    feed->seen = feed->base = applied;
    frame_send(feed, sub->id, applied, false);
    return true;
}

/* ---- the store, below cold ---- */

struct feed_read {
    struct store_walk walk;
    struct store_load load; /* for a subscription to one run */
    struct feed *feed;      /* NULL: abandoned */
    struct subscription *sub;
    /* sub, if it stands for the live ones; its filter is borrowed */
    struct subscription live;
    struct own_position lives; /* their position */
    size_t next;               /* rows of the page before this one were sent */
    /* For this visit: the next run in memory after seen; NULL: not searched for, or not
     * found. */
    const struct run *memory;
    uint64_t looked_to; /* for this visit: memory has no other run up to here */
    bool arrived, failed;
    struct quota *quota; /* the page takes this many bytes from it while it is in memory */
    size_t held;
};

static void read_destroy(struct feed_read *read)
{
    quota_release(read->quota, read->held);
    store_read_finish(&read->walk.read);
    bytes_unref(read->walk.name);
    bytes_unref(read->load.name);
    free(read);
}

bool catch_up_is_for(const struct feed *feed, const struct subscription *sub)
{
    return feed->read && feed->read->sub == sub;
}

bool catch_up_waits(const struct feed *feed)
{
    return feed->read && !feed->read->arrived;
}

bool catch_up_is_for_live(const struct feed *feed)
{
    return feed->read && feed->read->sub == &feed->read->live;
}

void catch_up_abandon(struct feed *feed)
{
    struct feed_read *read = feed->read;
    feed->read = NULL;
    if (read && read->arrived)
        read_destroy(read);
    else if (read)
        read->feed = NULL;
}

static void hold_page(struct feed_read *read)
{
    const struct store_walk *walk = &read->walk;
    read->quota = read->feed->env->answers;
    for (size_t i = 0; i < walk->count; i++)
        read->held += run_packet_bytes(&walk->runs[i]);
    quota_take(read->quota, read->held);
}

/* Handles a page that has arrived. Many feeds may have requested one when there was memory
 * for only one: a feed that finds none left reads it again later. */
static void arrived(struct feed_read *read, enum store_status status)
{
    struct feed *feed = read->feed;
    read->arrived = true;
    read->failed = status != STORE_OK && status != STORE_MISSING;
    if (!feed) {
        read_destroy(read);
    } else if (read->walk.count && !feed_has_quota(feed)) {
        feed->read = NULL;
        read_destroy(read);
    } else {
        hold_page(read);
        feed_reach(feed, read->walk.seq);
        hub_visit(&feed->env->hub, feed);
    }
}

static void on_page(struct store_read *read, enum store_status status)
{
    arrived(container_of(read, struct feed_read, walk.read), status);
}

/* Turns the run that was read into a page with one row. */
static void on_run(struct store_read *load, enum store_status status)
{
    struct feed_read *read = container_of(load, struct feed_read, load.read);
    if (status == STORE_OK) {
        read->walk.runs = mem_new(struct run);
        read->walk.runs[0] = read->load.run;
        read->walk.count = 1;
        read->walk.seq = read->load.run.rev; /* nothing else is known about this run */
    }
    arrived(read, status);
}

/* Begins to read a page for read->sub, which the caller has set. */
static void read_begin(struct feed *feed, struct feed_read *read)
{
    struct environment *env = feed->env;
    const struct subscription *sub = read->sub;
    const struct filter *filter = &sub->filter;

    read->feed = feed;
    feed->read = read;
    read->walk = (struct store_walk){ .read = { READ_WALK, env->number, on_page },
                                      .kind = WALK_ALL,
                                      .after = sub->own->seen,
                                      .up_to = env->cold,
                                      .created_from = filter->created_from,
                                      .limit = PAGE_RUNS,
                                      .byte_limit = PAGE_BYTES };
    if (filter->kind == TOPIC_RUN) {
        read->load = (struct store_load){ .read = { READ_LOAD, env->number, on_run },
                                          .name = bytes_ref(filter->name) };
        env->store->ops->read(env->store, &read->load.read);
        return;
    }
    if (filter->kind == TOPIC_TAG)
        read->walk.kind = WALK_TAG;
    else if (filter->kind == TOPIC_BATCH)
        read->walk.kind = WALK_BATCH;
    read->walk.name = bytes_ref(filter->name);
    env->store->ops->read(env->store, &read->walk.read);
}

/* Returns the position up to which the page has every run that had changed when it was
 * read. */
static uint64_t page_end(const struct feed_read *read)
{
    const struct store_walk *walk = &read->walk;
    return walk->more && walk->count ? walk->runs[walk->count - 1].rev : walk->up_to;
}

/* Returns the run in memory with the lowest rev above seen and up to end, matched by the
 * filter or not. Below cold there are many cleared places; each visit passes them once. */
static const struct run *next_in_memory(struct feed_read *read, uint64_t end)
{
    const struct subscription *sub = read->sub;
    const struct order *order = &sub->topic->order;
    if (sub->filter.kind == TOPIC_RUN) {
        const struct tracked *run = subscription_run(sub);
        return run && run->run.rev > sub->own->seen && run->run.rev <= end ? &run->run
                                                                           : NULL;
    }
    if (read->memory && read->memory->rev > sub->own->seen)
        return read->memory;
    read->memory = NULL;
    if (read->looked_to >= end)
        return NULL;
    for (uint32_t i = order_after(order, sub->own->seen); i < order->count; i++) {
        struct place place = order_place(order, i);
        if (place.rev > end)
            break;
        if (place.run)
            return read->memory = &place.run->run;
    }
    read->looked_to = end;
    return NULL;
}

/* Returns the next run of the page and memory together. If a change was written but not
 * applied when the page was read, its run is not in the page: the state in memory is still
 * the newest. */
static const struct run *next_of_page(struct feed_read *read)
{
    const struct store_walk *walk = &read->walk;
    const struct subscription *sub = read->sub;
    uint64_t end = page_end(read);
    const struct run *memory = next_in_memory(read, end);

    while (read->next < walk->count && walk->runs[read->next].rev <= sub->own->seen)
        read->next++;
    const struct run *page = read->next < walk->count ? &walk->runs[read->next] : NULL;
    if (page && page->rev > end)
        page = NULL; /* a run that was read by its id: memory has later changes */
    if (memory && (!page || memory->rev < page->rev))
        return memory;
    return page;
}

static bool wanted(const struct feed *feed, const struct feed_read *read,
                   const struct run *run)
{
    if (read->sub != &read->live)
        return filter_wants(&read->sub->filter, run);
    list_each (link, &feed->live)
        if (filter_wants(&container_of(link, struct subscription, link)->filter, run))
            return true;
    return false;
}

/* Builds one frame of rows, which the caller sends, and returns the new position. Frees the
 * page once every row was taken. */
static uint64_t take_page(struct feed *feed, struct feed_read *read)
{
    struct subscription *sub = read->sub;
    const struct run *run;

    frame_start();
    read->memory = NULL;
    read->looked_to = 0;
    while ((run = next_of_page(read))) {
        if (wanted(feed, read, run)) {
            if (!frame_add(feed->view, run, sub->own->base))
                break;
            if (sub == &read->live)
                ahead_count_conflated(feed, run);
        }
        sub->own->seen = run->rev;
    }
    if (!run && sub->own->seen < page_end(read))
        sub->own->seen = page_end(read);
    uint64_t seen = sub->own->seen;
    if (!run) {
        feed->read = NULL;
        read_destroy(read);
    }
    return seen;
}

static void send_page(struct feed *feed, struct feed_read *read)
{
    int64_t id = read->sub->id;
    uint64_t seen = take_page(feed, read);
    if (frame_count())
        frame_send(feed, id, seen, true);
}

/* ---- live subscriptions below cold ---- */

/* Begins one read for all live subscriptions that are below cold. If there is only one, it
 * reads by its filter; otherwise it reads everything, and sends a row if one of them
 * matches it. */
static void read_begin_live(struct feed *feed)
{
    struct feed_read *read = mem_new(struct feed_read);
    const struct subscription *first =
        container_of(feed->live.next, struct subscription, link);
    read->sub = &read->live;
    read->live.feed = feed;
    read->live.own = &read->lives;
    read->lives.seen = feed->seen;
    read->lives.base = feed->base;
    read->live.topic = &feed->env->hub.all;
    if (feed->live.next->next == &feed->live) {
        read->live.filter = first->filter;
        read->live.topic = first->topic;
    }
    read_begin(feed, read);
}

void catch_up_visit_live(struct feed *feed)
{
    if (feed->read && !catch_up_is_for_live(feed))
        catch_up_abandon(feed); /* read again when it is their turn */
    if (!feed->read) {
        read_begin_live(feed);
        return;
    }
    if (!feed->read->arrived)
        return;
    if (feed->read->failed) {
        catch_up_abandon(feed);
        feed->ops->lost(feed);
        return;
    }
    uint64_t known = feed->read->walk.seq;
    feed->seen = take_page(feed, feed->read);
    ahead_note_step(&feed->ahead, feed->seen,
                    known < feed->env->applied ? known : feed->env->applied);
    if (frame_count())
        frame_send(feed, -1, feed->seen, true);
}

bool catch_up_visit(struct feed *feed, bool live_clean)
{
    struct subscription *sub = container_of(feed->catching.next, struct subscription, link);
    struct feed_read *read = feed->read;

    if (read && read->failed) {
        catch_up_abandon(feed);
        feed->ops->lost(feed);
        return false;
    }
    if (read) {
        send_page(feed, read);
        return true;
    }
    if (!feed_has_quota(feed))
        return false;
    if (sub->own->seen < feed->env->cold) {
        read = mem_new(struct feed_read);
        read->sub = sub;
        read_begin(feed, read);
        return false;
    }
    return walk_memory(feed, sub, live_clean);
}
