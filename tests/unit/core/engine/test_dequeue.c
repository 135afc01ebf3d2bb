/* Workers request runs and get them in order, at once or when one arrives. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "core/engine/calls.h"
#include "core/fleet/leases.h"
#include "tests/support/world/calls.h"

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

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static void a_dequeued_run_is_leased_and_pinned_to_its_version(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .ttl = "1h" });
    assert_string_equal(dequeue(world), got.id);
    const struct run *run = run_now(world, got.id);
    assert_status(world, got.id, RUN_DEQUEUED);
    assert_string_equal(run->worker_version->data, "20260101.1");
    assert_int_equal(run->max_attempts, 3);
    assert_int_equal(run->started_at, loop_wall_ms(world->loop));
    assert_true(run->due_at > loop_wall_ms(world->loop)); /* its lease, not its ttl */
    assert_string_equal(dequeue(world), "");
}

static void runs_are_dequeued_in_the_order_of_their_queues(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ 0 });
    world_pass(world, 10);
    struct triggered second = trigger(world, (struct wish){ .task = "other" });
    world_pass(world, 10);
    struct triggered third = trigger(world, (struct wish){ 0 });
    assert_string_equal(dequeue(world), first.id);
    assert_string_equal(dequeue(world), second.id);
    assert_string_equal(dequeue(world), third.id);
}

static void concurrency_limit_holds_back_runs(void **state)
{
    struct world *world = make(&(struct world_options){ .engine.concurrency = 1 });
    (void)state;
    struct triggered first = trigger(world, (struct wish){ 0 });
    struct triggered second = trigger(world, (struct wish){ 0 });
    const char *got = dequeue(world);
    char own[ID_MAX];
    snprintf(own, sizeof(own), "%s", got);
    assert_true(!strcmp(own, first.id) || !strcmp(own, second.id));
    assert_string_equal(dequeue(world), "");
    assert_int_equal(start(world, own), OK);
    assert_string_equal(dequeue(world), "");
    assert_int_equal(succeed(world, own, "1"), OK);
    assert_string_not_equal(dequeue(world), "");
    world_destroy(world);
}

/* A waiting worker gets the run in the turn in which it arrives. */
struct waiter {
    struct dequeue dequeue; /* must be first */
    enum err status;
    bool done;
};

static void on_dequeued(struct dequeue *dequeue, enum err status)
{
    struct waiter *waiter = container_of(dequeue, struct waiter, dequeue);
    assert_false(waiter->done);
    waiter->status = status;
    waiter->done = true;
}

static void wait_for_work(struct world *world, struct waiter *waiter, int64_t ms)
{
    waiter->done = false;
    assert_int_equal(dequeue_begin(world->engine, &world->env, 1, &any_run,
                                   &waiter->dequeue, ms, on_dequeued),
                     OK);
}

static void waiting_worker_gets_a_new_run(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    wait_for_work(world, &waiter, 10000);
    world_pass(world, 5000);
    assert_false(waiter.done);
    struct triggered got = trigger(world, (struct wish){ 0 });
    world_settle(world);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, OK);
    assert_string_equal(waiter.dequeue.command.run_id, got.id);
}

static void waiting_worker_times_out_without_a_run(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    wait_for_work(world, &waiter, 10000);
    world_pass(world, 9999);
    assert_false(waiter.done);
    world_pass(world, 1);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, ERR_NOT_FOUND);
}

static void on_failed(struct command *command, enum err status)
{
    (void)command;
    assert_int_equal(status, ERR_STORE);
}

/* The run comes back into its queue, and the next turn matches it with the first waiter. In
 * that same turn the first waiter's time expires. */
