/* waits.c - two tables: waiting runs, and the things they wait for.
 *
 *   waiters  env + run ─► struct waiter ──links──┐
 *   awaited  env + id  ─► struct awaited ◄───────┘
 *
 * Both hold only pending waits. A run that is not in memory is final, so waits for runs
 * need no read from the store. A token's document is read after its wait was noted. */
#include "core/engine/waits.h"

#include "base/mem.h"
#include "base/metrics.h"
#include "core/engine/calls.h"
#include "core/engine/store_retry.h"
#include "core/model/run_life.h"
#include "core/model/waitpoint.h"

struct awaited {
    char key[ENVIRONMENT_KEY];
    struct engine *engine;
    struct deferred ending; /* ends the remaining waits */
    struct list links;      // wait_link::link
};

struct wait_link {
    struct waiter *waiter;
    char id[ID_MAX];
    bool over;
    struct list link; // awaited::links; unlinked when over
};

struct waiter {
    char key[ENVIRONMENT_KEY];
    struct environment *env;
    struct bytes *waits; /* the list that was noted */
    struct wait_link *links;
    struct table by_id; /* wait_link by id; the first of those with the same id */
    size_t count, pending;
};

/* ---- the list in the run ---- */

static void set_waits(struct run *next, struct buf *list)
{
    struct run_rare *rare = run_rare_edit(next);
    buf_add_char(list, ']');
    bytes_unref(rare->waits);
    rare->waits = buf_to_bytes(list);
    buf_finish(list);
}

/* Lowers due_at to the time at which this pending wait expires by itself. */
static void come_due(struct run *next, const struct wait *wait)
{
    if (!wait->completed_at && wait->until && (!next->due_at || wait->until < next->due_at))
        next->due_at = wait->until;
}

/* ---- blocking ---- */

