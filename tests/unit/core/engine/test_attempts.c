/* A worker keeps its run alive with heartbeats and completes it; silence is limited. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "core/model/waitpoint.h"
#include "tests/support/world/calls.h"

static const char thrown[] = "{\"type\":\"BUILT_IN_ERROR\",\"name\":\"Error\","
                             "\"message\":\"no\",\"stackTrace\":\"\"}";

static struct world *make(const struct world_options *options)
{
    struct world *world = world_create(options);
    register_worker(world, "20260101.1", "hello,other", 3);
    return world;
}

static int create_world(void **state)
{
    *state = make(NULL);
    return 0;
}

static int create_prod_world(void **state)
{
    *state = make(&(struct world_options){ .is_prod = true });
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* ---- start, heartbeat ---- */

static void on_answered(struct command *command, enum err status)
{
    (void)command;
    assert_int_equal(status, OK);
}

static void older_snapshot_is_rejected(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    char old[64];
    assert_string_equal(dequeue(world), got.id);
    run_snapshot_id(run_now(world, got.id), old);
    assert_int_equal(start(world, got.id), OK);
    assert_false(
        attempt_heartbeat(world->engine, world->env, slice_of(got.id), slice_of(old)));
    assert_true(beat(world, got.id));
    assert_int_equal(start(world, got.id), ERR_INVALID);
    assert_int_equal(run_now(world, got.id)->attempt, 1);
}

static void unstarted_lease_returns_to_the_queue_after_a_pause(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_string_equal(dequeue(world), got.id);
    world_pass(world, 60000);
    assert_status(world, got.id, RUN_QUEUED);
    assert_int_equal(run_now(world, got.id)->dequeue_failures, 1);
    assert_string_equal(dequeue(world), "");
    world_pass(world, 2000);
    assert_string_equal(dequeue(world), got.id);
    assert_int_equal(start(world, got.id), OK);
    assert_int_equal(run_now(world, got.id)->dequeue_failures, 0);
}

static void run_that_is_never_started_fails(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    for (int i = 0; i < 12; i++) {
        assert_string_equal(dequeue(world), got.id);
        world_pass(world, 60000);
        world_pass(world, 3600 * 1000); /* the longest pause */
    }
    assert_status(world, got.id, RUN_SYSTEM_FAILURE);
    assert_non_null(
        strstr(run_now(world, got.id)->error->data, "TASK_RUN_DEQUEUED_MAX_RETRIES"));
}

static void heartbeats_keep_a_run_alive(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    for (int i = 0; i < 10; i++) {
        world_pass(world, 290000);
        assert_true(beat(world, got.id));
    }
    assert_status(world, got.id, RUN_EXECUTING);
    uint32_t version = run_now(world, got.id)->version;
    assert_int_equal(version, 3); /* a heartbeat is not stored */
    world_pass(world, 300000);
    assert_status(world, got.id, RUN_INTERRUPTED);
}

static void a_silent_run_in_dev_is_interrupted(void **state)
{
    static const bool waiting[] = { false, true };
    struct world *world = *state;
    for (size_t i = 0; i < 2; i++) {
        struct triggered got = trigger(world, (struct wish){ 0 });
        execute(world, got.id);
        if (waiting[i])
            assert_int_equal(wait_for(world, got.id, 3600 * 1000), OK);
        world_pass(world, 300000);
        assert_status(world, got.id, RUN_INTERRUPTED);
        const struct run *run = run_now(world, got.id);
        assert_non_null(strstr(run->error->data,
                               waiting[i] ? "WITH_WAITPOINTS" : "STALLED_EXECUTING\""));
    }
    assert_int_equal(world->env->queues.running, 0);
}

static void silent_run_outside_dev_is_retried_and_then_fails(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    for (int attempt = 1; attempt <= 3; attempt++) {
        execute(world, got.id);
        world_pass(world, 300000);
        world_pass(world, 1000);
        assert_status(world, got.id, attempt < 3 ? RUN_RETRYING : RUN_FAILED);
    }
}

/* Both come in one turn, the completion first; its retry starts a new time limit. */
static void completion_at_the_deadline_counts(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    char snapshot[64];
    execute(world, got.id);
    run_snapshot_id(run_now(world, got.id), snapshot);
    struct complete_attempt op = { .snapshot = slice_of(snapshot),
                                   .error = slice_of(thrown),
                                   .has_retry = true,
                                   .retry_delay_ms = 1000 };
    world_pass(world, 299990);
    while (environment_find(world->env, slice_of(got.id))->alive_until >
           loop_now_ms(world->loop) + 1)
        loop_turn(world->loop, 1);
    attempt_complete(world->engine, world->env, slice_of(got.id), &op, on_answered);
    loop_turn(world->loop, 1);
    world_settle(world);
    assert_status(world, got.id, RUN_RETRYING);
}

