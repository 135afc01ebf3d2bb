/* bulk_work.c - works through the bulk actions of each environment in turns.
 *
 *   turn: first of the pending ─► aborted? ─► ids from the list, or a page of the store
 *            ▲                                      │
 *            │                        counting: ────┤ add up the matches
 *            │                            else: cancel or replay the slice; progress
 *            └── to the end of the pending ◄────────┘
 *
 *   bulk_work.c ── bulk_cancel_slice, bulk_replay_slice ──► bulk_cancel.c, bulk_replay.c
 *        ▲                                                      │
 *        └── bulk_write_progress, bulk_slice_written, ◄─────────┘
 *            bulk_try_again, once for each slice
 *
 * The three files depend on each other: bulk_work.c begins a slice, and the end of the
 * slice returns to it.
 *
 * Each turn is one slice, so several actions make progress at the same time. If a filter
 * matches so few runs that the store aborts the read as too slow, it is read in windows of
 * time, from the newest back. A window that was read in time is followed by one of twice
 * the length. One that is too slow is retried with a quarter of its length; if that is
 * below WINDOW_LEAST_MS, the action is aborted. */
#include "api/bulk/bulk_work.h"

#include "base/log.h"
#include "base/mem.h"

enum {
    RETRY_MS = 1000,
    WINDOW_FIRST_MS = 7 * 24 * 3600 * 1000,
    WINDOW_LEAST_MS = 60 * 1000,
    TOLD_AT_ONCE = 16, /* waiting calls that get a response between checks of the clock */
};

/* ---- the other environments of the project ---- */

/* Returns the next queue of the same project, including the given one. Start with *at 0. */
static struct bulk_queue *next_of_project(const struct bulk_queue *queue, uint32_t *at)
{
    for (struct bulk_queue *other; (other = slots_next(&queue->bulks->queues, at));)
        if (other == queue || engine_share_quota(queue->env, other->env->number))
            return other;
    return NULL;
}

/* ---- turns ---- */

static void rest(struct bulk_queue *queue)
{
    queue->busy = false;
    queue->now = NULL;
    queue->bulks->busy--;
}

static void free_if_idle(struct bulks *bulks);

static void go_on(struct bulk_queue *queue)
{
    struct bulks *bulks = queue->bulks;
    if (bulks->stopped || engine_draining(bulks->engine) || list_empty(&queue->pending)) {
        rest(queue);
        free_if_idle(bulks);
        return;
    }
    loop_defer(queue->env->loop, &queue->turn);
}

static void wake(struct bulk_queue *queue)
{
    if (queue->busy || queue->bulks->stopped || list_empty(&queue->pending))
        return;
    queue->busy = true;
    queue->bulks->busy++;
    loop_defer(queue->env->loop, &queue->turn);
}

static void next_turn(struct bulk_queue *queue)
{
    list_remove(&queue->now->pending);
    list_append(&queue->pending, &queue->now->pending);
    go_on(queue);
}

static void on_retry(struct timer *timer)
{
    go_on(container_of(timer, struct bulk_queue, retry));
}

void bulk_try_again(struct bulk_queue *queue)
{
    struct loop *loop = queue->env->loop;
    if (queue->bulks->stopped)
        go_on(queue);
    else
        loop_set_timer(loop, &queue->retry, timers_kind(loop_timers(loop), on_retry),
                       RETRY_MS);
}

/* ---- progress ---- */

struct forget { /* deletes the document of the oldest action when too many are kept */
    struct document_write write;
};

static void on_forgotten(struct document_write *write, enum err status)
{
    (void)status; /* a document that stays is deleted after the next start */
    free(container_of(write, struct forget, write));
}

static struct bulk_action *oldest_ended(const struct bulk_queue *queue)
{
    uint64_t count = ranking_count(&queue->all);
    for (uint64_t place = 0; place < count; place++) {
        struct bulk_action *action =
            container_of(ranking_at(&queue->all, place), struct bulk_action, place);
        if (action->progress.status != BULK_PENDING)
            return action;
    }
    return NULL;
}

static void forget_oldest(struct bulk_queue *queue)
{
    struct bulk_action *oldest = oldest_ended(queue);
    if (!oldest)
        return;
    struct bytes *name = bytes_create(slice_of(oldest->id));
    document_write_begin(queue->bulks->engine, queue->env->number, DOC_BULK, name, NULL,
                         oldest->version, &mem_new(struct forget)->write, on_forgotten);
    bytes_unref(name);
    ranking_remove(&queue->all, &oldest->place);
    bulk_action_destroy(oldest);
}

/* The number of actions kept of a project, and of its preview branches. */
struct kept {
    uint64_t all, branches;
};

