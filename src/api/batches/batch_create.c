/* batch_create.c - the first of the two calls of SDK 4.3: creates a batch without items. */
#include "api/batches/batch_commit.h"
#include "api/batches/batch_token.h"
#include "api/batches/batches.h"
#include "api/triggers/trigger_options.h"
#include "base/mem.h"

enum {
    DAY_MS = 24 * 3600 * 1000,
    ABANDONED_MS = 60 * 1000, /* after this, no client is expected to stream its items */
};

struct batch_creation {
    struct batch_commit commit; /* first */
    struct batch_load old;
};

static void create_destroy(struct batch_creation *create)
{
    batch_commit_finish(&create->commit);
    batch_finish(&create->old.batch);
    free(create);
}

/* ---- the body ---- */

static struct slice text_of(const json_t *value)
{
    return (struct slice){ json_string_value(value), json_string_length(value) };
}

static enum err read_count(struct api_call *call, const json_t *body, uint32_t *count)
{
    const json_t *value = json_object_get(body, "runCount");
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number <= 0)
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected a positive integer at \"runCount\"");
    if (number > BATCH_RUNS_MAX)
        return explain(&call->why, ERR_INVALID,
                       "Batch runCount of %lld exceeds maximum allowed of %d.",
                       (long long)number, BATCH_RUNS_MAX);
    *count = (uint32_t)number;
    return OK;
}

static int compare_slices(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Reads the task ids, sorted. There may be no more than a batch has items, because each
 * is looked up among the scopes of the token. The caller frees the array; it stays unset
 * if the member is absent. */
static enum err read_tasks(struct api_call *call, const json_t *body, struct slice **tasks,
                           size_t *count)
{
    const json_t *list = json_object_get(body, "taskIdentifiers");
    size_t given = json_array_size(list);
    if (!list)
        return OK;
    if (given > BATCH_RUNS_MAX)
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected at most %d task ids at "
                       "\"taskIdentifiers\"",
                       BATCH_RUNS_MAX);
    struct slice *sorted = mem_new_array(struct slice, given);
    bool fine = json_is_array(list) && given;
    for (size_t i = 0; i < given; i++) {
        sorted[i] = text_of(json_array_get(list, i));
        fine &= sorted[i].len > 0;
    }
    if (fine)
        qsort(sorted, given, sizeof(*sorted), compare_slices);
    for (size_t i = 1; fine && i < given; i++)
        fine = !slice_equal(sorted[i - 1], sorted[i]);
    if (!fine) {
        free(sorted);
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected a non-empty array of different task ids "
                       "at \"taskIdentifiers\"");
    }
    *tasks = sorted;
    *count = given;
    return OK;
}

/* Checks the scopes: every one of the tasks, or tasks or batches in general. */
static enum err check_scopes(struct api_call *call, const struct slice *tasks, size_t count)
{
    struct slice any = { 0 };
    if (!api_check_scope(call, "batchTrigger", "batch", any) ||
        !api_check_scope(call, "batchTrigger", "tasks", any))
        return OK;
    for (size_t i = 0; i < count; i++)
        if (api_check_scope(call, "batchTrigger", "tasks", tasks[i]))
            return ERR_FORBIDDEN;
    return count ? OK : ERR_FORBIDDEN;
}

static bool are_key_options(const json_t *options)
{
    const char *scope = json_string_value(json_object_get(options, "scope"));
    return json_is_string(json_object_get(options, "key")) && scope &&
           (!strcmp(scope, "run") || !strcmp(scope, "attempt") || !strcmp(scope, "global"));
}

/* Reads the idempotency key, which belongs to its set of tasks: the same key with other
 * tasks means another batch. */
static enum err read_key(struct batch_creation *create, const json_t *body,
                         const struct slice *tasks, size_t count)
{
    struct batch_commit *commit = &create->commit;
    struct api_call *call = commit->call;
    const json_t *value = json_object_get(body, "idempotencyKey");
    const json_t *options = json_object_get(body, "idempotencyKeyOptions");
    struct slice key = text_of(value);
    if (options && !are_key_options(options))
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected {key: string, scope: run, attempt or "
                       "global} at \"idempotencyKeyOptions\"");
    if (!value)
        return OK;
    if (!key.ptr || text_utf16_length(key) > TRIGGER_KEY_MAX)
        return explain(&call->why, ERR_INVALID,
                       "Validation error: Expected at most %d characters at "
                       "\"idempotencyKey\"",
                       TRIGGER_KEY_MAX);
    if (!key.len)
        return OK;
    struct slice *parts = mem_new_array(struct slice, count + 2);
    parts[0] = SLICE("v3");
    parts[1] = key;
    if (count)
        memcpy(parts + 2, tasks, count * sizeof(*tasks));
    commit->op.batch_key = batch_claim_key(parts, count + 2);
    commit->op.batch_key_expires_at = commit->batch.created_at + DAY_MS;
    free(parts);
    commit->batch.key =
        bytes_create(options ? text_of(json_object_get(options, "key")) : key);
    return OK;
}

