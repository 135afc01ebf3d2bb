/* environment.c - one environment in memory.
 *
 *   put:   change ──► run table ──► orders ──► update into the ring ──► topics marked
 *   jump:  the same without the ring, which does not have the numbers that are left out
 *   evict: final runs only, lowest rev first; `cold` follows
 *
 * Eviction scans the order of all runs from its old end. It skips unfinished runs, and
 * continues after them the next time. */
#include "core/live/environment.h"

#include <assert.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/changes/run_sum.h"
#include "core/live/run_read.h"
#include "core/live/sampling.h"
#include "core/wire/render.h"
#include "core/wire/wire.h"

enum {
    LOOKED_AT_ONCE = 16,
    /* Bytes of the buffers that are kept from one change to the next. */
    ENCODED_KEPT = 256 * 1024,
};

static struct slice run_key(const void *value)
{
    return slice_of(((const struct tracked *)value)->run.id);
}

static struct slice children_key(const void *value)
{
    return slice_of(((const struct children *)value)->parent);
}

static struct slice item_id(const struct queue_item *item)
{
    return slice_of(container_of(item, struct tracked, item)->run.id);
}

struct environment *environment_create(struct loop *loop, struct store *store,
                                       uint32_t number, const char *id, bool is_dev,
                                       size_t budget, uint32_t concurrency)
{
    struct environment *env = mem_new(struct environment);
    metric_add(M_ENVIRONMENTS, 1);
    env->number = number;
    snprintf(env->id, sizeof(env->id), "%s", id);
    env->is_dev = is_dev;
    env->store = store;
    env->loop = loop;
    env->budget = budget;
    table_init(&env->runs, run_key);
    table_init(&env->children, children_key);
    run_loads_init(&env->loads);
    queues_init(&env->queues, concurrency, item_id);
    hub_init(&env->hub, env);
    windows_init(&env->windows, env);
    evaluation_init(&env->evaluation, env);
    reaches_init(&env->reaches, loop, &env->applied);
    stats_init(&env->stats, loop_wall_ms(loop));
    for (int i = 0; i < VIEWS_MAX; i++)
        env->views[i].index = (uint8_t)i;

    struct store_position position = store->ops->position(store, number);
    env->applied = env->cold = position.seq;
    env->recent.dropped = position.seq;
    env->hub.flushed = position.seq;
    env->purged = position.purged;
    env->floor = position.floor;
    return env;
}

static void tracked_destroy(struct tracked *run)
{
    timers_clear(loop_timers(run->env->loop), &run->timer);
    queues_leave(&run->env->queues, &run->item);
    run_finish(&run->run);
    free(run);
}

void environment_destroy(struct environment *env)
{
    size_t at = 0;
    metric_add(M_ENVIRONMENTS, -1);
    metric_add(M_RUNS, -(int64_t)env->runs.count);
    metric_add(M_RUN_BYTES, -(int64_t)env->run_bytes);
    for (struct tracked *run; (run = table_next(&env->runs, &at));)
        tracked_destroy(run);
    at = 0;
    for (struct children *children; (children = table_next(&env->children, &at));) {
        free(children->runs);
        free(children);
    }
    table_finish(&env->runs);
    table_finish(&env->children);
    table_finish(&env->loads);
    evaluation_finish(&env->evaluation);
    windows_finish(&env->windows);
    hub_finish(&env->hub);
    reaches_finish(&env->reaches);
    recent_finish(&env->recent);
    history_finish(&env->history);
    queues_finish(&env->queues);
    stats_finish(&env->stats);
    task_table_finish(&env->tasks);
    free(env);
}

void environment_key(const struct environment *env, struct slice id,
                     char key[ENVIRONMENT_KEY])
{
    snprintf(key, ENVIRONMENT_KEY, "%u:%.*s", env->number, SLICE_ARG(id));
}

struct slice environment_key_id(const char *key)
{
    return slice_of(strchr(key, ':') + 1);
}

/* ---- children, which are canceled with their parent ---- */

static void add_child(struct environment *env, struct tracked *run)
{
    const struct bytes *parent = run_rare(&run->run)->parent;
    struct children *children = table_find(&env->children, bytes_slice(parent));
    if (!children) {
        children = mem_new(struct children);
        snprintf(children->parent, sizeof(children->parent), "%s", parent->data);
        table_insert(&env->children, children);
    }
    if (children->count == children->capacity) {
        children->capacity = children->capacity ? children->capacity * 2 : 4;
        children->runs =
            mem_resize(children->runs, children->capacity * sizeof(struct tracked *));
    }
    children->runs[children->count++] = run;
}