static void waiting_worker_gets_a_run_at_its_timeout(void **state)
{
    struct world *world = *state;
    struct waiter first, second;
    struct slice tag = SLICE("x");
    struct add_tags op = { .tags = &tag, .count = 1 };
    struct triggered got = trigger(world, (struct wish){ 0 });
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    fake_store_set_delay(world->fake, 99, 0);
    run_add_tags(world->engine, world->env, slice_of(got.id), &op, on_failed);
    loop_turn(world->loop, 0); /* the run has a commit in flight: no worker gets it */
    wait_for_work(world, &first, 100);
    wait_for_work(world, &second, 10000);
    loop_turn(world->loop, 50);
    loop_turn(world->loop, 49); /* back in its queue */
    assert_false(first.done);
    fake_store_set_delay(world->fake, 0, 0);
    world_pass(world, 1);
    assert_true(first.done);
    assert_int_equal(first.status, OK);
    assert_string_equal(first.dequeue.command.run_id, got.id);
    assert_false(second.done);
    dequeue_cancel(&second.dequeue);
    world_pass(world, 1);
    assert_true(second.done);
}

static void on_canceled(struct command *command, enum err status)
{
    (void)command;
    assert_int_equal(status, OK);
}

/* Reports bytes that another environment of the project has in the store, not in memory. */
static void store_elsewhere(struct world *world, int64_t bytes)
{
    world->store->on_stored(world->store->stored_owner, WORLD_ENV + 1, bytes);
    world_settle(world);
}

static void project_over_its_storage_quota_starts_no_runs(void **state)
{
    static const char thrown[] = "{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}";
    struct world *world = *state;
    struct quota project = { .limit = 1 << 20 };
    struct waiter waiter;
    engine_join_stored(world->engine, WORLD_ENV, &project);
    engine_join_stored(world->engine, WORLD_ENV + 1, &project);
    struct triggered executing = trigger(world, (struct wish){ 0 });
    struct triggered leased = trigger(world, (struct wish){ 0 });
    struct triggered queued = trigger(world, (struct wish){ 0 });
    execute(world, executing.id);
    assert_string_equal(dequeue(world), leased.id);
    store_elsewhere(world, 1 << 20);
    assert_string_equal(dequeue(world), "");

    wait_for_work(world, &waiter, 60000);
    assert_int_equal(start(world, leased.id), OK);
    assert_int_equal(succeed(world, leased.id, "1"), OK);
    assert_int_equal(break_down(world, executing.id, thrown, 1000), OK);
    assert_int_equal(start(world, executing.id), OK);
    assert_int_equal(break_down(world, executing.id, thrown, 40000), OK);
    world_pass(world, 45000); /* the retry is due */
    assert_status(world, executing.id, RUN_RETRYING);
    store_elsewhere(world, -(1 << 10)); /* still above the limit */
    assert_false(waiter.done);
    store_elsewhere(world, -(1 << 20) + (1 << 10));
    assert_true(waiter.done);
    assert_int_equal(waiter.status, OK);
    assert_string_equal(waiter.dequeue.command.run_id, executing.id); /* the older run */
    assert_string_equal(dequeue(world), queued.id);
}

/* The time expires while the run that it was given is being canceled. */
static void worker_whose_run_is_canceled_still_times_out(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    struct cancel op = { 0 };
    struct triggered got = trigger(world, (struct wish){ 0 });
    fake_store_set_delay(world->fake, 40, 0);
    wait_for_work(world, &waiter, 20);
    loop_turn(world->loop, 0); /* the lease is not decided yet */
    run_cancel(world->engine, world->env, slice_of(got.id), &op, on_canceled);
    for (int i = 0; i < 200 && !waiter.done; i++)
        loop_turn(world->loop, 1);
    assert_true(waiter.done);
    world_pass(world, 100);
}

/* The same, but the cancel came first. */
static void worker_that_follows_a_cancel_still_times_out(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    struct cancel op = { 0 };
    struct triggered got = trigger(world, (struct wish){ 0 });
    fake_store_set_delay(world->fake, 40, 0);
    wait_for_work(world, &waiter, 20);
    run_cancel(world->engine, world->env, slice_of(got.id), &op, on_canceled);
    for (int i = 0; i < 200 && !waiter.done; i++)
        loop_turn(world->loop, 1);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, ERR_NOT_FOUND);
    assert_status(world, got.id, RUN_CANCELED);
}

