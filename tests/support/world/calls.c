/* calls.c - begins each operation, runs turns until it is done, returns its status. */
#include "tests/support/world/calls.h"

#include <stdio.h>

#include "base/mem.h"
#include "tests/support/world/unit.h"

enum { TURNS_MAX = 10000, HOUR_MS = 3600 * 1000, DEBOUNCE_MS = 10 * 1000 };

static void wait_until(struct world *world, const bool *done)
{
    bool more = true;
    for (int turn = 0; !*done; turn++) {
        assert_true(turn < TURNS_MAX);
        more = loop_turn(world->loop, more ? 0 : 1);
    }
}

static struct bytes *text_of(const char *text)
{
    return bytes_create(slice_of(text));
}

/* ---- triggers ---- */

static void on_triggered(struct trigger_op *op, enum err status)
{
    struct triggering *triggering = container_of(op, struct triggering, op);
    assert_false(triggering->done);
    triggering->status = status;
    triggering->done = true;
}

static void debounce(struct trigger *item, const struct wish *wish, int64_t now)
{
    struct run_rare *rare = run_rare_edit(&item->run);
    item->debounce = (struct debounce){
        .delay_ms = wish->debounce_ms ? wish->debounce_ms : DEBOUNCE_MS,
        .max_delay_ms = wish->max_delay_ms,
        .is_trailing = wish->is_trailing,
    };
    rare->waits = debounce_mark(slice_of(wish->debounce));
    if (!rare->delayed_until)
        rare->delayed_until = now + item->debounce.delay_ms;
}

static void fill_in(struct world *world, struct trigger *item, const struct wish *wish)
{
    struct run *run = &item->run;
    struct run_rare *rare = run_rare_edit(run);
    int64_t now = loop_wall_ms(world->loop);
    struct slice tags[RUN_TAGS_MAX], rest = slice_of(wish->tags);
    size_t count = 0;

    while (slice_split(&rest, ',', &tags[count]))
        count++;
    run->tags = tag_list_create(tags, count);
    run->task = text_of(wish->task ? wish->task : "hello");
    rare->idempotency_key = text_of(wish->key);
    rare->ttl = text_of(wish->ttl);
    rare->parent = text_of(wish->parent);
    run->worker_version = text_of(wish->version);
    rare->concurrency_key = text_of(wish->concurrency_key);
    rare->limits = text_of(wish->limits);
    rare->external_deployment = text_of(wish->external);
    run->metadata = text_of(wish->metadata);
    run->payload = text_of(wish->payload ? wish->payload : "{\"n\":1}");
    run->max_attempts = wish->max_attempts;
    rare->delayed_until = wish->delay_ms ? now + wish->delay_ms : 0;
    if (wish->debounce)
        debounce(item, wish, now);
    if (wish->key)
        item->key_expires_at = now + (wish->key_ms ? wish->key_ms : HOUR_MS);
}

enum err trigger_all(struct world *world, struct triggering *triggering,
                     const struct wish *wishes, size_t count)
{
    struct trigger_op *op = &triggering->op;
    op->items = triggering->items;
    op->count = count;
    op->done = on_triggered;
    for (size_t i = 0; i < count; i++) {
        fill_in(world, &triggering->items[i], &wishes[i]);
        if (op->batch)
            triggering->items[i].run.batch = bytes_ref(op->batch->name);
    }
    return trigger_begin(world->engine, world->env, op);
}

void triggering_wait(struct world *world, struct triggering *triggering)
{
    wait_until(world, &triggering->done);
}

void triggering_finish(struct triggering *triggering)
{
    document_finish(&triggering->batch);
    trigger_op_finish(&triggering->op);
}

static enum err trigger_one(struct world *world, const struct wish *wish,
                            struct triggered *triggered)
{
    struct triggering triggering = { 0 };
    enum err status = trigger_all(world, &triggering, wish, 1);
    if (!status) {
        triggering_wait(world, &triggering);
        status = triggering.status;
    }
    memcpy(triggered->id, triggering.items[0].id, sizeof(triggered->id));
    triggered->cached = triggering.items[0].cached;
    triggered->joined = triggering.items[0].joined;
    triggering_finish(&triggering);
    return status;
}

struct triggered trigger(struct world *world, struct wish wish)
{
    struct triggered triggered;
    assert_int_equal(trigger_one(world, &wish, &triggered), OK);
    return triggered;
}