static void remove_child(struct environment *env, struct tracked *run)
{
    const struct bytes *parent = run_rare(&run->run)->parent;
    struct children *children = table_find(&env->children, bytes_slice(parent));
    for (uint32_t i = 0; children && i < children->count; i++) {
        if (children->runs[i] != run)
            continue;
        children->runs[i] = children->runs[--children->count];
        if (children->count == 0) {
            table_remove(&env->children, slice_of(children->parent));
            free(children->runs);
            free(children);
        }
        return;
    }
}

const struct children *environment_children(const struct environment *env,
                                            struct slice parent)
{
    return table_find(&env->children, parent);
}

/* ---- accounting ---- */

static size_t weight(const struct tracked *run)
{
    size_t rare = run->run.rare ? sizeof(struct run_rare) : 0;
    return sizeof(struct tracked) + rare + run_packet_bytes(&run->run);
}

static void count_in(struct environment *env, struct tracked *run)
{
    size_t bytes = weight(run);
    env->run_bytes += bytes;
    metric_add(M_RUN_BYTES, bytes);
    metric_add(M_RUNS, 1);
    if (run_is_final(&run->run)) {
        quota_take(&env->finals, bytes);
        return;
    }
    env->unfinished++;
    env->sum += run_sum(&run->run);
    quota_take(env->project_unfinished, 1);
    env->unfinished_by_status[run->run.status]++;
    if (run_rare(&run->run)->parent)
        add_child(env, run);
}

static void count_out(struct environment *env, struct tracked *run)
{
    size_t bytes = weight(run);
    env->run_bytes -= bytes;
    metric_add(M_RUN_BYTES, -(int64_t)bytes);
    metric_add(M_RUNS, -1);
    if (run_is_final(&run->run)) {
        quota_release(&env->finals, bytes);
        return;
    }
    env->unfinished--;
    env->sum -= run_sum(&run->run);
    quota_release(env->project_unfinished, 1);
    env->unfinished_by_status[run->run.status]--;
    if (run_rare(&run->run)->parent)
        remove_child(env, run);
}

/* ---- a change becomes visible ---- */

static struct tracked *track(struct environment *env, struct run *run)
{
    struct tracked *tracked = mem_new(struct tracked);
    tracked->env = env;
    tracked->run = *run;
    *run = (struct run){ 0 };
    tracked->topic = hub_find(&env->hub, TOPIC_RUN, slice_of(tracked->run.id));
    table_insert(&env->runs, tracked);
    return tracked;
}

/* Encodes the change once for each view in use. All feeds with that view share the
 * frame. */
static void encode(struct environment *env, struct update *update, const struct run *before,
                   const struct run *after)
{
    /* kept, so that a change allocates nothing but its frames */
    static struct rope row, message;
    for (int i = 0; i < VIEWS_MAX; i++) {
        const struct view *view = &env->views[i];
        if (!view->users)
            continue;
        rope_clear(&row);
        rope_clear(&message);
        if (!before || after->whole_rev == after->rev)
            render_whole(view, after, &row.text);
        else
            render_delta(view, before, after, &row.text);
        const struct rope *text =
            wire_rows(view->encoding, -1, update->seq, false, &row, 1, &message);
        update->frames[i] = view->wrap(text, view->encoding == ENCODING_MSGPACK);
        update->bytes += update->frames[i]->len;
    }
    rope_give_back(&row, ENCODED_KEPT);
    rope_give_back(&message, ENCODED_KEPT);
}

static void publish(struct environment *env, struct tracked *run, const struct run *before,
                    const struct run_topics *topics)
{
    if (!hub_has_listeners(&env->hub, run, topics))
        return;
    struct update *update = update_create(run->run.rev, &run->run);
    encode(env, update, before, &run->run);
    recent_push(&env->recent, update);
    hub_mark_run(&env->hub, run, topics);
}

/* Replaces the run in memory, or adds it. before gets what it was, to be finished by the
 * caller; its id is "" if the run is new to memory. topics: those that it is in now. */