static struct kept count_kept(const struct bulk_queue *queue)
{
    struct kept kept = { 0 };
    uint32_t at = 0;
    for (const struct bulk_queue *other; (other = next_of_project(queue, &at));) {
        uint64_t own = ranking_count(&other->all);
        kept.all += own;
        kept.branches += environment_is_branch(other->env) ? own : 0;
    }
    return kept;
}

/* Returns true if the environment keeps more than the other one. Preview branches count as
 * one environment; among these, each counts. */
static bool keeps_more(const struct bulk_queue *queue, const struct bulk_queue *other,
                       const struct kept *kept)
{
    uint64_t one = ranking_count(&queue->all), two = ranking_count(&other->all);
    bool is_branch = environment_is_branch(queue->env);
    if (is_branch == environment_is_branch(other->env))
        return one > two;
    return is_branch ? kept->branches > two : one > kept->branches;
}

/* Removes an old action if too many are kept. If the project keeps too many, the
 * environment that keeps most loses its oldest one, so that a busy branch does not
 * displace the actions of others. */
static void forget_surplus(struct bulk_queue *queue)
{
    struct kept kept = count_kept(queue);
    struct bulk_queue *fullest = queue;
    uint32_t at = 0;
    for (struct bulk_queue *other; (other = next_of_project(queue, &at));)
        if (keeps_more(other, fullest, &kept))
            fullest = other;
    if (ranking_count(&queue->all) > BULK_KEPT_MAX)
        forget_oldest(queue);
    else if (kept.all > BULK_PROJECT_KEPT_MAX)
        forget_oldest(fullest);
}

static void answer_abort(struct bulk_action *action, const struct bulk_action *ended)
{
    struct list *link = list_take(&action->aborts);
    struct bulk_abort *abort = container_of(link, struct bulk_abort, link);
    abort->done(abort, ended);
}

static void answer_aborts(struct bulk_action *action, const struct bulk_action *ended)
{
    while (!list_empty(&action->aborts))
        answer_abort(action, ended);
}

static void end_action(struct bulk_queue *queue)
{
    struct bulk_action *action = queue->now;
    list_remove(&action->pending);
    queue->pending_count--;
    bytes_clear(&action->selection);
    answer_aborts(action, action);
    forget_surplus(queue);
    go_on(queue);
}

void bulk_slice_written(struct bulk_queue *queue)
{
    struct bulk_action *action = queue->now;
    action->progress = queue->next;
    action->version++;
    if (action->progress.status == BULK_PENDING)
        next_turn(queue);
    else
        end_action(queue);
}

static void on_written(struct document_write *write, enum err status)
{
    struct bulk_queue *queue = container_of(write, struct bulk_queue, write);
    if (status)
        bulk_try_again(queue);
    else
        bulk_slice_written(queue);
}

void bulk_write_progress(struct bulk_queue *queue)
{
    struct bulk_action *action = queue->now;
    struct bytes *name = bytes_create(slice_of(action->id));
    struct bytes *body = bulk_write(action, &queue->next);
    document_write_begin(queue->bulks->engine, queue->env->number, DOC_BULK, name, body,
                         action->version, &queue->write, on_written);
    bytes_unref(name);
    bytes_unref(body);
}

static void write_end(struct bulk_queue *queue, enum bulk_status status)
{
    struct bulk_progress *next = &queue->next;
    next->status = status;
    next->completed_at = loop_wall_ms(queue->env->loop);
    if (status == BULK_COMPLETED)
        next->total = next->success + next->failure;
    bulk_write_progress(queue);
}

/* ---- a slice ---- */

static void handle(struct bulk_queue *queue)
{
    if (queue->now->type == BULK_CANCEL)
        bulk_cancel_slice(queue);
    else
        bulk_replay_slice(queue);
}

static int64_t window_start(const struct bulk_queue *queue)
{
    const struct bulk_action *action = queue->now;
    int64_t start = queue->next.to - action->window_ms;
    return action->window_ms && start > action->from ? start : action->from;
}

/* Continues without writing the document: after a restart, counting begins again. */
static void keep_counting(struct bulk_queue *queue)
{
    queue->now->progress = queue->next;
    next_turn(queue);
}

/* The window is complete: continues with the next one, begins the work after counting, or
 * ends the action. */
static void window_over(struct bulk_queue *queue)
{
    struct bulk_action *action = queue->now;
    struct bulk_progress *next = &queue->next;
    int64_t start = window_start(queue);

    if (start > action->from) {
        next->to = start - 1;
        action->window_ms *= 2;
        keep_counting(queue); /* even after counting, where losing only `to` does no harm */
    } else if (!next->counted) {
        next->counted = true;
        next->to = action->until;
        next->after[0] = '\0';
        keep_counting(queue);
    } else {
        write_end(queue, BULK_COMPLETED);
    }
}