/* ---- complete ---- */

static void completed_run_has_its_output_and_frees_its_slot(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    assert_int_equal(world->env->queues.running, 1);
    assert_int_equal(succeed(world, got.id, "{\"ok\":true}"), OK);
    const struct run *run = run_now(world, got.id);
    assert_status(world, got.id, RUN_COMPLETED);
    assert_string_equal(run->output->data, "{\"ok\":true}");
    assert_int_equal(run->usage_ms, 10);
    assert_int_equal(run->finished_at, loop_wall_ms(world->loop));
    assert_int_equal(world->env->queues.running, 0);
    assert_int_equal(succeed(world, got.id, "2"), ERR_INVALID);
}

static void output_type_is_stored_only_if_not_json(void **state)
{
    static const struct {
        struct slice type;
        const char *kept;
    } cases[] = { { SLICE(""), NULL },
                  { SLICE("application/json"), NULL },
                  { SLICE("application/super+json"), "application/super+json" } };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct triggered got = trigger(world, (struct wish){ .ttl = "1h" });
        char snapshot[64];
        execute(world, got.id);
        run_snapshot_id(run_now(world, got.id), snapshot);
        struct complete_attempt op = { .snapshot = slice_of(snapshot),
                                       .ok = true,
                                       .output = bytes_create(SLICE("1")),
                                       .output_type = cases[i].type };
        attempt_complete(world->engine, world->env, slice_of(got.id), &op, on_answered);
        world_settle(world);
        bytes_unref(op.output);
        const struct bytes *type = run_rare(run_now(world, got.id))->output_type;
        assert_int_equal(type != NULL, cases[i].kept != NULL);
        if (type)
            assert_string_equal(type->data, cases[i].kept);
    }
}

static void early_retry_stays_with_the_worker(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    assert_int_equal(break_down(world, got.id, thrown, 1000), OK);
    assert_status(world, got.id, RUN_RETRYING);
    assert_null(run_now(world, got.id)->error);
    assert_int_equal(world->env->queues.running, 1);
    assert_int_equal(start(world, got.id), OK);
    assert_int_equal(run_now(world, got.id)->attempt, 2);
}

static void later_retry_is_queued_when_it_is_due(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    assert_int_equal(break_down(world, got.id, thrown, 40000), OK);
    assert_status(world, got.id, RUN_RETRYING);
    assert_int_equal(world->env->queues.running, 0);
    assert_string_equal(dequeue(world), "");
    world_pass(world, 40000);
    execute(world, got.id);
    assert_int_equal(run_now(world, got.id)->attempt, 2);
}

static void the_last_attempt_fails_the_run(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .max_attempts = 2 });
    execute(world, got.id);
    assert_int_equal(break_down(world, got.id, thrown, 100), OK);
    assert_int_equal(start(world, got.id), OK);
    assert_int_equal(break_down(world, got.id, thrown, 100), OK);
    assert_status(world, got.id, RUN_FAILED);
    assert_string_equal(run_now(world, got.id)->error->data, thrown);
}

static void error_decides_the_final_status(void **state)
{
    static const struct {
        const char *error;
        enum run_status status;
    } cases[] = {
        { "{\"type\":\"STRING_ERROR\",\"raw\":\"x\"}", RUN_FAILED },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_PROCESS_OOM_KILLED\"}",
          RUN_CRASHED },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"MAX_DURATION_EXCEEDED\"}",
          RUN_TIMED_OUT },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"CONFIGURED_INCORRECTLY\"}",
          RUN_SYSTEM_FAILURE },
    };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct triggered got = trigger(world, (struct wish){ 0 });
        execute(world, got.id);
        assert_int_equal(break_down(world, got.id, cases[i].error, -1), OK);
        assert_status(world, got.id, cases[i].status);
    }
}

/* Either the process was killed or the task reported it. The worker's own wish to retry
 * does not count. */
