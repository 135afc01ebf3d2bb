/* trigger.c - creates runs: one, or a batch of them, in one commit.
 *
 *   options ─► runs with ids, times, status ─► claims ─► commit ─► engine_apply ─► done
 *                                                        ▲    │
 *                                               again    │    ▼
 *                                                        │  TAKEN: which claim?
 *     request key       the first response again: done   │
 *     one-time token    refused: used before             │
 *     batch key         the old batch: done              │
 *     a run's key       look at its owner ───────────────┘
 *                         missing, failed or expired: the item gets the key
 *                         anything else: the item is that run, without a commit of its own
 *
 * An item with a debounce key that a delayed run has changes that run instead. An item for a
 * singleton queue may lead to the run that holds its key, or cancel that (singletons.h). The
 * commit is then one of commands on such runs (trigger_push.h).
 *
 * Memory cannot know whether a key is taken: its run may have left memory long ago. So the
 * commit itself finds out, and reports all taken claims at once. */

#include "base/mem.h"
#include "base/metrics.h"
#include "core/engine/calls.h"
#include "core/engine/run_commands.h"
#include "core/engine/singleton_decision.h"
#include "core/engine/trigger_push.h"
#include "core/fleet/versions.h"
#include "core/fleet/worker_versions.h"
#include "core/state/debounce_keys.h"
#include "core/state/singletons.h"

enum { REQUEST_KEY_MS = 24 * 3600 * 1000 };

/* ---- a run from its options ---- */

static void name_queue(struct run *run)
{
    char name[160];
    if (run->queue)
        return;
    int len = snprintf(name, sizeof(name), "task/%s", run->task->data);
    if (len < (int)sizeof(name)) {
        run->queue = bytes_create_shared((struct slice){ name, (size_t)len });
        return;
    }
    run->queue = bytes_create_empty((size_t)len);
    snprintf(run->queue->data, (size_t)len + 1, "task/%s", run->task->data);
}

void trigger_default_to_task(struct trigger *item, const struct worker_task *task,
                             bool has_machine)
{
    struct run *run = &item->run;
    if (!has_machine)
        run->machine =
            (uint8_t)(task && task->machine >= 0 ? task->machine : MACHINE_SMALL_1X);
    if (task && !run->queue)
        run->queue = bytes_ref(task->queue);
    versions_take_limits(run, task);
    if (task && task->ttl && !run_rare(run)->ttl && !item->no_default_ttl)
        run_rare_edit(run)->ttl = bytes_ref(task->ttl);
}

static void name_ttl(const struct engine *engine, const struct environment *env,
                     struct trigger *item)
{
    char text[48];
    if (run_rare(&item->run)->ttl || item->no_default_ttl || !env->is_dev ||
        !engine->options.dev_ttl_ms)
        return;
    text_from_seconds((uint64_t)engine->options.dev_ttl_ms / 1000, text);
    run_rare_edit(&item->run)->ttl = bytes_create_shared(slice_of(text));
}

/* Adds id, times and status. delayed_until in the past means no delay. */
static void complete_run(struct engine *engine, const struct environment *env,
                         struct trigger *item)
{
    struct run *run = &item->run;
    int64_t now = loop_wall_ms(engine->loop);

    if (!run->id[0])
        engine_make_id(engine, "run", now, item->id);
    memcpy(run->id, item->id, sizeof(run->id));
    run->created_at = run->updated_at = engine_creation_ms(engine);
    run->snapshot = 1;
    name_queue(run);
    name_ttl(engine, env, item);
    run_share_names(run);
    if (!run->metadata_seed)
        run->metadata_seed = bytes_ref(run->metadata);
    versions_lock(env, run);
    const struct run_rare *rare = run_rare(run);
    if (rare->delayed_until > now) {
        run->status = RUN_DELAYED;
        run->execution = EXECUTION_DELAYED;
        run->due_at = rare->delayed_until;
        run->queue_position = rare->delayed_until - rare->priority_ms;
        return;
    }
    if (rare->delayed_until)
        run_rare_edit(run)->delayed_until = 0;
    bool waits = versions_lack(env, run);
    run->status = waits ? RUN_PENDING_VERSION : RUN_QUEUED;
    run->execution = waits ? EXECUTION_CREATED : EXECUTION_QUEUED;
    run->queued_at = run->created_at;
    if (!run->queue_position) /* if set, it is that of its parent, which waits for it */
        run->queue_position = now - run_rare(run)->priority_ms;
    int64_t ttl = run_ttl_ms(run);
    run->due_at = ttl ? now + ttl : 0;
}

