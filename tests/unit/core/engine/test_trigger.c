/* Triggers: one run or a batch as one commit, and the runs that idempotency keys find. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/metrics.h"
#include "tests/support/world/calls.h"

static int create_world(void **state)
{
    *state = world_create(NULL);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* ---- one run ---- */

static void a_triggered_run_is_stored_and_queued(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .tags = "a,b" });
    const struct run *run = run_now(world, got.id);
    assert_false(got.cached);
    assert_int_equal(run->version, 1);
    assert_int_equal(run->number, 1);
    assert_int_equal(run->created_at, run->queued_at);
    assert_int_equal(run->tags->count, 2);
    assert_string_equal(run->queue->data, "task/hello");
    assert_status(world, got.id, RUN_QUEUED);
    got = trigger(world, (struct wish){ 0 });
    assert_int_equal(run_now(world, got.id)->number, 2);
}

static void delayed_run_is_queued_at_its_time(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .delay_ms = 10000, .ttl = "1h" });
    assert_status(world, got.id, RUN_DELAYED);
    world_pass(world, 9000);
    assert_status(world, got.id, RUN_DELAYED);
    world_pass(world, 1000);
    assert_status(world, got.id, RUN_QUEUED);
    const struct run *run = run_now(world, got.id);
    assert_int_equal(run->queued_at, loop_wall_ms(world->loop));
    assert_int_equal(run->due_at, run->queued_at + 3600 * 1000); /* its ttl starts now */
    assert_true(run_rare(run)->delayed_until > 0);
}

/* Restarts on another machine, whose clock is slow. */
static void restart_behind(struct world *world, int64_t ms)
{
    loop_set_wall(world->loop, loop_wall_ms(world->loop) - ms);
    world_restart(world);
}

static void new_runs_follow_loaded_ones_despite_a_slow_clock(void **state)
{
    struct world *world = *state;
    struct triggered before = trigger(world, (struct wish){ 0 });
    int64_t created = run_now(world, before.id)->created_at;
    restart_behind(world, 20000);
    struct triggered after = trigger(world, (struct wish){ .ttl = "10s" });
    const struct run *run = run_now(world, after.id);
    assert_true(strcmp(after.id, before.id) > 0);
    assert_int_equal(run->created_at, created);
    assert_int_equal(run->updated_at, created);
    assert_int_equal(run->queued_at, created);
    assert_int_equal(run->due_at, loop_wall_ms(world->loop) + 10000); /* by its own clock */
    world_pass(world, 10000);
    assert_status(world, after.id, RUN_EXPIRED);
    world_pass(world, 30000);
    struct triggered later = trigger(world, (struct wish){ 0 });
    assert_int_equal(run_now(world, later.id)->created_at, loop_wall_ms(world->loop));
    assert_true(strcmp(later.id, after.id) > 0);
}

static void earlier_fast_clock_moves_creation_times_by_half_a_minute_at_most(void **state)
{
    struct world *world = *state;
    struct triggered before = trigger(world, (struct wish){ 0 });
    restart_behind(world, 3600 * 1000);
    struct triggered after = trigger(world, (struct wish){ 0 });
    assert_true(strcmp(after.id, before.id) > 0);
    assert_int_equal(run_now(world, after.id)->created_at,
                     loop_wall_ms(world->loop) + 30000);
}

static void run_expires_after_its_ttl(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .ttl = "10s" });
    world_pass(world, 9000);
    assert_status(world, got.id, RUN_QUEUED);
    world_pass(world, 1000);
    const struct run *run = run_now(world, got.id);
    assert_status(world, got.id, RUN_EXPIRED);
    assert_int_equal(run_rare(run)->expired_at, run->finished_at);
    assert_non_null(strstr(run->error->data, "10s"));
}