static struct tracked *replace(struct environment *env, struct run *run, uint64_t seq,
                               struct run *before, struct run_topics *topics)
{
    struct tracked *tracked = environment_find(env, slice_of(run->id));
    if (tracked) {
        count_out(env, tracked);
        hub_remove_run(&env->hub, tracked);
        *before = tracked->run;
        tracked->run = *run;
        *run = (struct run){ 0 };
    } else {
        tracked = track(env, run);
    }
    env->applied = seq;
    count_in(env, tracked);
    hub_append_run(&env->hub, tracked, topics);
    return tracked;
}

/* Finishes before. */
static void count_change(struct environment *env, struct run *before, const struct run *now)
{
    int status = before->id[0] ? before->status : -1;
    if (env->windows.by_key.count)
        evaluation_add(&env->evaluation, before, now);
    stats_note_run(&env->stats, status, now->status);
    task_table_note(&env->tasks, status, now, loop_wall_ms(env->loop));
    if (env->figures && !env->is_followed)
        figures_note_run(env->figures, status, now->status);
    run_finish(before);
    metric_add(M_CHANGES, 1);
}

struct tracked *environment_put(struct environment *env, struct run *run, uint64_t seq)
{
    assert(seq == env->applied + 1);
    struct run before = { 0 };
    MEM_UNFILLED struct run_topics topics;
    sampling_pass(env);
    struct tracked *tracked = replace(env, run, seq, &before, &topics);
    history_note(&env->history, seq, before.rev);
    publish(env, tracked, before.id[0] ? &before : NULL, &topics);
    count_change(env, &before, &tracked->run);
    reaches_note(&env->reaches);
    return tracked;
}

void environment_pass(struct environment *env, uint64_t seq)
{
    assert(seq == env->applied + 1);
    env->applied = seq;
    history_note(&env->history, seq, 0);
    reaches_note(&env->reaches);
}

/* ---- jumps ---- */

/* The ring and the history would show the numbers that are left out as if nothing had
 * happened: feeds walk instead. */
static void forget_recent(struct environment *env)
{
    recent_finish(&env->recent);
    env->recent.dropped = env->applied;
    history_finish(&env->history);
}

struct tracked *environment_jump(struct environment *env, struct run *run)
{
    assert(run->rev > env->applied);
    struct run before = { 0 };
    MEM_UNFILLED struct run_topics topics;
    sampling_pass(env);
    struct tracked *tracked = replace(env, run, run->rev, &before, &topics);
    if (hub_has_listeners(&env->hub, tracked, &topics))
        hub_mark_run(&env->hub, tracked, &topics);
    count_change(env, &before, &tracked->run);
    return tracked;
}

void environment_land(struct environment *env, uint64_t seq)
{
    assert(seq >= env->applied);
    env->applied = seq;
    forget_recent(env);
    reaches_note(&env->reaches);
    if (env->is_cleared) {
        evaluation_forget(&env->evaluation);
        windows_begin_again(&env->windows);
    }
    env->is_cleared = false;
    windows_count_again(&env->windows);
}

bool environment_has_purged(const struct environment *env, const struct run *run)
{
    return run_is_final(run) && run->rev <= env->purged && run->updated_at < env->floor;
}

struct tracked *environment_load(struct environment *env, struct run *run)
{
    struct tracked *tracked = track(env, run);
    count_in(env, tracked);
    hub_insert_run(&env->hub, tracked);
    return tracked;
}

/* ---- memory ---- */

static void forget(struct environment *env, struct tracked *run, const char *reason)
{
    log_decision("run evicted", env->id, run->run.id, reason, NULL);
    count_out(env, run);
    hub_remove_run(&env->hub, run);
    table_remove(&env->runs, slice_of(run->run.id));
    tracked_destroy(run);
}

bool environment_evict(struct environment *env, size_t keep)
{
    const struct order *all = &env->hub.all.order;
    struct timeslice timeslice = loop_timeslice(env->loop);
    uint32_t at = order_after(all, env->evicted_to);

    while (env->finals.used > keep) {
        if (!timeslice_left_every(&timeslice, LOOKED_AT_ONCE))
            return true;
        if (at >= all->count) {
            env->evicted_to = 0;
            return false;
        }
        struct place place = order_place(all, at++);
        uint32_t count = all->count;
        env->evicted_to = place.rev;
        if (!place.run || !run_is_settled(&place.run->run) || place.run->in_flight)
            continue;
        if (place.rev > env->cold)
            env->cold = place.rev;
        forget(env, place.run, "ended runs exceed their share of memory");
        metric_add(M_EVICTED, 1);
        if (all->count != count)
            at = order_after(all, place.rev); /* the order was compacted */
    }
    return false;
}