static void out_of_memory_is_retried_on_the_larger_machine(void **state)
{
    static const struct {
        const char *error;
        enum machine bigger;
        enum run_status status;
    } cases[] = {
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_PROCESS_OOM_KILLED\"}",
          MACHINE_LARGE_1X, RUN_CRASHED },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_PROCESS_MAYBE_OOM_KILLED\"}",
          MACHINE_LARGE_1X, RUN_CRASHED },
        { "{\"type\":\"BUILT_IN_ERROR\",\"message\":\"MANUAL_OOM_KILL_ERROR\"}",
          MACHINE_LARGE_1X, RUN_FAILED },
        { "{\"type\":\"INTERNAL_ERROR\",\"code\":\"TASK_PROCESS_OOM_KILLED\"}",
          MACHINE_MICRO /* no larger machine is set */, RUN_CRASHED },
    };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct triggered got = trigger(world, (struct wish){ 0 });
        world->env->fleet->workers->all[0]->tasks[0].big_machine = (uint8_t)cases[i].bigger;
        execute(world, got.id);
        if (cases[i].bigger) {
            assert_int_equal(break_down(world, got.id, cases[i].error, 100), OK);
            assert_status(world, got.id, RUN_RETRYING);
            assert_int_equal(run_now(world, got.id)->execution, EXECUTION_QUEUED);
            world_pass(world, 1000);
            execute(world, got.id);
            assert_int_equal(run_now(world, got.id)->machine, cases[i].bigger);
        }
        assert_int_equal(break_down(world, got.id, cases[i].error, 100), OK);
        assert_status(world, got.id, cases[i].status);
    }
}

/* A failure that the worker could not judge is retried by the settings of the task. */
static void dead_process_is_retried_by_the_settings_of_the_task(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    const char *died = "{\"type\":\"INTERNAL_ERROR\","
                       "\"code\":\"TASK_PROCESS_EXITED_WITH_NON_ZERO_CODE\"}";
    execute(world, got.id);
    assert_int_equal(break_down(world, got.id, died, -1), OK);
    assert_status(world, got.id, RUN_RETRYING);
    int64_t due = run_now(world, got.id)->due_at - loop_wall_ms(world->loop);
    assert_int_equal(due, 1000);
    world_pass(world, 1000);
    execute(world, got.id);
    assert_int_equal(break_down(world, got.id, died, -1), OK);
    due = run_now(world, got.id)->due_at - loop_wall_ms(world->loop);
    assert_int_equal(due, 2000);
}

static void repeated_completion_gets_the_same_answer(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    char snapshot[64];
    execute(world, got.id);
    run_snapshot_id(run_now(world, got.id), snapshot);
    for (int i = 0; i < 2; i++) {
        struct complete_attempt op = { .snapshot = slice_of(snapshot),
                                       .request_id = SLICE("request_1"),
                                       .ok = true,
                                       .result = ATTEMPT_PENDING_CANCEL };
        attempt_complete(world->engine, world->env, slice_of(got.id), &op, on_answered);
        world_settle(world);
        assert_int_equal(op.result, ATTEMPT_RUN_FINISHED);
        assert_int_equal(run_now(world, got.id)->version, 4);
    }
}

static void canceled_run_ends_when_its_worker_confirms(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    assert_int_equal(cancel(world, got.id), OK);
    assert_int_equal(world->env->queues.running, 0);
    assert_int_equal(start(world, got.id), ERR_INVALID);
    assert_int_equal(succeed(world, got.id, "1"), OK);
    assert_status(world, got.id, RUN_CANCELED);
    assert_true(run_is_settled(run_now(world, got.id)));
    assert_null(run_now(world, got.id)->output);
}

/* ---- waits, sessions ---- */

static void timed_wait_holds_no_slot_and_ends_at_its_time(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    assert_int_equal(wait_for(world, got.id, 10000), OK);
    assert_status(world, got.id, RUN_WAITING);
    assert_int_equal(world->env->queues.running, 0);
    world_pass(world, 9999);
    assert_status(world, got.id, RUN_WAITING);
    world_pass(world, 1);
    const struct run *run = run_now(world, got.id);
    assert_status(world, got.id, RUN_EXECUTING);
    assert_int_equal(world->env->queues.running, 1);
    struct scan_members waits = wait_list_of(run);
    struct wait wait;
    assert_true(wait_list_next(&waits, &wait));
    assert_int_equal(wait.completed_at, wait.until);
    assert_false(wait_list_next(&waits, &wait));
    assert_int_equal(succeed(world, got.id, "1"), OK);
}

/* Counts the completed waits of the run. */
static size_t count_completed(const struct run *run)
{
    struct scan_members waits = wait_list_of(run);
    struct wait wait;
    size_t count = 0;
    while (wait_list_next(&waits, &wait))
        count += wait.completed_at > 0;
    return count;
}