static void take_page(struct bulk_queue *queue)
{
    struct bulk_progress *next = &queue->next;
    if (!queue->count) {
        window_over(queue);
    } else if (!next->counted) {
        next->total += queue->count;
        memcpy(next->after, queue->ids[queue->count - 1], ID_MAX);
        keep_counting(queue);
    } else {
        handle(queue);
    }
}

static void narrow_window(struct bulk_queue *queue)
{
    struct bulk_action *action = queue->now;
    action->window_ms = action->window_ms ? action->window_ms / 4 : WINDOW_FIRST_MS;
    if (action->window_ms >= WINDOW_LEAST_MS) {
        next_turn(queue);
        return;
    }
    log_warn("bulk action aborted: search timed out", "id", action->id, NULL);
    write_end(queue, BULK_ABORTED);
}

/* Copies only the ids: a replay reads its runs again, with their payloads. */
static void take_ids(struct bulk_queue *queue)
{
    queue->count = queue->list.count;
    for (size_t i = 0; i < queue->count; i++)
        snprintf(queue->ids[i], ID_MAX, "%s", queue->list.runs[i].id);
    store_read_finish(&queue->list.read);
    filter_words_close(queue->filter);
    queue->filter = NULL;
}

static void on_listed(struct store_read *read, enum store_status status)
{
    struct bulk_queue *queue = container_of(read, struct bulk_queue, list.read);
    take_ids(queue);
    if (queue->bulks->stopped)
        go_on(queue);
    else if (status == STORE_SLOW)
        narrow_window(queue);
    else if (status)
        bulk_try_again(queue);
    else
        take_page(queue);
}

static void read_page(struct bulk_queue *queue)
{
    struct store *store = engine_store(queue->bulks->engine);
    const struct bulk_progress *next = &queue->next;
    queue->filter = bulk_selection_open(queue->now);
    if (!queue->filter) {
        write_end(queue, BULK_ABORTED); /* parameters that only an older gateway accepted */
        return;
    }
    queue->list = (struct store_list){ .read = { READ_LIST, queue->env->number, on_listed },
                                       .filter = queue->filter->query.filter,
                                       .limit = BULK_SLICE };
    queue->list.filter.created_from = window_start(queue);
    queue->list.filter.created_to = next->to;
    memcpy(queue->list.after, next->after, sizeof(next->after));
    store->ops->read(store, &queue->list.read);
}

static void on_turn(struct deferred *deferred)
{
    struct bulk_queue *queue = container_of(deferred, struct bulk_queue, turn);
    struct bulk_action *action =
        container_of(queue->pending.next, struct bulk_action, pending);
    int count = 0;

    queue->now = action;
    queue->next = action->progress;
    if (action->abort || engine_is_retired(queue->env)) {
        write_end(queue, BULK_ABORTED);
        return;
    }
    count = bulk_selection_ids(action, queue->next.after, queue->ids, BULK_SLICE);
    queue->count = count > 0 ? (size_t)count : 0;
    if (count < 0)
        read_page(queue);
    else if (count > 0)
        handle(queue);
    else
        write_end(queue, BULK_COMPLETED);
}

/* ---- queues ---- */

static struct slice action_key(const struct ranked *ranked)
{
    return slice_of(container_of(ranked, const struct bulk_action, place)->id);
}

struct bulk_queue *bulks_of(struct bulks *bulks, struct environment *env)
{
    void **place = slots_at(&bulks->queues, env->number);
    if (*place)
        return *place;
    struct bulk_queue *queue = mem_new(struct bulk_queue);
    *place = queue;
    queue->bulks = bulks;
    queue->env = env;
    queue->turn.fn = on_turn;
    list_init(&queue->turn.link);
    list_init(&queue->pending);
    ranking_init(&queue->all, action_key);
    return queue;
}

const struct ranking *bulk_queue_all(const struct bulk_queue *queue)
{
    return &queue->all;
}

enum err bulk_queue_reserve(struct bulk_queue *queue, struct failure *why)
{
    uint32_t pending = 0, of_branches = 0, at = 0;
    for (struct bulk_queue *other; (other = next_of_project(queue, &at));) {
        pending += other->pending_count;
        if (environment_is_branch(other->env))
            of_branches += other->pending_count;
    }
    if (queue->pending_count >= BULK_PENDING_MAX)
        return explain(why, ERR_BUSY,
                       "Too many pending bulk actions (max %d); wait until one has ended",
                       BULK_PENDING_MAX);
    if (environment_is_branch(queue->env) && of_branches >= BULK_BRANCHES_PENDING_MAX)
        return explain(why, ERR_BUSY,
                       "The preview branches of the project have too many pending bulk "
                       "actions (%u, max %d); wait until one has ended",
                       (unsigned)of_branches, BULK_BRANCHES_PENDING_MAX);
    if (pending >= BULK_PROJECT_PENDING_MAX)
        return explain(why, ERR_BUSY,
                       "The project has too many pending bulk actions, including those of "
                       "its preview branches (%u, max %d); wait until one has ended",
                       (unsigned)pending, BULK_PROJECT_PENDING_MAX);
    queue->pending_count++;
    return OK;
}