/* No position that was known before may be compared with those that follow. */
static void forget_positions(struct environment *env)
{
    env->generation++;
    env->purged = 0;
    env->floor = 0;
    env->evicted_to = 0;
    for (int i = 0; i < VIEWS_MAX; i++)
        env->views[i].since = 0;
    run_loads_forget(&env->loads);
    hub_begin_again(&env->hub);
}

bool environment_clear(struct environment *env)
{
    const struct order *all = &env->hub.all.order;
    struct timeslice timeslice = loop_timeslice(env->loop);
    env->is_cleared = true;
    for (uint32_t i = 0; env->runs.count;) {
        struct tracked *run = order_place(all, i++).run;
        uint32_t count = all->count;
        if (!run)
            continue;
        if (!timeslice_left_every(&timeslice, LOOKED_AT_ONCE))
            return true;
        forget(env, run, "memory is loaded again");
        if (all->count != count)
            i = 0; /* the order was compacted */
    }
    forget_positions(env);
    return false;
}

void environment_begin_at(struct environment *env, uint64_t seq)
{
    env->applied = env->cold = seq;
    forget_recent(env);
    reaches_note(&env->reaches);
}

static bool is_purged(const struct environment *env, const struct tracked *run)
{
    return run && run_is_final(&run->run) && run->run.updated_at < env->floor;
}

bool environment_purge(struct environment *env, const struct store_position *position,
                       uint64_t *at)
{
    const struct order *all = &env->hub.all.order;
    struct timeslice timeslice = loop_timeslice(env->loop);
    if (position->purged > env->purged)
        env->purged = position->purged;
    if (position->floor > env->floor) {
        env->floor = position->floor;
        windows_purge(&env->windows);
    }
    for (uint32_t i = order_after(all, *at); i < all->count;) {
        struct place place = order_place(all, i++);
        uint32_t count = all->count;
        if (place.rev > env->purged)
            break;
        if (!timeslice_left_every(&timeslice, LOOKED_AT_ONCE))
            return true;
        *at = place.rev;
        if (!is_purged(env, place.run))
            continue;
        forget(env, place.run, "retention removed it");
        if (all->count != count)
            i = order_after(all, *at); /* the order was compacted */
    }
    return false;
}

/* ---- views ---- */

static bool same_view(const struct view *a, const struct view *b)
{
    return a->encoding == b->encoding && a->vocabulary == b->vocabulary &&
           a->skipped == b->skipped && a->wrap == b->wrap;
}

static bool is_narrow(const struct view *view)
{
    return view->unwanted || (FIELDS_DEFAULT & ~view->skipped & ~view->fields);
}

/* Returns the view with everything that its token allows. */
static struct view whole(const struct view *wanted)
{
    struct view view = *wanted;
    view.skipped &= ~wanted->unwanted;
    view.unwanted = 0;
    view.fields =
        wanted->encoding == ENCODING_SHAPE ? FIELDS_ALL : FIELDS_ALL & ~view.skipped;
    return view;
}

struct view *environment_view(struct environment *env, const struct view *wanted)
{
    bool project_is_full = !quota_has(env->project_views, 1);
    unsigned most = project_is_full ? VIEWS_SPARED : VIEWS_MAX,
             most_narrow = project_is_full ? NARROW_VIEWS_SPARED : NARROW_VIEWS_MAX;
    struct view *unused = NULL, *wider = NULL, all = whole(wanted);
    unsigned used = 0, narrow = 0;
    for (int i = 0; i < VIEWS_MAX; i++) {
        struct view *view = &env->views[i];
        if (!view->users) {
            unused = unused ? unused : view;
            continue;
        }
        used++;
        narrow += is_narrow(view);
        if (!same_view(view, wanted))
            continue;
        if (view->fields == wanted->fields) {
            view_use(view);
            return view;
        }
        if ((view->fields & wanted->fields) == wanted->fields)
            wider = view;
    }
    bool full = used >= most || (is_narrow(wanted) && narrow >= most_narrow);
    struct view *view = unused && !full ? unused : wider;
    if (!view)
        return is_narrow(wanted) ? environment_view(env, &all) : NULL;
    if (view == unused) {
        uint8_t index = view->index;
        *view = *wanted;
        view->index = index;
        view->since = env->applied;
        view->users = 0;
        view->quota = env->project_views;
    }
    view_use(view);
    return view;
}