static void a_run_in_dev_gets_the_ttl_of_dev_unless_it_wants_none(void **state)
{
    struct world_options options = { .engine.dev_ttl_ms = 600000 };
    struct world *world = world_create(&options);
    struct triggering none = { .items[0].no_default_ttl = true };
    (void)state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_string_equal(run_rare(run_now(world, got.id))->ttl->data, "10m");
    assert_int_equal(trigger_all(world, &none, &(struct wish){ 0 }, 1), OK);
    triggering_wait(world, &none);
    assert_null(run_rare(run_now(world, none.items[0].id))->ttl);
    triggering_finish(&none);
    world_destroy(world);
}

static void full_queue_rejects_at_once(void **state)
{
    struct world_options options = { .engine.queue_size = 2 };
    struct world *world = world_create(&options);
    (void)state;
    trigger(world, (struct wish){ 0 });
    struct triggered second = trigger(world, (struct wish){ 0 });
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), ERR_RULE);
    assert_int_equal(cancel(world, second.id), OK);
    trigger(world, (struct wish){ 0 });
    world_destroy(world);
}

static void triggers_in_flight_count_towards_the_queue_size(void **state)
{
    struct world_options options = { .engine.queue_size = 2 };
    struct world *world = world_create(&options);
    struct triggering first = { 0 }, other = { 0 };
    (void)state;
    assert_int_equal(trigger_all(world, &first, (struct wish[]){ { 0 }, { 0 } }, 2), OK);
    assert_int_equal(trigger_all(world, &other, (struct wish[]){ { 0 } }, 1), ERR_RULE);
    triggering_finish(&other);
    triggering_wait(world, &first);
    triggering_finish(&first);
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), ERR_RULE);
    world_destroy(world);
}

/* Returns the result of one trigger of as many runs as there are sets. */
static enum err trigger_with(struct world *world, const char *const sets[2])
{
    struct triggering together = { 0 };
    struct wish wishes[2] = { { .limits = sets[0] }, { .limits = sets[1] } };
    enum err status = trigger_all(world, &together, wishes, sets[1] ? 2 : 1);
    if (status)
        assert_non_null(strstr(together.op.why.text, "need 2 different sets"));
    else
        triggering_wait(world, &together);
    triggering_finish(&together);
    return status;
}

static void items_of_one_batch_need_few_different_sets_of_limits(void **state)
{
    struct world *world = *state;
    world->env->queues.sets_max = 2;
    trigger(world, (struct wish){ .limits = "[\"a\"]" });
    assert_int_equal(trigger_with(world, (const char *[]){ "[\"b\"]", "[\"c\"]" }),
                     ERR_RULE);
    assert_int_equal(trigger_with(world, (const char *[]){ "[\"b\"]", "[\"b\"]" }), OK);
    assert_int_equal(trigger_with(world, (const char *[]){ "[\"c\"]", NULL }), ERR_RULE);
}

static void limits_of_triggers_in_flight_count(void **state)
{
    struct world *world = *state;
    struct triggering first = { 0 };
    world->env->queues.sets_max = 2;
    assert_int_equal(
        trigger_all(world, &first,
                    (struct wish[]){ { .limits = "[\"a\"]" }, { .limits = "[\"b\"]" } }, 2),
        OK);
    assert_int_equal(trigger_with(world, (const char *[]){ "[\"c\"]", NULL }), ERR_RULE);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    triggering_wait(world, &first);
    assert_int_equal(first.status, ERR_STORE);
    triggering_finish(&first);
    assert_int_equal(trigger_with(world, (const char *[]){ "[\"c\"]", "[\"d\"]" }), OK);
}