/* ---- the commit ---- */

static void add_claim(struct trigger_op *op, enum claim_kind kind, struct bytes *key,
                      int64_t expires_at, size_t item)
{
    struct claim *claim = &op->claims[op->commit.claim_count];
    op->claim_items[op->commit.claim_count++] = item;
    *claim = (struct claim){
        .kind = kind, .env = op->env->number, .key = key, .expires_at = expires_at
    };
}

/* The owner of a claim is the batch, or the item's run. */
static void name_owners(struct trigger_op *op)
{
    for (size_t i = 0; i < op->commit.claim_count; i++) {
        struct claim *claim = &op->claims[i];
        size_t at = op->claim_items[i];
        const struct trigger *item = op->count ? &op->items[at == SIZE_MAX ? 0 : at] : NULL;
        if (at == SIZE_MAX && (op->batch_id[0] || !item))
            snprintf(claim->owner, sizeof(claim->owner), "%s", op->batch_id);
        else if (item->joined)
            trigger_push_owner(item->id, claim->owner);
        else
            memcpy(claim->owner, item->id, sizeof(claim->owner));
    }
}

static struct slice key_of(const struct trigger *item)
{
    return bytes_slice(run_rare(&item->run)->idempotency_key);
}

static int compare_keys(const struct trigger *a, const struct trigger *b)
{
    int order = slice_compare(bytes_slice(a->run.task), bytes_slice(b->run.task));
    return order ? order : slice_compare(key_of(a), key_of(b));
}

static int by_key(const void *a, const void *b)
{
    const struct trigger *const *left = a, *const *right = b;
    int order = compare_keys(*left, *right);
    return order ? order : (*left > *right) - (*left < *right);
}

/* Two items of one batch with the same task and key share one run: the first item's
 * (trigger::original). */
static void find_duplicates(struct trigger_op *op)
{
    struct trigger **keyed = mem_new_array(struct trigger *, op->count);
    size_t count = 0;
    for (size_t i = 0; i < op->count; i++)
        if (key_of(&op->items[i]).ptr)
            keyed[count++] = &op->items[i];
    qsort(keyed, count, sizeof(*keyed), by_key);
    for (size_t i = 1; i < count; i++)
        if (compare_keys(keyed[i - 1], keyed[i]) == 0)
            keyed[i]->original =
                keyed[i - 1]->original ? keyed[i - 1]->original : keyed[i - 1];
    free(keyed);
}

static void make_claims(struct trigger_op *op)
{
    int64_t now = loop_wall_ms(op->engine->loop);

    op->claims = mem_new_array(struct claim, op->count + 3);
    op->claim_items = mem_new_array(size_t, op->count + 3);
    op->commit.claims = op->claims;
    find_duplicates(op);
    if (op->request_key)
        add_claim(op, CLAIM_REQUEST, op->request_key, now + REQUEST_KEY_MS, SIZE_MAX);
    if (op->one_time_token)
        add_claim(op, CLAIM_ONE_TIME_TOKEN, op->one_time_token, op->token_expires_at,
                  SIZE_MAX);
    if (op->batch_key)
        add_claim(op, CLAIM_BATCH, op->batch_key, op->batch_key_expires_at, SIZE_MAX);
    for (size_t i = 0; i < op->count; i++) {
        struct trigger *item = &op->items[i];
        if (!key_of(item).ptr)
            continue;
        if (item->original) {
            memcpy(item->id, item->original->id, sizeof(item->id));
            item->cached = true;
            continue;
        }
        struct bytes *key =
            idempotency_claim_key(bytes_slice(item->run.task), key_of(item));
        add_claim(op, CLAIM_IDEMPOTENCY, key, item->key_expires_at, i);
    }
}

/* Returns the marks of a new run. A replay of many runs does not check their packets: a
 * missing one must not refuse the others. */
static unsigned marks_of(const struct trigger_op *op, const struct run *run)
{
    unsigned marks = MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA;
    if (run->payload && !op->packets_as_they_are &&
        slice_is(bytes_slice(run_rare(run)->payload_type), "application/store"))
        marks |= MARK_PACKET;
    return marks;
}

static void on_committed(struct store_commit *commit, enum store_status status);

static bool apply_some(struct store_commit *commit)
{
    struct trigger_op *op = container_of(commit, struct trigger_op, commit);
    return engine_apply_some(op->engine, commit, &op->applied);
}