enum err trigger_status(struct world *world, struct wish wish)
{
    struct triggered triggered;
    return trigger_one(world, &wish, &triggered);
}

/* ---- workers ---- */

static struct worker *make_worker(struct world *world, const char *version,
                                  const char *tasks, uint16_t max_attempts)
{
    struct worker *worker = mem_new(struct worker);
    struct slice rest = slice_of(tasks), name;
    snprintf(worker->version, sizeof(worker->version), "%s", version);
    snprintf(worker->id, sizeof(worker->id), "%s", version);
    worker->created_at = loop_wall_ms(world->loop);
    worker->tasks = mem_new_array(struct worker_task, strlen(tasks));
    while (slice_split(&rest, ',', &name))
        worker->tasks[worker->task_count++] = (struct worker_task){
            .id = bytes_create(name),
            .machine = -1,
            .has_retry = max_attempts > 0,
            .max_attempts = max_attempts,
            .factor = 2,
            .min_timeout_ms = 1000,
            .max_timeout_ms = 10000,
        };
    worker_sort(worker);
    return worker;
}

void register_worker(struct world *world, const char *version, const char *tasks,
                     uint16_t max_attempts)
{
    struct worker *worker = make_worker(world, version, tasks, max_attempts);
    if (world->env->is_dev) {
        dev_sessions_add(world->env, worker);
        return;
    }
    workers_add(world->env->fleet->workers, worker);
    fleet_changed(world->env);
}

struct worker *add_deployment(struct world *world, const char *version, const char *tasks,
                              const char *external)
{
    struct worker *worker = make_worker(world, version, tasks, 3);
    snprintf(worker->deployment, sizeof(worker->deployment), "deployment_%s", version);
    snprintf(worker->external_id, sizeof(worker->external_id), "%s", external);
    workers_add(world->env->fleet->workers, worker);
    return worker;
}

void load_worker(struct world *world, const char *version, const char *tasks,
                 uint16_t max_attempts)
{
    workers_add(world->env->fleet->workers,
                make_worker(world, version, tasks, max_attempts));
}

/* ---- commands ---- */

/* Only one call is in flight at a time. */
static struct {
    bool done;
    enum err status;
} answer;

static void on_done(struct command *command, enum err status)
{
    assert_false(answer.done);
    if (!status)
        assert_non_null(command->run);
    answer.done = true;
    answer.status = status;
}

static enum err wait_for_answer(struct world *world)
{
    wait_until(world, &answer.done);
    answer.done = false;
    return answer.status;
}

enum err cancel(struct world *world, const char *id)
{
    struct cancel op = { 0 };
    run_cancel(world->engine, world->env, slice_of(id), &op, on_done);
    return wait_for_answer(world);
}

enum err reschedule(struct world *world, const char *id, int64_t delay_ms)
{
    struct reschedule op = { .delayed_until = loop_wall_ms(world->loop) + delay_ms };
    run_reschedule(world->engine, world->env, slice_of(id), &op, on_done);
    return wait_for_answer(world);
}

enum err tag(struct world *world, const char *id, const char *tags)
{
    struct slice all[16], rest = slice_of(tags);
    struct add_tags op = { .tags = all };
    while (slice_split(&rest, ',', &all[op.count]))
        op.count++;
    run_add_tags(world->engine, world->env, slice_of(id), &op, on_done);
    return wait_for_answer(world);
}

enum err annotate(struct world *world, const char *id, const char *operations)
{
    struct change_metadata op = { .operations = slice_of(operations) };
    run_change_metadata(world->engine, world->env, slice_of(id), &op, on_done);
    return wait_for_answer(world);
}

static void on_reset(struct reset_key *op, enum err status)
{
    (void)op;
    answer.done = true;
    answer.status = status;
}

enum err reset_key(struct world *world, const char *task, const char *key)
{
    struct reset_key op;
    run_reset_key(world->engine, world->env, slice_of(task), slice_of(key), &op, on_reset);
    enum err status = wait_for_answer(world);
    world_settle(world);
    return status;
}

/* ---- the worker's side ---- */

static void on_dequeued(struct dequeue *dequeue, enum err status)
{
    (void)dequeue;
    assert_false(answer.done);
    answer.done = true;
    answer.status = status;
}