static void limits_of_delayed_and_waiting_runs_count(void **state)
{
    static const char *const other[2] = { "[\"c\"]" };
    struct world *world = *state;
    world->env->queues.sets_max = 2;
    register_worker(world, "20260101.1", "hello", 3);
    struct triggered waits = trigger(world, (struct wish){ .limits = "[\"a\"]" });
    trigger(world, (struct wish){ .limits = "[\"b\"]", .delay_ms = 60000 });
    assert_int_equal(trigger_with(world, other), ERR_RULE);
    assert_string_equal(dequeue(world), waits.id);
    assert_int_equal(start(world, waits.id), OK);
    wait_for(world, waits.id, 10000);
    assert_int_equal(trigger_with(world, other), ERR_RULE);
    world_restart(world);
    world->env->queues.sets_max = 2;
    assert_int_equal(trigger_with(world, other), ERR_RULE);
    assert_int_equal(cancel(world, waits.id), OK);
    assert_int_equal(trigger_with(world, other), OK);
}

static void preview_branches_share_the_queue_size_of_their_project(void **state)
{
    enum { BRANCHES = 6, FIRST = 10, QUEUE_SIZE = 2 };
    struct world_options options = { .engine.queue_size = QUEUE_SIZE };
    struct world *world = world_create(&options);
    struct environment *own = world->env;
    struct quota project = { 0 }, together = { .outer = &project };
    struct triggered first = { 0 };
    size_t taken = 0;
    (void)state;
    for (uint32_t i = 0; i < BRANCHES; i++) {
        world->env = engine_add_environment(world->engine, FIRST + i, "branch", false);
        world->env->project_unfinished = &together;
        if (!i)
            first = trigger(world, (struct wish){ 0 });
        for (uint32_t k = !i; k < QUEUE_SIZE; k++)
            taken += trigger_status(world, (struct wish){ 0 }) == OK;
    }
    assert_int_equal(taken + 1, 2 * QUEUE_SIZE);
    assert_int_equal(project.used, 2 * QUEUE_SIZE);
    world->env = engine_environment(world->engine, FIRST);
    assert_int_equal(cancel(world, first.id), OK);
    world->env = engine_environment(world->engine, FIRST + BRANCHES - 1);
    trigger(world, (struct wish){ 0 });
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), ERR_RULE);
    world->env = own;
    trigger(world, (struct wish){ 0 });
    world_destroy(world);
}

static void failed_trigger_does_not_count_towards_the_queue_size(void **state)
{
    struct world_options options = { .engine.queue_size = 1 };
    struct world *world = world_create(&options);
    (void)state;
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), ERR_STORE);
    trigger(world, (struct wish){ 0 });
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), ERR_RULE);
    world_destroy(world);
}

static void draining_engine_rejects_triggers(void **state)
{
    struct world *world = *state;
    engine_stop(world->engine);
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), ERR_DRAINING);
}

/* ---- idempotency keys ---- */

static void known_idempotency_key_returns_the_older_run(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ .key = "k" });
    struct triggered retry = trigger(world, (struct wish){ .key = "k" });
    assert_string_equal(retry.id, first.id);
    assert_true(retry.cached);
    struct triggered other = trigger(world, (struct wish){ .key = "k", .task = "other" });
    assert_string_not_equal(other.id, first.id); /* a key belongs to its task */
    assert_int_equal(fake_store_count(world->fake, WORLD_ENV), 2);
}

/* Its bytes must not depend on earlier content of the memory. A stray byte between task and
 * key once made every claim differ. */
static void claim_of_a_key_is_deterministic(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct bytes *dirty = bytes_create(SLICE("\1\2\3\4\5"));
        bytes_unref(dirty);
        struct bytes *key = idempotency_claim_key(SLICE("ab"), SLICE("cd"));
        assert_int_equal(key->len, 5);
        assert_memory_equal(key->data, "ab\0cd", 5);
        bytes_unref(key);
    }
}

static void idempotency_key_survives_eviction_and_restarts(void **state)
{
    struct world_options options = { .engine.memory = 1 };
    struct world *world = world_create(&options);
    (void)state;
    struct triggered first = trigger(world, (struct wish){ .key = "k" });
    cancel(world, first.id);
    world_settle(world);
    assert_null(environment_find(world->env, slice_of(first.id)));
    assert_string_equal(trigger(world, (struct wish){ .key = "k" }).id, first.id);
    world_restart(world);
    assert_string_equal(trigger(world, (struct wish){ .key = "k" }).id, first.id);
    world_destroy(world);
}