static int compare_ids(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Copies waits that already block the run into the list. Returns their ids, sorted; the
 * caller frees them. Waits that have ended are not kept, so the run may wait for the same
 * thing again. */
static struct slice *keep_blocking(const struct run *now, struct run *next,
                                   struct buf *list, size_t *count)
{
    struct slice *ids = mem_new_array(struct slice, WAITS_MAX);
    struct scan_members had = wait_list_of(now);
    struct wait wait;
    *count = 0;
    if (now->execution != EXECUTION_WITH_WAITPOINTS)
        return ids;
    while (*count < WAITS_MAX && wait_list_next(&had, &wait)) {
        wait_list_add(list, &wait);
        come_due(next, &wait);
        ids[(*count)++] = wait.id;
    }
    qsort(ids, *count, sizeof(*ids), compare_ids);
    return ids;
}

/* Above the quota, only a long list is refused, so that executing runs still make
 * progress. */
static enum err check_block(const struct block *op, struct command *command, size_t total,
                            size_t before, size_t after)
{
    if (total > WAITS_MAX)
        return explain(&command->why, ERR_RULE, "Too many waitpoints (max %d at once)",
                       WAITS_MAX);
    bool asks = op->asks_quota && after > WAITS_SMALL;
    return asks ? engine_check_growth(command->env, before, after, &command->why) : OK;
}

static enum decision decide_block(struct command *command, const struct run *now,
                                  struct run *next, unsigned *marks)
{
    struct block *op = container_of(command, struct block, command);
    struct buf list = { 0 };
    size_t count, added = 0;
    (void)marks;

    buf_add_char(&list, '[');
    next->due_at = 0;
    struct slice *blocking = keep_blocking(now, next, &list, &count);
    size_t before = list.len;
    for (size_t i = 0; i < op->count; i++) {
        if (bsearch(&op->waits[i].id, blocking, count, sizeof(*blocking), compare_ids))
            continue;
        wait_list_add(&list, &op->waits[i]);
        come_due(next, &op->waits[i]);
        added++;
    }
    free(blocking);
    enum err refused =
        added ? check_block(op, command, count + added, before, list.len) : OK;
    if (added && !refused &&
        run_advance(next, EVENT_WAIT, loop_wall_ms(command->engine->loop)))
        refused = explain(&command->why, ERR_INVALID, "Only an executing run can wait");
    if (added && !refused) {
        set_waits(next, &list);
        return DECISION_COMMIT;
    }
    buf_finish(&list);
    return added ? DECISION_REFUSE : DECISION_NOTHING;
}

void run_block(struct engine *engine, struct environment *env, struct slice run_id,
               struct block *op, command_done_fn *done)
{
    command_begin(engine, env, run_id, &op->command, decide_block, done);
}

/* ---- resuming ---- */

static struct waiter *find_waiter(struct engine *engine, struct environment *env,
                                  const char *run_id)
{
    char key[ENVIRONMENT_KEY];
    environment_key(env, slice_of(run_id), key);
    return table_find(&engine->waiters, slice_of(key));
}

static const struct wait_link *find_link(const struct waiter *waiter, struct slice id)
{
    return waiter ? table_find(&waiter->by_id, id) : NULL;
}

/* Returns true if the token was noted as completed; false if it was never noted. */
static bool is_completed(const struct waiter *waiter, struct slice token)
{
    const struct wait_link *link = find_link(waiter, token);
    return link && link->over;
}

static bool is_over(const struct waiter *waiter, const struct environment *env,
                    const struct wait *wait, int64_t time)
{
    if (wait->type == WAIT_RUN) {
        const struct tracked *run = environment_find(env, wait->id);
        return !run || run_is_final(&run->run);
    }
    return (wait->until && wait->until <= time) ||
           (wait->type == WAIT_TOKEN && is_completed(waiter, wait->id));
}

enum decision waits_decide(struct engine *engine, struct environment *env, struct run *next)
{
    const struct waiter *waiter = find_waiter(engine, env, next->id);
    int64_t time = loop_wall_ms(engine->loop);
    struct scan_members all = wait_list_of(next);
    struct buf list = { 0 };
    struct wait wait;
    size_t pending = 0, ended = 0;

    buf_add_char(&list, '[');
    int64_t due = next->due_at;
    next->due_at = 0;
    while (wait_list_next(&all, &wait)) {
        if (!wait.completed_at && is_over(waiter, env, &wait, time)) {
            wait.completed_at = time;
            ended++;
        }
        pending += !wait.completed_at;
        wait_list_add(&list, &wait);
        come_due(next, &wait);
    }
    bool resumes = !pending && engine_take_slot(env, slice_of(next->id)) &&
                   !run_advance(next, EVENT_WAIT_OVER, time);
    if (ended || resumes) {
        set_waits(next, &list);
        return DECISION_COMMIT;
    }
    buf_finish(&list);
    next->due_at = due;
    return DECISION_NOTHING;
}

static enum decision decide_over(struct command *command, const struct run *now,
                                 struct run *next, unsigned *marks)
{
    (void)marks;
    return now->execution == EXECUTION_WITH_WAITPOINTS
               ? waits_decide(command->engine, command->env, next)
               : DECISION_NOTHING;
}

/* Runs of an environment that cannot resume now, because the store fails. */
struct resumption {
    struct store_retry retry; /* first */
    struct environment *env;
};

static void on_resumption(struct store_retry *retry)
{
    struct resumption *resumption = container_of(retry, struct resumption, retry);
    engine_share_of(resumption->env)->resumes_later = false;
    engine_match(retry->engine, resumption->env);
    environment_release(resumption->env);
    free(resumption);
}

static void resume_later(struct engine *engine, struct environment *env)
{
    struct engine_share *share = engine_share_of(env);
    if (share->resumes_later)
        return;
    struct resumption *resumption = mem_new(struct resumption);
    resumption->env = env;
    environment_hold(env);
    share->resumes_later = true;
    store_retry_later(engine, &resumption->retry, on_resumption);
}

void waits_resume(struct engine *engine, struct environment *env)
{
    struct queue_item *item;
    if (engine_store_fails(engine)) {
        if (queues_next(&env->queues, AUDIENCE_RESUMED))
            resume_later(engine, env);
        return;
    }
    while ((item = queues_next(&env->queues, AUDIENCE_RESUMED))) {
        const struct run *run = &container_of(item, struct tracked, item)->run;
        queues_run(&env->queues, item, engine_seat_of(run));
        command_begin_alone(engine, env, slice_of(run->id), decide_over);
    }
}

/* ---- the two tables ---- */

static void end_some(struct deferred *deferred);

static struct awaited *awaited_of(struct engine *engine, const struct environment *env,
                                  struct slice id)
{
    char key[ENVIRONMENT_KEY];
    environment_key(env, id, key);
    struct awaited *awaited = table_find(&engine->awaited, slice_of(key));
    if (awaited)
        return awaited;
    awaited = mem_new(struct awaited);
    memcpy(awaited->key, key, sizeof(key));
    awaited->engine = engine;
    awaited->ending.fn = end_some;
    list_init(&awaited->ending.link);
    list_init(&awaited->links);
    table_insert(&engine->awaited, awaited);
    return awaited;
}

static void drop_awaited(struct engine *engine, struct awaited *awaited)
{
    table_remove(&engine->awaited, slice_of(awaited->key));
    loop_cancel_deferred(&awaited->ending);
    free(awaited);
}

/* Frees the waiter, which is no longer in the table of waiters. */
static void forget(struct engine *engine, struct waiter *waiter)
{
    for (size_t i = 0; i < waiter->count; i++) {
        struct wait_link *link = &waiter->links[i];
        struct list *head = link->link.next;
        list_remove(&link->link);
        if (!link->over && list_empty(head))
            drop_awaited(engine, container_of(head, struct awaited, links));
    }
    metric_add(M_RUNS_WAITING, -1);
    table_finish(&waiter->by_id);
    bytes_unref(waiter->waits);
    free(waiter->links);
    free(waiter);
}

struct token_look {
    struct store_retry retry; /* first */
    struct engine *engine;
    struct environment *env;
    char id[ID_MAX];
    struct store_load load;
};

static void look_again(struct store_retry *retry);

static void on_token(struct store_read *read, enum store_status status)
{
    struct token_look *look = container_of(read, struct token_look, load.read);
    struct engine *engine = look->engine;
    bool over = status == STORE_MISSING;
    engine->reads--;
    bytes_clear(&look->load.name);
    if (status == STORE_OK) {
        over = waitpoint_is_completed(&look->load.document);
        document_finish(&look->load.document);
    } else if (!over) {
        store_retry_later(engine, &look->retry, look_again);
        return;
    }
    if (over && !engine->stopped)
        waits_end(engine, look->env, slice_of(look->id));
    environment_release(look->env);
    free(look);
}

static void begin_look(struct token_look *look)
{
    struct store *store = look->engine->store;
    look->load = (struct store_load){ .read = { READ_LOAD, look->env->number, on_token },
                                      .is_document = true,
                                      .kind = DOC_WAITPOINT,
                                      .name = bytes_create(slice_of(look->id)) };
    look->engine->reads++;
    store->ops->read(store, &look->load.read);
}

static void look_again(struct store_retry *retry)
{
    begin_look(container_of(retry, struct token_look, retry));
}

/* Reads the token: it may have been completed before the wait was noted. */
static void look_at_token(struct engine *engine, struct environment *env, struct slice id)
{
    struct token_look *look = mem_new(struct token_look);
    look->engine = engine;
    look->env = env;
    environment_hold(env);
    snprintf(look->id, sizeof(look->id), "%.*s", SLICE_ARG(id));
    begin_look(look);
}

/* Notes one wait. Tokens that the run waited for before are not read again: each added wait
 * notes them all. */
static void note(struct engine *engine, struct waiter *waiter, const struct waiter *before,
                 const struct wait *wait)
{
    const struct wait_link *known = find_link(before, wait->id);
    struct wait_link *link = &waiter->links[waiter->count++];
    link->waiter = waiter;
    list_init(&link->link);
    snprintf(link->id, sizeof(link->id), "%.*s", SLICE_ARG(wait->id));
    if (!find_link(waiter, wait->id))
        table_insert(&waiter->by_id, link);
    if ((link->over = known && known->over))
        return;
    list_append(&awaited_of(engine, waiter->env, wait->id)->links, &link->link);
    waiter->pending++;
    if (wait->type == WAIT_TOKEN && !known)
        look_at_token(engine, waiter->env, wait->id);
}

static struct slice link_key(const void *value)
{
    return slice_of(((const struct wait_link *)value)->id);
}

static struct waiter *waiter_create(struct engine *engine, struct tracked *run)
{
    struct waiter *waiter = mem_new(struct waiter);
    struct scan_members all = wait_list_of(&run->run);
    struct wait wait;
    size_t count = 0;
    while (wait_list_next(&all, &wait))
        count++;
    environment_key(run->env, slice_of(run->run.id), waiter->key);
    waiter->env = run->env;
    waiter->waits = bytes_ref(run_rare(&run->run)->waits);
    waiter->links = mem_new_array(struct wait_link, count);
    table_init(&waiter->by_id, link_key);
    table_insert(&engine->waiters, waiter);
    metric_add(M_RUNS_WAITING, 1);
    return waiter;
}

/* Notes all pending waits. Returns true if there are waits, but none is pending. */
static bool note_all(struct engine *engine, struct tracked *run,
                     const struct waiter *before)
{
    int64_t time = loop_wall_ms(engine->loop);
    struct scan_members all = wait_list_of(&run->run);
    struct waiter *waiter = waiter_create(engine, run);
    struct wait wait;
    bool ended = false;
    while (wait_list_next(&all, &wait)) {
        if (wait.completed_at || wait.type == WAIT_TIME)
            continue;
        if (is_over(NULL, run->env, &wait, time))
            ended = true;
        else
            note(engine, waiter, before, &wait);
    }
    return !waiter->pending && (ended || waiter->count);
}

void waits_note(struct engine *engine, struct tracked *run)
{
    bool blocked = run->run.execution == EXECUTION_WITH_WAITPOINTS;
    if (!blocked && !engine->waiters.count)
        return;
    struct waiter *before = find_waiter(engine, run->env, run->run.id);
    if (blocked && before && before->waits == run_rare(&run->run)->waits)
        return;
    if (before)
        table_remove(&engine->waiters, slice_of(before->key));
    if (blocked && note_all(engine, run, before))
        command_begin_alone(engine, run->env, slice_of(run->run.id), decide_over);
    if (before)
        forget(engine, before);
}

static void end_link(struct engine *engine, struct wait_link *link)
{
    struct waiter *waiter = link->waiter;
    link->over = true;
    if (--waiter->pending == 0)
        command_begin_alone(engine, waiter->env, environment_key_id(waiter->key),
                            decide_over);
}

/* Ends waits for a time slice: any number of runs may wait for one token. */
static void end_some(struct deferred *deferred)
{
    struct awaited *awaited = container_of(deferred, struct awaited, ending);
    struct engine *engine = awaited->engine;
    struct timeslice timeslice = loop_timeslice(engine->loop);
    while (!list_empty(&awaited->links) && timeslice_left(&timeslice))
        end_link(engine, container_of(list_take(&awaited->links), struct wait_link, link));
    if (list_empty(&awaited->links))
        drop_awaited(engine, awaited);
    else
        loop_defer(engine->loop, deferred);
}

void waits_end(struct engine *engine, struct environment *env, struct slice id)
{
    char key[ENVIRONMENT_KEY];
    if (!engine->awaited.count)
        return;
    environment_key(env, id, key);
    struct awaited *awaited = table_find(&engine->awaited, slice_of(key));
    if (awaited)
        end_some(&awaited->ending);
}

const struct tracked *waits_run_of(const struct engine *engine,
                                   const struct environment *env, struct slice id)
{
    char key[ENVIRONMENT_KEY];
    environment_key(env, id, key);
    const struct awaited *awaited = table_find(&engine->awaited, slice_of(key));
    if (!awaited || list_empty(&awaited->links))
        return NULL;
    const struct wait_link *link =
        container_of(awaited->links.next, const struct wait_link, link);
    return environment_find(env, environment_key_id(link->waiter->key));
}

void waits_finish(struct engine *engine)
{
    size_t at = 0;
    for (struct waiter *waiter; (waiter = table_next(&engine->waiters, &at)); at = 0) {
        table_remove(&engine->waiters, slice_of(waiter->key));
        forget(engine, waiter);
    }
    table_finish(&engine->waiters);
    table_finish(&engine->awaited);
}

static struct slice awaited_key(const void *value)
{
    return slice_of(((const struct awaited *)value)->key);
}

static struct slice waiter_key(const void *value)
{
    return slice_of(((const struct waiter *)value)->key);
}

void waits_init(struct engine *engine)
{
    table_init(&engine->waiters, waiter_key);
    table_init(&engine->awaited, awaited_key);
}