/* Gives the item's id to later items with the same key. */
static void set_duplicate_ids(struct trigger_op *op, const struct trigger *item)
{
    if (!key_of(item).ptr)
        return;
    for (size_t i = (size_t)(item - op->items) + 1; i < op->count; i++)
        if (op->items[i].original == item)
            memcpy(op->items[i].id, item->id, sizeof(item->id));
}

/* Sets each item's run. */
static void name_items(struct trigger_op *op)
{
    for (size_t i = 0; i < op->count; i++) {
        struct trigger *item = &op->items[i];
        if (item->cached)
            continue;
        const char *id = item->run.id;
        item->joined = item->singleton != SINGLETON_CANCEL &&
                       (item->leader || (item->pushes[0] && !item->replaces));
        if (item->joined)
            id = item->leader ? item->leader->run.id : item->pushes;
        snprintf(item->id, sizeof(item->id), "%s", id);
        if (op->is_debounced || op->is_singleton)
            set_duplicate_ids(op, item);
    }
}

static void add_run(struct trigger_op *op, struct trigger *item, struct change *change)
{
    *change = (struct change){ .kind = CHANGE_RUN,
                               .env = op->env->number,
                               .marks = marks_of(op, &item->run) };
    run_copy(&change->run, &item->run);
    change->run.version = 1;
    item->change = change;
}

/* Pushes a run that the same commit creates. */
static void push_new(const struct trigger_op *op, const struct trigger *item)
{
    unsigned marks = 0;
    struct change *change = item->leader->change;
    debounce_push(&item->debounce, &item->run, &change->run, loop_wall_ms(op->engine->loop),
                  &marks);
    change->run.snapshot = 1;
    change->marks = marks_of(op, &change->run);
}

/* Adds the change of an item to the others; earlier items have theirs. Returns how many were
 * added. */
static size_t add_item(struct trigger_op *op, struct trigger *item, struct change *change)
{
    if (item->leader && item->singleton == SINGLETON_CANCEL)
        singleton_cancel_new(item, loop_wall_ms(op->engine->loop));
    else if (item->leader && !item->singleton)
        push_new(op, item);
    if (item->joined)
        return 0;
    add_run(op, item, change);
    return 1;
}

/* Writes the changes that create the runs and the batch. Returns their number. */
static size_t fill_in(struct trigger_op *op, struct change *changes)
{
    size_t count = 0;
    name_items(op);
    name_owners(op);
    if (op->prepare)
        op->prepare(op);
    for (size_t i = 0; i < op->count; i++) {
        struct trigger *item = &op->items[i];
        if (!item->cached)
            count += add_item(op, item, &changes[count]);
    }
    if (op->batch) {
        changes[count++] =
            (struct change){ .kind = CHANGE_DOCUMENT,
                             .env = op->env->number,
                             .expected = op->batch->version,
                             .document = { .kind = op->batch->kind,
                                           .env = op->env->number,
                                           .name = bytes_ref(op->batch->name),
                                           .body = bytes_ref(op->batch->body) } };
    }
    return count;
}

static void commit_op(struct trigger_op *op)
{
    op->commit.changes = op->changes;
    op->commit.change_count = fill_in(op, op->changes);
    op->commit.now_ms = loop_wall_ms(op->engine->loop);
    op->commit.apply = apply_some;
    op->commit.done = on_committed;
    op->engine->store->ops->commit(op->engine->store, &op->commit);
}

/* ---- limits and gates ---- */

static void discount_sets(struct trigger_op *op)
{
    for (size_t i = 0; i < op->count; i++) {
        limits_discount_set(&op->env->queues, op->items[i].counted);
        op->items[i].counted = NULL;
    }
}

/* The limits and gates of a run count from now on: in the operation until that is done, and
 * then wherever the run is. */
static enum err count_sets(struct trigger_op *op)
{
    struct queues *queues = &op->env->queues;
    for (size_t i = 0; i < op->count; i++) {
        struct trigger *item = &op->items[i];
        struct slice limits = bytes_slice(run_rare(&item->run)->limits);
        if (item->counted || limits_count_set(queues, limits, &item->counted))
            continue;
        discount_sets(op);
        return explain(&op->why, ERR_RULE,
                       "The unfinished runs of this environment need %u different sets of "
                       "concurrency limits and gates already; try again when some have "
                       "ended",
                       queues->sets_max);
    }
    return OK;
}

static void finish_op(struct trigger_op *op, enum err status)
{
    struct environment *env = op->env; /* done may free the operation */
    discount_sets(op);
    if (op->is_debounced)
        debounce_keys_give(op);
    singletons_give(op);
    list_remove(&op->link);
    engine_share_of(env)->arriving -= (uint32_t)op->count;
    quota_release(env->project_unfinished, op->count);
    op->done(op, status);
    environment_release(env);
}

