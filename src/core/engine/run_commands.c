/* run_commands.c - user actions on a run: each decides from the run's current state. */
#include "core/engine/run_commands.h"

#include "base/mem.h"
#include "core/engine/calls.h"
#include "core/model/metadata.h"
#include "core/model/run_life.h"

/* ---- cancel ---- */

enum decision run_decide_cancel(struct command *command, const struct run *now,
                                struct run *next, const char *reason, unsigned *marks)
{
    const struct engine_options *options = engine_options(command->engine);
    int64_t time = loop_wall_ms(command->engine->loop);

    if (run_is_final(now) || run_advance(next, EVENT_CANCEL, time))
        return DECISION_NOTHING;
    run_end_with(next, error_text(reason ? reason : "Canceled by user"), marks);
    if (next->execution == EXECUTION_PENDING_CANCEL)
        next->due_at = time + options->cancel_ms;
    return DECISION_COMMIT;
}

/* A repeated cancel notifies the worker again: it may have missed the first notice. */
static enum decision decide_cancel(struct command *command, const struct run *now,
                                   struct run *next, unsigned *marks)
{
    struct cancel *cancel = container_of(command, struct cancel, command);
    if (now->execution == EXECUTION_PENDING_CANCEL)
        engine_notice(command->engine, environment_find(command->env, slice_of(now->id)));
    enum decision decision = run_decide_cancel(command, now, next, cancel->reason, marks);
    if (decision == DECISION_COMMIT && cancel->bulk.ptr) {
        struct bytes **place = &run_rare_edit(next)->bulk;
        bytes_unref(*place);
        *place = bytes_create_shared(cancel->bulk);
    }
    return decision;
}

void run_cancel(struct engine *engine, struct environment *env, struct slice id,
                struct cancel *cancel, command_done_fn *done)
{
    command_begin(engine, env, id, &cancel->command, decide_cancel, done);
}

static enum decision decide_child_cancel(struct command *command, const struct run *now,
                                         struct run *next, unsigned *marks)
{
    return run_decide_cancel(command, now, next, "Canceled because its parent was canceled",
                             marks);
}

void run_cancel_alone(struct engine *engine, struct environment *env, struct slice id)
{
    command_begin_alone(engine, env, id, decide_child_cancel);
}

static enum decision decide_archived_cancel(struct command *command, const struct run *now,
                                            struct run *next, unsigned *marks)
{
    return run_decide_cancel(
        command, now, next,
        "Canceled because its branch was archived or its project deleted", marks);
}

void run_cancel_archived(struct engine *engine, struct environment *env, struct slice id)
{
    command_begin_alone(engine, env, id, decide_archived_cancel);
}

/* ---- reschedule ---- */

static enum decision decide_reschedule(struct command *command, const struct run *now,
                                       struct run *next, unsigned *marks)
{
    struct reschedule *op = container_of(command, struct reschedule, command);
    (void)marks;
    if (now->status != RUN_DELAYED) {
        explain(&command->why, ERR_INVALID, "Cannot reschedule a run that is not delayed");
        return DECISION_REFUSE;
    }
    struct run_rare *rare = run_rare_edit(next);
    rare->delayed_until = next->due_at = op->delayed_until;
    next->queue_position = op->delayed_until - rare->priority_ms;
    next->snapshot++;
    return DECISION_COMMIT;
}

void run_reschedule(struct engine *engine, struct environment *env, struct slice id,
                    struct reschedule *op, command_done_fn *done)
{
    command_begin(engine, env, id, &op->command, decide_reschedule, done);
}

/* ---- tags ---- */

static bool among(struct slice tag, const struct slice *tags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(tags[i], tag))
            return true;
    return false;
}

static void explain_tags(struct failure *why, const struct add_tags *op, size_t total)
{
    explain(
        why, ERR_RULE,
        "Runs can only have %d tags, you're trying to set %zu. These tags have not been "
        "set: ",
        RUN_TAGS_MAX, total);
    for (size_t i = 0; i < op->count; i++) {
        size_t len = strlen(why->text);
        snprintf(why->text + len, sizeof(why->text) - len, "%s'%.*s'", i ? ", " : "",
                 SLICE_ARG(op->tags[i]));
    }
    size_t len = strlen(why->text);
    snprintf(why->text + len, sizeof(why->text) - len, ".");
}

static enum decision decide_tags(struct command *command, const struct run *now,
                                 struct run *next, unsigned *marks)
{
    struct add_tags *op = container_of(command, struct add_tags, command);
    size_t had = now->tags ? now->tags->count : 0;
    struct slice *all = mem_new_array(struct slice, had + op->count);
    size_t count = 0;