static void expired_idempotency_key_is_free(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ .key = "k", .key_ms = 1000 });
    world_pass(world, 1000);
    struct triggered second = trigger(world, (struct wish){ .key = "k" });
    assert_string_not_equal(second.id, first.id);
    assert_string_equal(trigger(world, (struct wish){ .key = "k" }).id, second.id);
}

/* A failed or expired run gives its key to the next run; other runs keep theirs. */
static void failed_run_frees_its_idempotency_key(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ .key = "k", .ttl = "1s" });
    world_pass(world, 1000);
    assert_status(world, first.id, RUN_EXPIRED);
    struct triggered second = trigger(world, (struct wish){ .key = "k" });
    assert_string_not_equal(second.id, first.id);
    assert_false(second.cached);
    assert_int_equal(cancel(world, second.id), OK);
    assert_string_equal(trigger(world, (struct wish){ .key = "k" }).id, second.id);
}

static void concurrent_triggers_with_one_key_make_one_run(void **state)
{
    struct world *world = *state;
    struct wish wish = { .key = "k" };
    struct triggering a = { 0 }, b = { 0 };
    fake_store_set_delay(world->fake, 10, 10);
    assert_int_equal(trigger_all(world, &a, &wish, 1), OK);
    assert_int_equal(trigger_all(world, &b, &wish, 1), OK);
    triggering_wait(world, &a);
    triggering_wait(world, &b);
    assert_string_equal(a.items[0].id, b.items[0].id);
    assert_int_equal(a.items[0].cached + b.items[0].cached, 1);
    assert_int_equal(fake_store_count(world->fake, WORLD_ENV), 1);
    triggering_finish(&a);
    triggering_finish(&b);
}

static void reset_idempotency_key_is_free(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ .key = "k" });
    assert_int_equal(reset_key(world, "hello", "k"), OK);
    assert_null(run_rare(run_now(world, first.id))->idempotency_key);
    assert_int_equal(reset_key(world, "hello", "k"), ERR_NOT_FOUND);
    assert_string_not_equal(trigger(world, (struct wish){ .key = "k" }).id, first.id);
}

/* ---- requests, tokens ---- */

static void a_repeated_request_gets_the_first_answer(void **state)
{
    struct world *world = *state;
    char ids[2][ID_MAX];
    for (int i = 0; i < 2; i++) {
        struct triggering call = { .op.request_key = bytes_create(SLICE("request_1")) };
        assert_int_equal(trigger_all(world, &call, &(struct wish){ 0 }, 1), OK);
        triggering_wait(world, &call);
        assert_int_equal(call.status, OK);
        assert_int_equal(call.op.repeated, i);
        memcpy(ids[i], call.items[0].id, ID_MAX);
        triggering_finish(&call);
    }
    assert_string_equal(ids[0], ids[1]);
    assert_int_equal(fake_store_count(world->fake, WORLD_ENV), 1);
}

static void a_one_time_token_triggers_once(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 2; i++) {
        struct triggering call = { .op.one_time_token = bytes_create(SLICE("hash")),
                                   .op.token_expires_at = INT64_MAX };
        assert_int_equal(trigger_all(world, &call, &(struct wish){ 0 }, 1), OK);
        triggering_wait(world, &call);
        assert_int_equal(call.status, i ? ERR_RULE : OK);
        assert_int_equal(call.op.token_used, i);
        triggering_finish(&call);
    }
    assert_int_equal(fake_store_count(world->fake, WORLD_ENV), 1);
}

/* ---- batches ---- */