static void run_that_waits_for_others_resumes_after_the_last_one(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    execute(world, parent.id);
    struct triggered one = trigger(world, (struct wish){ .parent = parent.id });
    struct triggered two = trigger(world, (struct wish){ .parent = parent.id });
    const struct wait both[] = { { .type = WAIT_RUN, .id = slice_of(one.id) },
                                 { .type = WAIT_RUN, .id = slice_of(two.id) } };
    assert_int_equal(block_by(world, parent.id, both, 2), OK);
    assert_status(world, parent.id, RUN_WAITING);
    uint32_t snapshot = run_now(world, parent.id)->snapshot;

    assert_int_equal(block_by(world, parent.id, both, 1), OK); /* a repeated call */
    assert_int_equal(cancel(world, one.id), OK);
    world_settle(world);
    assert_status(world, parent.id, RUN_WAITING);
    assert_int_equal(run_now(world, parent.id)->snapshot, snapshot);
    execute(world, two.id);
    assert_int_equal(succeed(world, two.id, "1"), OK);
    world_settle(world);
    assert_status(world, parent.id, RUN_EXECUTING);
    assert_int_equal(run_now(world, parent.id)->snapshot, snapshot + 1);
    assert_int_equal(count_completed(run_now(world, parent.id)), 2);
}

static void run_that_waits_for_an_ended_run_resumes_at_once(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    execute(world, parent.id);
    struct triggered child = trigger(world, (struct wish){ 0 });
    execute(world, child.id);
    assert_int_equal(succeed(world, child.id, "1"), OK);
    for (int i = 0; i < 2; i++) { /* it may be waited for twice */
        assert_int_equal(wait_for_run(world, parent.id, child.id), OK);
        world_settle(world);
        assert_status(world, parent.id, RUN_EXECUTING);
        assert_int_equal(count_completed(run_now(world, parent.id)), 1);
    }
    assert_int_equal(wait_for_run(world, parent.id, "run_unknown"), OK);
    world_settle(world);
    assert_status(world, parent.id, RUN_EXECUTING);
}

static void waits_of_a_run_survive_a_restart(void **state)
{
    struct world *world = *state;
    struct triggered parent = trigger(world, (struct wish){ 0 });
    execute(world, parent.id);
    struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
    assert_int_equal(wait_for_run(world, parent.id, child.id), OK);
    world_restart(world);
    register_worker(world, "20260101.1", "hello,other", 3);
    world_settle(world);
    assert_status(world, parent.id, RUN_WAITING);
    assert_int_equal(cancel(world, child.id), OK);
    world_settle(world);
    assert_status(world, parent.id, RUN_EXECUTING);
}

static void a_crash_between_the_end_of_a_run_and_its_waiter_loses_nothing(void **state)
{
    struct world *world = *state;
    struct cancel op = { 0 };
    struct triggered parent = trigger(world, (struct wish){ 0 });
    execute(world, parent.id);
    struct triggered child = trigger(world, (struct wish){ .parent = parent.id });
    assert_int_equal(wait_for_run(world, parent.id, child.id), OK);
    run_cancel(world->engine, world->env, slice_of(child.id), &op, on_answered);
    loop_turn(world->loop, 0);
    world_restart(world);
    register_worker(world, "20260101.1", "hello,other", 3);
    world_settle(world);
    assert_status(world, child.id, RUN_CANCELED);
    assert_status(world, parent.id, RUN_EXECUTING);
    assert_int_equal(count_completed(run_now(world, parent.id)), 1);
}

static void completed_token_resumes_its_waiters(void **state)
{
    struct world *world = *state;
    struct waitpoint token = { .id = "waitpoint_a", .created_at = 1 };
    const struct wait wait = { .type = WAIT_TOKEN, .id = SLICE("waitpoint_a") };
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    write_token(world, &token);
    assert_int_equal(block_by(world, got.id, &wait, 1), OK);
    world_settle(world);
    assert_status(world, got.id, RUN_WAITING);
    world_restart(world);
    register_worker(world, "20260101.1", "hello,other", 3);
    world_settle(world);
    assert_status(world, got.id, RUN_WAITING);

    token.version = 1;
    token.completed_at = 2;
    write_token(world, &token);
    waits_end(world->engine, world->env, wait.id);
    world_settle(world);
    assert_status(world, got.id, RUN_EXECUTING);
    assert_int_equal(block_by(world, got.id, &wait, 1), OK); /* it was complete already */
    world_pass(world, 1);
    assert_status(world, got.id, RUN_EXECUTING);
}