const char *dequeue(struct world *world)
{
    static char id[ID_MAX];
    struct dequeue op;
    assert_int_equal(
        dequeue_begin(world->engine, &world->env, 1, &any_run, &op, 5, on_dequeued), OK);
    enum err status = wait_for_answer(world);
    snprintf(id, sizeof(id), "%s", status ? "" : op.command.run_id);
    return id;
}

/* The newest snapshot, as a worker would name it. */
static struct slice snapshot_of(struct world *world, const char *id)
{
    static char snapshot[64];
    const struct tracked *run = environment_find(world->env, slice_of(id));
    assert_non_null(run);
    run_snapshot_id(&run->run, snapshot);
    return slice_of(snapshot);
}

enum err start(struct world *world, const char *id)
{
    struct start_attempt op = { .snapshot = snapshot_of(world, id) };
    attempt_start(world->engine, world->env, slice_of(id), &op, on_done);
    return wait_for_answer(world);
}

static enum err complete(struct world *world, const char *id, struct complete_attempt *op)
{
    op->snapshot = snapshot_of(world, id);
    op->usage_ms = 10;
    attempt_complete(world->engine, world->env, slice_of(id), op, on_done);
    return wait_for_answer(world);
}

enum err succeed(struct world *world, const char *id, const char *output)
{
    struct complete_attempt op = { .ok = true, .output = bytes_create(slice_of(output)) };
    enum err status = complete(world, id, &op);
    bytes_unref(op.output);
    return status;
}

enum err break_down(struct world *world, const char *id, const char *error,
                    int64_t retry_ms)
{
    struct complete_attempt op = { .error = slice_of(error),
                                   .has_retry = retry_ms >= 0,
                                   .retry_delay_ms = retry_ms };
    return complete(world, id, &op);
}

enum err block_by(struct world *world, const char *id, const struct wait *waits,
                  size_t count)
{
    struct block op = { .waits = waits, .count = count };
    run_block(world->engine, world->env, slice_of(id), &op, on_done);
    return wait_for_answer(world);
}

enum err wait_for(struct world *world, const char *id, int64_t ms)
{
    struct wait wait = { .type = WAIT_TIME,
                         .id = SLICE("waitpoint_1"),
                         .until = loop_wall_ms(world->loop) + ms };
    return block_by(world, id, &wait, 1);
}

enum err wait_for_run(struct world *world, const char *id, const char *other)
{
    struct wait wait = { .type = WAIT_RUN, .id = slice_of(other) };
    return block_by(world, id, &wait, 1);
}

static void on_token_written(struct document_write *write, enum err status)
{
    (void)write;
    assert_int_equal(status, OK);
}

void write_token(struct world *world, const struct waitpoint *token)
{
    struct document_write write = { 0 };
    struct change change = waitpoint_change(token, WORLD_ENV);
    documents_write_begin(world->engine, &change, 1, &write, on_token_written);
    world_settle(world);
}

enum err interrupt(struct world *world, const char *id)
{
    struct command command;
    attempt_interrupt(world->engine, world->env, slice_of(id), &command,
                      "the session ended", on_done);
    return wait_for_answer(world);
}

bool beat(struct world *world, const char *id)
{
    return attempt_heartbeat(world->engine, world->env, slice_of(id),
                             snapshot_of(world, id));
}

void execute(struct world *world, const char *id)
{
    assert_string_equal(dequeue(world), id);
    assert_int_equal(start(world, id), OK);
}

/* ---- outcomes ---- */

const struct run *run_now(struct world *world, const char *id)
{
    const struct run *stored = fake_store_run(world->fake, WORLD_ENV, id);
    const struct tracked *run = environment_find(world->env, slice_of(id));
    assert_non_null(stored);
    if (!run)
        return stored;
    assert_int_equal(run->run.version, stored->version);
    assert_int_equal(run->run.rev, stored->rev);
    assert_int_equal(run->run.whole_rev, stored->whole_rev);
    assert_int_equal(run->run.metadata_rev, stored->metadata_rev);
    assert_int_equal(run->run.output_rev, stored->output_rev);
    assert_int_equal(run->run.status, stored->status);
    assert_int_equal(run->run.execution, stored->execution);
    assert_int_equal(run->run.due_at, stored->due_at);
    return &run->run;
}