static void begin_batch(struct world *world, struct triggering *call, const char *id,
                        const struct wish *wishes, size_t count)
{
    call->batch = (struct document){ .kind = DOC_BATCH,
                                     .name = bytes_create(slice_of(id)),
                                     .body = bytes_create(SLICE("{}")) };
    call->op.batch = &call->batch;
    snprintf(call->op.batch_id, sizeof(call->op.batch_id), "%s", id);
    assert_int_equal(trigger_all(world, call, wishes, count), OK);
    triggering_wait(world, call);
}

static void a_batch_is_one_commit(void **state)
{
    struct world *world = *state;
    struct wish wishes[] = { { .task = "a" }, { .task = "b" }, { .task = "a" } };
    struct triggering call = { 0 };
    int64_t before = metrics[M_TRIGGERS];
    begin_batch(world, &call, "batch_1", wishes, 3);
    assert_int_equal(call.status, OK);
    assert_int_equal(fake_store_count(world->fake, WORLD_ENV), 3);
    assert_int_equal(metrics[M_TRIGGERS] - before, 3);
    assert_int_equal(call.op.seq, 4); /* three runs and the batch */
    assert_int_equal(world->env->applied, 4);
    triggering_finish(&call);
}

/* Requests of other clients are handled between two turns. */
static void runs_of_a_batch_are_applied_over_several_turns(void **state)
{
    struct world *world = *state;
    struct wish wishes[8] = { { 0 } };
    struct triggering call = { 0 };
    call.op.batch = NULL;
    assert_int_equal(trigger_all(world, &call, wishes, 8), OK);
    while (world->env->applied == 0)
        loop_turn(world->loop, 1);
    assert_true(call.done); /* they fit into a turn that has time */
    triggering_finish(&call);

    call = (struct triggering){ 0 };
    loop_set_budget(world->loop, 0);
    assert_int_equal(trigger_all(world, &call, wishes, 8), OK);
    for (uint64_t before = world->env->applied, most = before + 8; !call.done;) {
        loop_turn(world->loop, 1);
        assert_in_range(world->env->applied, before, before + 1);
        assert_true(!call.done || world->env->applied == most);
        before = world->env->applied;
    }
    assert_int_equal(call.op.seq, world->env->applied);
    triggering_finish(&call);
}

/* Some keys are known, some unknown, and one occurs twice in the batch. */
static void keys_in_a_batch_find_older_runs_and_duplicates(void **state)
{
    struct world *world = *state;
    struct triggered old = trigger(world, (struct wish){ .key = "old" });
    struct wish wishes[] = {
        { .key = "new" }, { .key = "old" }, { 0 },
        { .key = "new" }, { .key = "old" }, { .key = "new", .task = "other" }
    };
    struct triggering call = { 0 };
    begin_batch(world, &call, "batch_1", wishes, 6);
    assert_int_equal(call.status, OK);
    const struct trigger *items = call.items;
    assert_string_equal(items[1].id, old.id);
    assert_string_equal(items[4].id, old.id); /* not the id of a run that was not stored */
    assert_string_equal(items[3].id, items[0].id);
    assert_string_not_equal(items[5].id, items[0].id);
    static const bool cached[] = { false, true, false, true, true, false };
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(items[i].cached, cached[i]);
        assert_non_null(run_now(world, items[i].id));
    }
    assert_int_equal(fake_store_count(world->fake, WORLD_ENV), 4);
    triggering_finish(&call);
}

static void batch_of_known_keys_is_still_stored(void **state)
{
    struct world *world = *state;
    trigger(world, (struct wish){ .key = "k" });
    struct triggering call = { 0 };
    begin_batch(world, &call, "batch_1", &(struct wish){ .key = "k" }, 1);
    assert_int_equal(call.status, OK);
    assert_true(call.items[0].cached);
    assert_int_equal(fake_store_count(world->fake, WORLD_ENV), 1);
    assert_int_equal(world->env->applied, 2);
    triggering_finish(&call);
}