static void run_of_a_disconnected_worker_returns_to_the_queue(void **state)
{
    struct world *world = *state;
    struct waiter gone, next;
    struct triggered got = trigger(world, (struct wish){ 0 });
    fake_store_set_delay(world->fake, 10, 10);
    wait_for_work(world, &gone, 10000);
    world_settle(world);
    assert_true(gone.dequeue.holding);
    dequeue_cancel(&gone.dequeue);
    wait_for_work(world, &next, 10000);
    for (int i = 0; i < 10; i++)
        world_pass(world, 10);
    assert_true(gone.done);
    assert_int_equal(gone.status, ERR_CANCELED);
    assert_true(next.done);
    assert_string_equal(next.dequeue.command.run_id, got.id);
}

static void canceled_dequeue_is_answered_once(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    wait_for_work(world, &waiter, 10);
    dequeue_cancel(&waiter.dequeue);
    assert_false(waiter.done); /* not called from within dequeue_cancel */
    world_pass(world, 10);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, ERR_CANCELED);
}

static void run_of_an_unknown_task_waits_for_its_version(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .task = "later", .ttl = "1h" });
    assert_string_equal(dequeue(world), "");
    assert_status(world, got.id, RUN_PENDING_VERSION);
    register_worker(world, "20260101.2", "later", 3);
    world_settle(world);
    assert_status(world, got.id, RUN_QUEUED);
    assert_string_equal(dequeue(world), got.id);
    assert_string_equal(run_now(world, got.id)->worker_version->data, "20260101.2");
}

static void run_that_waits_for_a_version_still_expires(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ .task = "later", .ttl = "1m" });
    assert_string_equal(dequeue(world), "");
    world_pass(world, 60000);
    assert_status(world, got.id, RUN_EXPIRED);
}

/* Returns the id of the run that this request gets at once, or "". */
static const char *ask(struct world *world, const char *request)
{
    static struct waiter waiter;
    wait_for_work(world, &waiter, 10000);
    dequeue_name_request(&waiter.dequeue, slice_of(request));
    world_settle(world);
    if (!waiter.done)
        dequeue_cancel(&waiter.dequeue);
    world_settle(world);
    assert_true(waiter.done);
    return waiter.status ? "" : waiter.dequeue.command.run_id;
}

static void repeated_request_gets_the_same_run(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ 0 });
    world_pass(world, 10);
    struct triggered second = trigger(world, (struct wish){ 0 });
    assert_string_equal(ask(world, "a"), first.id);
    unsigned snapshot = run_now(world, first.id)->snapshot;
    assert_string_equal(ask(world, "a"), first.id);
    assert_int_equal(run_now(world, first.id)->snapshot, snapshot);
    assert_string_equal(ask(world, "b"), second.id);
    world_restart(world);
    register_worker(world, "20260101.1", "hello,other", 3);
    world_settle(world);
    assert_string_equal(ask(world, "a"), first.id);
    assert_string_equal(ask(world, "b"), second.id);
    assert_string_equal(ask(world, "c"), "");
}

/* However much another environment leases meanwhile. */
static void repeated_request_gets_its_run_despite_many_other_leases(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    struct environment *other =
        engine_add_environment(world->engine, WORLD_ENV + 1, "env_other", true);
    struct tracked leased = { .env = other,
                              .run = { .execution = EXECUTION_PENDING_EXECUTING,
                                       .worker_request = bytes_create(SLICE("b")) } };
    assert_string_equal(ask(world, "a"), got.id);
    for (int i = 0; i < 10000; i++)
        leases_note(&leased);
    assert_string_equal(ask(world, "a"), got.id);
    bytes_unref(leased.run.worker_request);
}

static void repeated_request_does_not_get_a_started_run(void **state)
{
    struct world *world = *state;
    struct triggered first = trigger(world, (struct wish){ 0 });
    world_pass(world, 10);
    struct triggered second = trigger(world, (struct wish){ 0 });
    assert_string_equal(ask(world, "a"), first.id);
    assert_int_equal(start(world, first.id), OK);
    assert_string_equal(ask(world, "a"), second.id);
}