static enum err read_parent(struct batch_creation *create, const json_t *body)
{
    struct batch *batch = &create->commit.batch;
    const json_t *parent = json_object_get(body, "parentRunId");
    const json_t *resume = json_object_get(body, "resumeParentOnCompletion");
    if ((parent && !json_is_string(parent)) || (resume && !json_is_boolean(resume)))
        return explain(&create->commit.call->why, ERR_INVALID,
                       "Validation error: Expected a run id at \"parentRunId\" and a "
                       "boolean at \"resumeParentOnCompletion\"");
    if (json_string_length(parent))
        batch->parent = bytes_create(text_of(parent));
    batch->resume = json_is_true(resume);
    return OK;
}

static enum err read_body(struct batch_creation *create, struct api_call *call,
                          const json_t *body)
{
    struct slice *tasks = NULL;
    size_t task_count = 0;
    uint32_t count = 0;
    enum err err = read_count(call, body, &count);
    if (!err)
        err = read_tasks(call, body, &tasks, &task_count);
    if (!err)
        err = check_scopes(call, tasks, task_count);
    if (!err) {
        batch_commit_new(&create->commit, call, count);
        err = read_key(create, body, tasks, task_count);
    }
    if (!err)
        err = read_parent(create, body);
    if (!err)
        trigger_call_claims(call, SLICE(CLAIM_NO_TASK "batch v3"), &create->commit.op);
    free(tasks);
    return err;
}

/* ---- the operation ---- */

static void reply(struct batch_creation *create, const struct batch *batch, bool cached)
{
    struct api_call *call = create->commit.call;
    uint64_t seq = create->commit.op.seq;
    bool browser = slice_is(http_header(call->x, "x-trigger-client"), "browser");
    struct buf out = { 0 };

    buf_print(&out, "{\"id\":\"%s\",\"runCount\":%u,\"isCached\":%s", batch->id,
              batch->run_count, cached ? "true" : "false");
    if (batch->key) {
        buf_add_text(&out, ",\"idempotencyKey\":");
        buf_add_json(&out, bytes_slice(batch->key));
    }
    buf_add_char(&out, '}');
    batch_add_token(call, batch->id, !create->commit.op.batch_cached, browser);
    api_add_seq(call, seq);
    api_reply_json(call, cached ? 200 : 202, buf_slice(&out));
    buf_finish(&out);
    create_destroy(create);
}

/* Returns true if a batch found by its key may be filled by this client. A client that
 * gets isCached sends no items, so a batch whose client gave up before it sent them
 * would stay empty as long as the key lives. */
static bool is_abandoned(const struct batch_creation *create, const struct batch *old)
{
    const struct batch *new = &create->commit.batch;
    return !old->sealed_at && old->run_count == new->run_count &&
           old->created_at + ABANDONED_MS < new->created_at;
}

static void reply_old(struct batch_creation *create, enum err status)
{
    const struct batch *old = &create->old.batch;
    if (status) {
        api_reply_error(create->commit.call, status);
        create_destroy(create);
        return;
    }
    reply(create, old, create->commit.op.batch_cached && !is_abandoned(create, old));
}

static void on_old_blocked(struct blocking *blocking, enum err status)
{
    struct batch_commit *commit = container_of(blocking, struct batch_commit, blocking);
    reply_old(container_of(commit, struct batch_creation, commit), status);
}

/* Continues with the batch that has the key. The parent of this request waits for it
 * too. */
static void on_old(struct batch_load *load, enum err status)
{
    struct batch_creation *create = container_of(load, struct batch_creation, old);
    struct batch *old = &load->batch;
    const struct batch *wanted = &create->commit.batch;
    if (status || !create->commit.op.batch_cached || !wanted->resume || !wanted->parent) {
        reply_old(create, status);
        return;
    }
    bytes_set(&old->parent, wanted->parent);
    old->resume = true;
    if (batch_blocks(old))
        blocking_begin_batch(&create->commit.blocking, create->commit.call, old,
                             on_old_blocked);
    else
        reply_old(create, OK);
}

static void on_created(struct batch_commit *commit, enum err status)
{
    struct batch_creation *create = container_of(commit, struct batch_creation, commit);
    struct trigger_op *op = &commit->op;
    if (status) {
        api_reply_error(commit->call, status);
        create_destroy(create);
    } else if (op->batch_cached || op->repeated) {
        batch_load_begin(commit->call, slice_of(op->batch_id), &create->old, on_old);
    } else {
        reply(create, &commit->batch, false);
    }
}

enum err batch_create(struct api_call *call)
{
    json_t *body;
    enum err err = api_read_json(call, &body);
    if (err)
        return err;
    struct batch_creation *create = mem_new(struct batch_creation);
    err = read_body(create, call, body);
    json_decref(body);
    if (err) {
        create_destroy(create);
        return err;
    }
    create->commit.call = call;
    create->commit.done = on_created;
    call->busy = true;
    batch_commit_begin(&create->commit);
    return OK;
}