static void known_batch_key_returns_the_older_batch(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 2; i++) {
        struct triggering call = { .op.batch_key = bytes_create(SLICE("bk")),
                                   .op.batch_key_expires_at = INT64_MAX };
        begin_batch(world, &call, i ? "batch_2" : "batch_1", &(struct wish){ 0 }, 1);
        assert_int_equal(call.status, OK);
        assert_int_equal(call.op.batch_cached, i);
        assert_string_equal(call.op.batch_id, "batch_1");
        triggering_finish(&call);
    }
    assert_int_equal(fake_store_count(world->fake, WORLD_ENV), 1);
}

/* ---- faults ---- */

/* Each commit of a trigger fails once; each caller is answered, nothing is half stored. */
static void failing_store_never_loses_a_reply(void **state)
{
    (void)state;
    for (int nth = 1;; nth++) {
        struct world *world = world_create(NULL);
        struct wish wishes[] = { { .key = "k" }, { .key = "gone" }, { .key = "new" } };
        struct triggering call = { 0 };
        trigger(world, (struct wish){ .key = "k" });
        trigger(world, (struct wish){ .key = "gone", .ttl = "1s" });
        world_pass(world, 1000);
        *fake_store_fault(world->fake) = (struct fault){ .countdown = nth };
        begin_batch(world, &call, "batch_1", wishes, 3);
        bool tripped = fake_store_fault(world->fake)->tripped;
        assert_int_equal(call.status, tripped ? ERR_STORE : OK);
        assert_int_equal(fake_store_count(world->fake, WORLD_ENV), tripped ? 2 : 4);
        triggering_finish(&call);
        world_destroy(world);
        if (!tripped) {
            assert_int_equal(nth, 3); /* two commits: the first finds the keys taken */
            break;
        }
    }
}

static void full_disk_is_reported_as_such(void **state)
{
    struct world *world = *state;
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    fake_store_fail_with(world->fake, STORE_NO_SPACE);
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), ERR_STORE_FULL);
    assert_int_equal(trigger_status(world, (struct wish){ 0 }), OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_triggered_run_is_stored_and_queued),
        TEST(delayed_run_is_queued_at_its_time),
        TEST(new_runs_follow_loaded_ones_despite_a_slow_clock),
        TEST(earlier_fast_clock_moves_creation_times_by_half_a_minute_at_most),
        TEST(run_expires_after_its_ttl),
        cmocka_unit_test(a_run_in_dev_gets_the_ttl_of_dev_unless_it_wants_none),
        cmocka_unit_test(full_queue_rejects_at_once),
        cmocka_unit_test(triggers_in_flight_count_towards_the_queue_size),
        TEST(items_of_one_batch_need_few_different_sets_of_limits),
        TEST(limits_of_triggers_in_flight_count),
        TEST(limits_of_delayed_and_waiting_runs_count),
        cmocka_unit_test(preview_branches_share_the_queue_size_of_their_project),
        cmocka_unit_test(failed_trigger_does_not_count_towards_the_queue_size),
        TEST(draining_engine_rejects_triggers),
        TEST(known_idempotency_key_returns_the_older_run),
        cmocka_unit_test(claim_of_a_key_is_deterministic),
        cmocka_unit_test(idempotency_key_survives_eviction_and_restarts),
        TEST(expired_idempotency_key_is_free),
        TEST(failed_run_frees_its_idempotency_key),
        TEST(concurrent_triggers_with_one_key_make_one_run),
        TEST(reset_idempotency_key_is_free),
        TEST(a_repeated_request_gets_the_first_answer),
        TEST(a_one_time_token_triggers_once),
        TEST(a_batch_is_one_commit),
        TEST(runs_of_a_batch_are_applied_over_several_turns),
        TEST(keys_in_a_batch_find_older_runs_and_duplicates),
        TEST(batch_of_known_keys_is_still_stored),
        TEST(known_batch_key_returns_the_older_batch),
        cmocka_unit_test(failing_store_never_loses_a_reply),
        TEST(full_disk_is_reported_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