/* ---- taken claims ---- */

static bool key_is_free_again(const struct run *run)
{
    switch (run->status) {
    case RUN_FAILED:
    case RUN_CRASHED:
    case RUN_SYSTEM_FAILURE:
    case RUN_INTERRUPTED:
    case RUN_TIMED_OUT:
    case RUN_EXPIRED: return true;
    default: return false; /* completed and canceled runs keep their key */
    }
}

static void begin_commit(struct trigger_op *op);
static void resolve_next(struct trigger_op *op);

static void on_owner(struct run_read *read, enum err status)
{
    struct trigger_op *op = container_of(read, struct trigger_op, read);
    struct claim *claim = &op->claims[op->resolving];
    struct trigger *item = &op->items[op->claim_items[op->resolving]];

    if (status && status != ERR_NOT_FOUND) {
        finish_op(op, status);
        return;
    }
    if (!read->run || key_is_free_again(read->run)) {
        memcpy(claim->instead_of, claim->owner, sizeof(claim->instead_of));
    } else {
        snprintf(item->id, sizeof(item->id), "%s", read->run->id);
        item->cached = true;
        set_duplicate_ids(op, item);
        /* The item no longer needs a claim. */
        bytes_unref(claim->key);
        *claim = op->claims[--op->commit.claim_count];
        op->claim_items[op->resolving] = op->claim_items[op->commit.claim_count];
        resolve_next(op);
        return;
    }
    claim->taken = false;
    resolve_next(op);
}

/* Gives the item the run of the first response, which may have led to an older run. */
static void repeat_first(struct trigger *item, struct slice owner)
{
    item->joined = debounce_owner_is_push(owner);
    snprintf(item->id, sizeof(item->id), "%.*s", SLICE_ARG(debounce_owner_run(owner)));
}

/* If a taken claim decides the whole operation, finishes it and returns true. */
static bool answered_by_claim(struct trigger_op *op)
{
    for (size_t i = 0; i < op->commit.claim_count; i++) {
        struct claim *claim = &op->claims[i];
        if (!claim->taken || claim->kind == CLAIM_IDEMPOTENCY)
            continue;
        if (claim->kind == CLAIM_ONE_TIME_TOKEN) {
            op->token_used = true;
            explain(&op->why, ERR_RULE, "The one-time use token has already been used.");
            finish_op(op, ERR_RULE);
            return true;
        }
        if (claim->kind == CLAIM_BATCH)
            op->batch_cached = true;
        else
            op->repeated = true;
        if (op->batch_id[0])
            memcpy(op->batch_id, claim->owner, sizeof(op->batch_id));
        else
            repeat_first(&op->items[0], slice_of(claim->owner));
        finish_op(op, OK);
        return true;
    }
    return false;
}

static void resolve_next(struct trigger_op *op)
{
    for (size_t i = 0; i < op->commit.claim_count; i++) {
        if (!op->claims[i].taken)
            continue;
        op->resolving = i;
        run_read_begin(op->env, debounce_owner_run(slice_of(op->claims[i].owner)),
                       &op->read, on_owner);
        return;
    }
    bool all_cached = op->count > 0;
    for (size_t i = 0; i < op->count; i++)
        all_cached &= op->items[i].cached;
    if (all_cached && !op->batch)
        finish_op(op, OK);
    else
        begin_commit(op);
}

/* ---- the outcome ---- */

static void count_triggers(const struct trigger_op *op)
{
    size_t made = 0;
    for (size_t i = 0; i < op->count; i++)
        made += !op->items[i].cached && !op->items[i].joined;
    metric_add(M_TRIGGERS, made);
}

static void on_committed(struct store_commit *commit, enum store_status status)
{
    struct trigger_op *op = container_of(commit, struct trigger_op, commit);
    if (status == STORE_OK) {
        size_t count = commit->change_count;
        op->seq = count ? commit->changes[count - 1].seq : op->env->applied;
        count_triggers(op);
        finish_op(op, OK);
        return;
    }
    for (size_t i = 0; i < commit->change_count; i++)
        change_finish(&commit->changes[i]);
    if (status == STORE_MISSING)
        finish_op(op, trigger_missing_packet(op));
    else if (status != STORE_TAKEN)
        finish_op(op, err_of_store(status));
    else if (!answered_by_claim(op))
        resolve_next(op);
}