    for (; count < had; count++)
        all[count] = bytes_slice(now->tags->names[count]);
    for (size_t i = 0; i < op->count; i++)
        if (!among(op->tags[i], all, count))
            all[count++] = op->tags[i];
    op->added = count - had;
    enum decision decision = DECISION_NOTHING;
    if (count > RUN_TAGS_MAX) {
        explain_tags(&command->why, op, count);
        decision = DECISION_REFUSE;
    } else if (op->added) {
        tag_list_unref(next->tags);
        next->tags = tag_list_create(all, count);
        *marks = MARK_WHOLE;
        decision = DECISION_COMMIT;
    }
    free(all);
    return decision;
}

void run_add_tags(struct engine *engine, struct environment *env, struct slice id,
                  struct add_tags *op, command_done_fn *done)
{
    command_begin(engine, env, id, &op->command, decide_tags, done);
}

/* ---- streams ---- */

static void list_key(struct slice list, struct slice key, struct buf *longer)
{
    buf_add_char(longer, '[');
    if (list.len) {
        buf_add(longer, (struct slice){ list.ptr + 1, list.len - 2 });
        buf_add_char(longer, ',');
    }
    buf_add_json(longer, key);
    buf_add_char(longer, ']');
}

static enum decision decide_stream(struct command *command, const struct run *now,
                                   struct run *next, unsigned *marks)
{
    struct add_stream *op = container_of(command, struct add_stream, command);
    struct slice list = bytes_slice(run_rare(now)->streams);
    struct buf longer = { 0 };
    (void)marks;
    if (run_is_final(now)) {
        explain(&command->why, ERR_INVALID,
                "Cannot initialize a realtime stream on a completed run");
        return DECISION_REFUSE;
    }
    if (run_has_stream(now, op->key))
        return DECISION_NOTHING;
    if (run_count_streams(now) >= RUN_STREAMS_MAX) {
        explain(&command->why, ERR_RULE, "A run can only have %d streams", RUN_STREAMS_MAX);
        return DECISION_REFUSE;
    }
    list_key(list, op->key, &longer);
    struct run_rare *rare = run_rare_edit(next);
    bytes_unref(rare->streams);
    rare->streams = buf_to_bytes(&longer);
    buf_finish(&longer);
    return DECISION_COMMIT;
}

void run_add_stream(struct engine *engine, struct environment *env, struct slice id,
                    struct add_stream *op, command_done_fn *done)
{
    command_begin(engine, env, id, &op->command, decide_stream, done);
}

/* ---- metadata ---- */

enum {
    METADATA_AFTER_END_MS = 3600 * 1000,
    METADATA_REQUEST_MS = 3600 * 1000, /* how long a repetition is recognized */
};

static enum decision write_metadata(const struct change_metadata *op,
                                    struct command *command, const struct run *now,
                                    struct run *next, unsigned *marks)
{
    struct buf changed = { 0 };
    if (op->replacement.ptr)
        buf_add(&changed, op->replacement);
    else if (metadata_apply(bytes_slice(now->metadata), op->operations, &changed,
                            &command->why))
        return DECISION_REFUSE;
    if (changed.len > RUN_METADATA_MAX) {
        buf_finish(&changed);
        explain(&command->why, ERR_TOO_LARGE, "Metadata exceeds maximum size of %d bytes",
                RUN_METADATA_MAX);
        return DECISION_REFUSE;
    }
    if (engine_check_growth(command->env, bytes_slice(now->metadata).len, changed.len,
                            &command->why)) {
        buf_finish(&changed);
        return DECISION_REFUSE;
    }
    bytes_unref(next->metadata);
    next->metadata = buf_to_bytes(&changed);
    buf_finish(&changed);
    *marks = MARK_METADATA;
    return DECISION_COMMIT;
}

/* Returns true if the run itself records the request. Older gateways recorded the last one
 * there and took no claim; a repetition may arrive after the upgrade. */
static bool was_noted(const struct run *run, struct slice request_id)
{
    return request_id.ptr &&
           slice_equal(bytes_slice(run_rare(run)->metadata_request), request_id);
}

static enum decision decide_metadata(struct command *command, const struct run *now,
                                     struct run *next, unsigned *marks)
{
    struct change_metadata *op = container_of(command, struct change_metadata, command);
    int64_t time = loop_wall_ms(command->engine->loop);