static void repeated_request_does_not_get_a_returned_run(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    assert_string_equal(ask(world, "a"), got.id);
    world_pass(world, 60 * 1000);
    assert_status(world, got.id, RUN_QUEUED);
    assert_string_equal(ask(world, "a"), ""); /* the run pauses */
}

/* The keys of a limit are visited in several turns, without any other event. */
static void waiting_worker_gets_a_run_when_all_keys_of_a_limit_were_visited(void **state)
{
    static const char *const keys[] = { "a", "b", "c", "d" };
    struct world *world = *state;
    struct queues *queues = &world->env->queues;
    struct waiter waiter;
    queues->visits_max = 1;
    limits_register(queues, SLICE("l"));
    limits_change(queues, SLICE("l"), 0, UINT32_MAX);
    for (int i = 0; i < 4; i++)
        trigger(world, (struct wish){ .concurrency_key = keys[i], .limits = "[\"l\"]" });
    wait_for_work(world, &waiter, 10000);
    world_settle(world);
    limits_change(queues, SLICE("l"), 1, UINT32_MAX);
    engine_match(world->engine, world->env);
    loop_set_budget(world->loop, 0);
    loop_turn(world->loop, 0);
    assert_true(queues_are_stale(queues));
    world_settle(world);
    loop_set_budget(world->loop, 1000);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, OK);
}

/* A run has its slot from the turn that leases it. Its commit begins in the next turn, and a
 * sweep may come in between. */
static void sweep_leaves_the_slot_of_a_run_that_is_being_leased(void **state)
{
    struct world *world = make(&(struct world_options){ .engine.concurrency = 1 });
    struct waiter waiters[2];
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        trigger(world, (struct wish){ 0 });
    for (unsigned i = 0; i < 2; i++)
        wait_for_work(world, &waiters[i], 10);
    engine_sweep_environment(world->engine, world->env);
    world_settle(world);
    world_pass(world, 10);
    assert_true(waiters[0].done && waiters[1].done);
    assert_int_equal(waiters[0].status, OK);
    assert_int_equal(waiters[1].status, ERR_NOT_FOUND);
    world_destroy(world);
}

static void draining_engine_leases_no_runs(void **state)
{
    struct world *world = *state;
    struct dequeue op;
    engine_drain(world->engine);
    assert_int_equal(dequeue_begin(world->engine, &world->env, 1, &any_run, &op, 5, NULL),
                     ERR_DRAINING);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_dequeued_run_is_leased_and_pinned_to_its_version),
        TEST(runs_are_dequeued_in_the_order_of_their_queues),
        cmocka_unit_test(concurrency_limit_holds_back_runs),
        TEST(waiting_worker_gets_a_new_run),
        TEST(waiting_worker_times_out_without_a_run),
        TEST(waiting_worker_gets_a_run_at_its_timeout),
        TEST(project_over_its_storage_quota_starts_no_runs),
        TEST(worker_whose_run_is_canceled_still_times_out),
        TEST(worker_that_follows_a_cancel_still_times_out),
        TEST(run_of_a_disconnected_worker_returns_to_the_queue),
        TEST(canceled_dequeue_is_answered_once),
        TEST(run_of_an_unknown_task_waits_for_its_version),
        TEST(run_that_waits_for_a_version_still_expires),
        TEST(repeated_request_gets_the_same_run),
        TEST(repeated_request_gets_its_run_despite_many_other_leases),
        TEST(repeated_request_does_not_get_a_started_run),
        TEST(repeated_request_does_not_get_a_returned_run),
        TEST(waiting_worker_gets_a_run_when_all_keys_of_a_limit_were_visited),
        cmocka_unit_test(sweep_leaves_the_slot_of_a_run_that_is_being_leased),
        TEST(draining_engine_leases_no_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