static void on_pushed(struct trigger_op *op, enum push_outcome outcome, enum err status)
{
    if (outcome == PUSH_FAILED) {
        begin_commit(op);
        return;
    }
    if (outcome == PUSH_TAKEN) {
        if (!answered_by_claim(op))
            resolve_next(op);
        return;
    }
    if (!status) {
        op->seq = op->seq ? op->seq : op->env->applied;
        count_triggers(op);
    }
    finish_op(op, status);
}

/* Takes the keys that the items need. Returns false if the operation must wait for one; it
 * then has none, so that operations never wait for each other. */
static bool take_keys(struct trigger_op *op)
{
    singletons_give(op);
    if (op->is_debounced && !debounce_keys_take(op))
        return false;
    if (singletons_take(op))
        return true;
    if (op->is_debounced)
        debounce_keys_give(op);
    return false;
}

/* Continues in the retry if another operation is creating a run for one of the keys. */
static void begin_commit(struct trigger_op *op)
{
    bool pushes = false;
    if (!take_keys(op))
        return;
    for (size_t i = 0; i < op->count; i++)
        pushes |= op->items[i].pushes[0] != '\0';
    if (pushes)
        trigger_push_begin(op, fill_in, on_pushed);
    else
        commit_op(op);
}

/* ---- begin, finish ---- */

/* A project may have this many times as many unfinished runs as one environment, however
 * many preview branches it has. All preview branches together may have a part of these. */
enum { PROJECT_SHARES = 4 };

static enum err refuse_full(struct trigger_op *op, const char *what, uint64_t max)
{
    return explain(
        &op->why, ERR_RULE,
        "Cannot trigger %s as the queue size limit for this %s has been reached. "
        "The maximum size is %llu",
        op->count ? op->items[0].run.task->data : "a batch", what, (unsigned long long)max);
}

/* Runs whose commit is in flight count, so that of many concurrent triggers only those
 * above the limit are refused. */
static enum err check_queue_size(const struct engine *engine, const struct environment *env,
                                 struct trigger_op *op)
{
    uint64_t max = engine->options.queue_size;
    if (max && env->unfinished + engine_share_of(env)->arriving + op->count > max)
        return refuse_full(op, "environment", max);
    const struct quota *shared = max ? env->project_unfinished : NULL;
    for (; shared; shared = shared->outer) {
        bool is_of_branches = shared->outer;
        uint64_t most = PROJECT_SHARES * max / (is_of_branches ? BRANCHES_PART : 1);
        if (shared->used + op->count > most)
            return refuse_full(
                op, is_of_branches ? "project's preview branches" : "project", most);
    }
    return OK;
}

static size_t stored_bytes(const struct trigger_op *op)
{
    int64_t bytes = op->batch ? STORED_ROW : 0;
    for (size_t i = 0; i < op->count; i++)
        bytes += stored_run_bytes(&op->items[i].run);
    return (size_t)bytes;
}

enum err trigger_begin(struct engine *engine, struct environment *env,
                       struct trigger_op *op)
{
    op->engine = engine;
    op->env = env;
    if (engine->stopped)
        return explain(&op->why, ERR_DRAINING, "shutting down");
    enum err over = check_queue_size(engine, env, op);
    over = over ? over : engine_check_quota(env, stored_bytes(op), &op->why);
    if (over)
        return over;
    op->retry = begin_commit;
    for (size_t i = 0; i < op->count; i++) {
        complete_run(engine, env, &op->items[i]);
        op->is_debounced |= op->items[i].debounce.delay_ms > 0;
    }
    over = singletons_check(op);
    over = over ? over : count_sets(op);
    if (over)
        return over;
    op->changes = mem_new_array(struct change, op->count + 1);
    make_claims(op);
    list_append(&engine->triggers, &op->link);
    engine_share_of(env)->arriving += (uint32_t)op->count;
    quota_take(env->project_unfinished, op->count);
    environment_hold(env);
    begin_commit(op);
    return OK;
}

void trigger_op_finish(struct trigger_op *op)
{
    for (size_t i = 0; i < op->commit.claim_count; i++)
        if (op->claims[i].kind == CLAIM_IDEMPOTENCY)
            bytes_unref(op->claims[i].key);
    for (size_t i = 0; i < op->count; i++)
        run_finish(&op->items[i].run);
    free(op->changes);
    free(op->claims);
    free(op->claim_items);
    bytes_unref(op->request_key);
    bytes_unref(op->one_time_token);
    bytes_unref(op->batch_key);
}