    if (was_noted(now, op->request_id)) {
        command->also = NULL;
        return DECISION_NOTHING;
    }
    if (now->finished_at && time - now->finished_at > METADATA_AFTER_END_MS) {
        explain(&command->why, ERR_RULE, "Cannot update metadata for a completed run");
        return DECISION_REFUSE;
    }
    return op->replacement.ptr || op->operations.ptr
               ? write_metadata(op, command, now, next, marks)
               : DECISION_NOTHING;
}

/* Claims the request id, in the run's own key space. */
static void claim_request(struct change_metadata *op, struct engine *engine,
                          struct slice run_id)
{
    struct buf space = { 0 };
    int64_t now_ms = loop_wall_ms(engine->loop);
    buf_add(&space, SLICE(CLAIM_NO_TASK "metadata\n"));
    buf_add(&space, run_id);
    op->claim = (struct claim){
        .kind = CLAIM_REQUEST,
        .env = op->command.env->number,
        .key = idempotency_claim_key(buf_slice(&space), op->request_id),
        .expires_at = now_ms + METADATA_REQUEST_MS,
        .brief = true,
    };
    buf_finish(&space);
    engine_make_id(engine, "request", now_ms, op->claim.owner);
    command_claim(&op->command, &op->claim, 1);
}

static void on_metadata(struct command *command, enum err status)
{
    struct change_metadata *op = container_of(command, struct change_metadata, command);
    bytes_clear(&op->claim.key);
    op->done(command, status);
}

void run_change_metadata(struct engine *engine, struct environment *env, struct slice id,
                         struct change_metadata *op, command_done_fn *done)
{
    op->done = done;
    op->claim.key = NULL;
    command_begin(engine, env, id, &op->command, decide_metadata, on_metadata);
    if (op->request_id.ptr)
        claim_request(op, engine, slice_of(op->command.run_id));
}

void run_join_metadata(struct command *command, struct slice id, struct change_metadata *op)
{
    command_join(command, &op->command, id, decide_metadata);
}

/* ---- idempotency keys ---- */

static enum decision decide_forget_key(struct command *command, const struct run *now,
                                       struct run *next, unsigned *marks)
{
    (void)command;
    if (!run_rare(now)->idempotency_key)
        return DECISION_NOTHING;
    struct run_rare *rare = run_rare_edit(next);
    bytes_clear(&rare->idempotency_key);
    bytes_clear(&rare->idempotency_shown);
    *marks = MARK_KEY;
    return DECISION_COMMIT;
}

static void finish_reset(struct reset_key *op, enum err status)
{
    environment_release(engine_environment(op->engine, op->claim.env));
    list_remove(&op->link);
    bytes_clear(&op->key);
    op->done(op, status);
}

/* The claim decides: the next trigger finds the key free. The key is then removed from its
 * run, which has it unless a push took the claim. */
static void on_released(struct store_commit *commit, enum store_status status)
{
    struct reset_key *op = container_of(commit, struct reset_key, commit);
    if (status == STORE_OK && !debounce_owner_is_push(slice_of(op->claim.owner)))
        command_begin_alone(op->engine, engine_environment(op->engine, op->claim.env),
                            slice_of(op->claim.owner), decide_forget_key);
    finish_reset(op, err_of_store(status));
}

/* The probe claims the key with an expiry in the past, so a free key stays free and a taken
 * one names its owner. */
static void on_probed(struct store_commit *commit, enum store_status status)
{
    struct reset_key *op = container_of(commit, struct reset_key, commit);
    if (status == STORE_TAKEN) {
        op->claim.release = true;
        op->claim.taken = false;
        op->commit.done = on_released;
        op->engine->store->ops->commit(op->engine->store, &op->commit);
        return;
    }
    finish_reset(op, status ? err_of_store(status) : ERR_NOT_FOUND);
}

void run_reset_key(struct engine *engine, struct environment *env, struct slice task,
                   struct slice key, struct reset_key *op,
                   void (*done)(struct reset_key *op, enum err status))
{
    *op = (struct reset_key){ .engine = engine, .done = done };
    op->key = idempotency_claim_key(task, key);
    op->claim = (struct claim){ .kind = CLAIM_IDEMPOTENCY,
                                .env = env->number,
                                .key = op->key,
                                .owner = "-",
                                .expires_at = 1 };
    op->commit = (struct store_commit){ .claims = &op->claim,
                                        .claim_count = 1,
                                        .now_ms = loop_wall_ms(engine->loop),
                                        .done = on_probed };
    environment_hold(env);
    list_append(&engine->resets, &op->link);
    engine->store->ops->commit(engine->store, &op->commit);
}