void bulk_queue_give_up(struct bulk_queue *queue)
{
    queue->pending_count--;
}

struct bulk_action *bulk_queue_find(const struct bulk_queue *queue, struct slice id)
{
    struct ranked *found = ranking_at(&queue->all, ranking_place(&queue->all, id));
    struct bulk_action *action =
        found ? container_of(found, struct bulk_action, place) : NULL;
    return action && slice_is(id, action->id) ? action : NULL;
}

void bulk_queue_add(struct bulk_queue *queue, struct bulk_action *action)
{
    ranking_insert(&queue->all, &action->place);
    list_append(&queue->pending, &action->pending);
    wake(queue);
}

void bulk_queue_abort(struct bulk_queue *queue, struct bulk_action *action,
                      struct bulk_abort *abort)
{
    action->abort = true;
    list_append(&action->aborts, &abort->link);
    if (queue->bulks->stopped)
        answer_aborts(action, NULL);
}

/* ---- all environments ---- */

struct bulks *bulks_create(struct engine *engine)
{
    struct bulks *bulks = mem_new(struct bulks);
    bulks->engine = engine;
    return bulks;
}

enum err bulks_restore(struct bulks *bulks, struct environment *env,
                       const struct document *document, struct failure *why)
{
    struct bulk_queue *queue = bulks_of(bulks, env);
    struct bulk_action *action = bulk_action_create();
    enum err err = bulk_read(bytes_slice(document->body), action, why);
    if (err) {
        bulk_action_destroy(action);
        return err;
    }
    action->version = document->version;
    ranking_insert(&queue->all, &action->place);
    if (action->progress.status == BULK_PENDING) {
        list_append(&queue->pending, &action->pending);
        queue->pending_count++;
    }
    return OK;
}

void bulks_start(struct bulks *bulks)
{
    uint32_t at = 0;
    for (struct bulk_queue *queue; (queue = slots_next(&bulks->queues, &at));)
        wake(queue);
}

static void queue_free(struct bulk_queue *queue)
{
    while (ranking_count(&queue->all) > 0) {
        struct ranked *ranked = ranking_at(&queue->all, 0);
        ranking_remove(&queue->all, ranked);
        bulk_action_destroy(container_of(ranked, struct bulk_action, place));
    }
    free(queue);
}

bool bulks_forget(struct bulks *bulks, const struct environment *env)
{
    struct bulk_queue *queue = slots_get(&bulks->queues, env->number);
    if (queue && (queue->busy || queue->pending_count))
        return false;
    if (queue) {
        queue_free(queue);
        *slots_at(&bulks->queues, env->number) = NULL;
    }
    return true;
}

static void free_if_idle(struct bulks *bulks)
{
    if (!bulks->destroyed || bulks->busy)
        return;
    uint32_t at = 0;
    for (struct bulk_queue *queue; (queue = slots_next(&bulks->queues, &at));)
        queue_free(queue);
    slots_finish(&bulks->queues);
    free(bulks);
}

/* Stops a queue that waits for its turn or a retry. A queue with an operation in flight
 * stops when that returns. */
static void stop_queue(struct bulk_queue *queue)
{
    bool waits = !list_empty(&queue->turn.link) || queue->retry.place;
    if (!queue->busy || !waits)
        return;
    loop_cancel_deferred(&queue->turn);
    timers_clear(loop_timers(queue->env->loop), &queue->retry);
    rest(queue);
}

static bool tell_of_stop(struct bulk_queue *queue, struct timeslice *timeslice)
{
    list_each (link, &queue->pending) {
        struct bulk_action *action = container_of(link, struct bulk_action, pending);
        while (!list_empty(&action->aborts)) {
            if (timeslice && !timeslice_left_every(timeslice, TOLD_AT_ONCE))
                return false;
            answer_abort(action, NULL);
        }
    }
    return true;
}

bool bulks_stop(struct bulks *bulks, struct timeslice *timeslice)
{
    uint32_t at = 0;
    bulks->stopped = true;
    for (struct bulk_queue *queue; (queue = slots_next(&bulks->queues, &at));)
        stop_queue(queue);
    at = 0;
    bool all = true;
    for (struct bulk_queue *queue; all && (queue = slots_next(&bulks->queues, &at));)
        all = tell_of_stop(queue, timeslice);
    return all;
}

void bulks_destroy(struct bulks *bulks)
{
    if (!bulks)
        return;
    bulks->destroyed = true;
    free_if_idle(bulks);
}