static void token_without_completion_times_out(void **state)
{
    struct world *world = *state;
    struct waitpoint token = { .id = "waitpoint_a", .created_at = 1 };
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    token.until = loop_wall_ms(world->loop) + 5000;
    write_token(world, &token);
    const struct wait wait = { .type = WAIT_TOKEN,
                               .id = SLICE("waitpoint_a"),
                               .until = token.until };
    assert_int_equal(block_by(world, got.id, &wait, 1), OK);
    world_pass(world, 4999);
    assert_status(world, got.id, RUN_WAITING);
    world_pass(world, 1);
    assert_status(world, got.id, RUN_EXECUTING);
    assert_int_equal(count_completed(run_now(world, got.id)), 1);
}

static void only_an_executing_run_can_wait(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_int_equal(wait_for(world, got.id, 1000), ERR_INVALID);
}

static void end_of_a_session_interrupts_its_runs(void **state)
{
    struct world *world = *state;
    struct triggered queued = trigger(world, (struct wish){ .task = "other" });
    struct triggered held = trigger(world, (struct wish){ 0 });
    (void)queued;
    const char *first = dequeue(world);
    char own[ID_MAX];
    snprintf(own, sizeof(own), "%s", first);
    const char *other = strcmp(own, held.id) ? held.id : queued.id;
    assert_int_equal(interrupt(world, own), OK);
    assert_int_equal(interrupt(world, other), OK);
    assert_status(world, own, RUN_INTERRUPTED);
    assert_status(world, other, RUN_QUEUED);
}

/* ---- restarts ---- */

/* Every deadline is restored from the store. */
static void deadlines_survive_a_restart(void **state)
{
    struct world *world = *state;
    struct triggered delayed = trigger(world, (struct wish){ .delay_ms = 10000 });
    struct triggered waiting = trigger(world, (struct wish){ 0 });
    execute(world, waiting.id);
    assert_int_equal(wait_for(world, waiting.id, 20000), OK);
    struct triggered leased = trigger(world, (struct wish){ 0 });
    assert_string_equal(dequeue(world), leased.id);
    struct triggered expiring = trigger(world, (struct wish){ .ttl = "30s" });
    world_restart(world);
    assert_int_equal(world->env->queues.running, 1); /* not the run that waits */
    assert_int_equal(world->env->queues.waiting, 1);
    world_pass(world, 10000);
    assert_status(world, delayed.id, RUN_QUEUED);
    world_pass(world, 10000);
    assert_status(world, waiting.id, RUN_EXECUTING);
    world_pass(world, 10000);
    assert_status(world, expiring.id, RUN_EXPIRED);
    world_pass(world, 30000);
    assert_status(world, leased.id, RUN_QUEUED);
    world_pass(world, 300000);
    assert_status(world, waiting.id, RUN_INTERRUPTED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)
#define PROD(name) cmocka_unit_test_setup_teardown(name, create_prod_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(older_snapshot_is_rejected),
        TEST(unstarted_lease_returns_to_the_queue_after_a_pause),
        TEST(run_that_is_never_started_fails),
        TEST(heartbeats_keep_a_run_alive),
        TEST(a_silent_run_in_dev_is_interrupted),
        PROD(silent_run_outside_dev_is_retried_and_then_fails),
        TEST(completion_at_the_deadline_counts),
        TEST(completed_run_has_its_output_and_frees_its_slot),
        TEST(output_type_is_stored_only_if_not_json),
        TEST(early_retry_stays_with_the_worker),
        TEST(later_retry_is_queued_when_it_is_due),
        TEST(the_last_attempt_fails_the_run),
        TEST(error_decides_the_final_status),
        TEST(out_of_memory_is_retried_on_the_larger_machine),
        TEST(dead_process_is_retried_by_the_settings_of_the_task),
        TEST(repeated_completion_gets_the_same_answer),
        TEST(canceled_run_ends_when_its_worker_confirms),
        TEST(timed_wait_holds_no_slot_and_ends_at_its_time),
        TEST(run_that_waits_for_others_resumes_after_the_last_one),
        TEST(run_that_waits_for_an_ended_run_resumes_at_once),
        TEST(waits_of_a_run_survive_a_restart),
        TEST(a_crash_between_the_end_of_a_run_and_its_waiter_loses_nothing),
        TEST(completed_token_resumes_its_waiters),
        TEST(token_without_completion_times_out),
        TEST(only_an_executing_run_can_wait),
        TEST(end_of_a_session_interrupts_its_runs),
        TEST(deadlines_survive_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
