/* The cost of many waits of one run, and their limit; the slot that a run needs to resume. */
#include "tests/support/world/unit.h"

#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "tests/support/world/calls.h"

enum { BATCH = 1000 };

static int create_world(void **state)
{
    *state = world_create(NULL);
    register_worker(*state, "1", "hello", 3);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* BATCH waits for a time, numbered from first on. */
struct times {
    struct wait waits[BATCH];
    char ids[BATCH][24];
};

static struct times *make_times(const struct world *world, int first)
{
    struct times *times = mem_new(struct times);
    for (int i = 0; i < BATCH; i++) {
        snprintf(times->ids[i], sizeof(times->ids[i]), "waitpoint_%d", first + i);
        times->waits[i] = (struct wait){ .type = WAIT_TIME,
                                         .id = slice_of(times->ids[i]),
                                         .until = loop_wall_ms(world->loop) + 1000 + i };
    }
    return times;
}

static enum err block_from(struct world *world, const char *id, int first)
{
    struct times *times = make_times(world, first);
    enum err status = block_by(world, id, times->waits, BATCH);
    free(times);
    return status;
}

static size_t count_waits(const struct run *run)
{
    struct scan_members waits = wait_list_of(run);
    struct wait wait;
    size_t count = 0;
    while (wait_list_next(&waits, &wait))
        count++;
    return count;
}

static void existing_wait_is_not_added_again(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    assert_int_equal(block_from(world, got.id, 0), OK);
    assert_int_equal(block_from(world, got.id, 1), OK);
    assert_int_equal(count_waits(run_now(world, got.id)), BATCH + 1);
    uint32_t version = run_now(world, got.id)->version;
    assert_int_equal(block_from(world, got.id, 1), OK);
    assert_int_equal(run_now(world, got.id)->version, version);
}

static int64_t cpu_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Comparing each with all took hundreds of times as long. */
static void second_batch_of_waits_costs_about_as_much_as_the_first(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    int64_t began = cpu_us();
    assert_int_equal(block_from(world, got.id, 0), OK);
    int64_t first = cpu_us() - began;
    assert_int_equal(block_from(world, got.id, BATCH), OK);
    int64_t second = cpu_us() - began - first;
    print_message("%lld us, then %lld us\n", (long long)first, (long long)second);
    assert_true(second < 50 * first);
    assert_int_equal(count_waits(run_now(world, got.id)), WAITS_MAX);
}

static void number_of_waits_of_a_run_is_limited(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    for (int i = 0; i < WAITS_MAX / BATCH; i++)
        assert_int_equal(block_from(world, got.id, i * BATCH), OK);
    assert_int_equal(wait_for_run(world, got.id, "run_one_more"), ERR_RULE);
    assert_int_equal(block_from(world, got.id, 0), OK); /* it has all of these already */
    assert_int_equal(count_waits(run_now(world, got.id)), WAITS_MAX);
    world_pass(world, 3600 * 1000);
    assert_status(world, got.id, RUN_EXECUTING);
}

static void make_token(struct world *world, int number)
{
    struct waitpoint token = { .created_at = 1 };
    snprintf(token.id, sizeof(token.id), "waitpoint_%d", number);
    write_token(world, &token);
}

/* The store, with a counter of loaded tokens. */
static struct store_ops counting;
static void (*uncounted_read)(struct store *store, struct store_read *req);
static int loads;

static void count_read(struct store *store, struct store_read *req)
{
    const struct store_load *load = container_of(req, struct store_load, read);
    loads += req->kind == READ_LOAD && load->is_document && load->kind == DOC_WAITPOINT;
    uncounted_read(store, req);
}

static void count_loads(struct world *world)
{
    counting = *world->store->ops;
    uncounted_read = counting.read;
    counting.read = count_read;
    world->store->ops = &counting;
    loads = 0;
}

static enum err wait_for_token(struct world *world, const char *id, int number)
{
    char token[24];
    snprintf(token, sizeof(token), "waitpoint_%d", number);
    struct wait wait = { .type = WAIT_TOKEN, .id = slice_of(token) };
    return block_by(world, id, &wait, 1);
}

static void token_is_read_once_however_many_waits_follow(void **state)
{
    struct world *world = *state;
    const struct store_ops *ops = world->store->ops;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    for (int i = 0; i < 20; i++)
        make_token(world, i);
    count_loads(world);
    for (int i = 0; i < 20; i++)
        assert_int_equal(wait_for_token(world, got.id, i), OK);
    world_settle(world);
    assert_int_equal(loads, 20);
    world->store->ops = ops;
}

static void completed_token_stays_completed_when_waits_are_added(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    execute(world, got.id);
    for (int i = 0; i < 3; i++)
        make_token(world, i);
    assert_int_equal(wait_for_token(world, got.id, 0), OK);
    assert_int_equal(wait_for_token(world, got.id, 1), OK);
    waits_end(world->engine, world->env, SLICE("waitpoint_0"));
    assert_int_equal(wait_for_token(world, got.id, 2), OK);
    waits_end(world->engine, world->env, SLICE("waitpoint_2"));
    world_settle(world);
    assert_int_equal(run_now(world, got.id)->execution, EXECUTION_WITH_WAITPOINTS);
    waits_end(world->engine, world->env, SLICE("waitpoint_1"));
    world_settle(world);
    assert_status(world, got.id, RUN_EXECUTING);
}

/* One resumes in each turn; a run that was canceled meanwhile does not. */
static void any_number_of_runs_resume_when_their_token_completes(void **state)
{
    enum { RUNS = 30, CANCELED = 20 };
    struct world *world = *state;
    struct triggered got[RUNS];
    make_token(world, 0);
    for (int i = 0; i < RUNS; i++) {
        got[i] = trigger(world, (struct wish){ 0 });
        execute(world, got[i].id);
        assert_int_equal(wait_for_token(world, got[i].id, 0), OK);
    }
    world_settle(world);
    loop_set_budget(world->loop, 1);
    waits_end(world->engine, world->env, SLICE("waitpoint_0"));
    assert_true(loop_turn(world->loop, 0));
    assert_int_equal(run_now(world, got[RUNS - 1].id)->execution,
                     EXECUTION_WITH_WAITPOINTS);
    cancel(world, got[CANCELED].id);
    world_settle(world);
    for (int i = 0; i < RUNS; i++)
        assert_status(world, got[i].id, i == CANCELED ? RUN_CANCELED : RUN_EXECUTING);
}

/* ---- the slot ---- */

/* A world whose queue of hello has one slot, which the run that is returned last has; the
 * first waits for a time that has passed. */
static struct world *make_parent_without_slot(struct triggered *parent,
                                              struct triggered *other)
{
    struct world *world = world_create(NULL);
    register_worker(world, "1", "hello", 3);
    queues_set_limit(&world->env->queues, SLICE("task/hello"), 1);
    *parent = trigger(world, (struct wish){ 0 });
    execute(world, parent->id);
    assert_int_equal(wait_for(world, parent->id, 100), OK);
    *other = trigger(world, (struct wish){ 0 });
    execute(world, other->id);
    world_pass(world, 1000);
    assert_status(world, parent->id, RUN_WAITING);
    return world;
}

static void run_whose_wait_has_ended_resumes_when_it_has_a_slot(void **state)
{
    struct triggered parent, other;
    struct world *world = make_parent_without_slot(&parent, &other);
    (void)state;
    uint32_t snapshot = run_now(world, parent.id)->snapshot;
    struct triggered next = trigger(world, (struct wish){ 0 });
    assert_true(wait_list_has_ended(run_now(world, parent.id)));
    assert_int_equal(world->env->queues.running, 1);
    assert_int_equal(
        annotate(world, parent.id, "[{\"type\":\"set\",\"key\":\"a\",\"value\":1}]"),
        OK); /* it keeps its place */
    assert_int_equal(run_now(world, parent.id)->snapshot, snapshot);
    assert_int_equal(succeed(world, other.id, "1"), OK);
    world_settle(world);
    assert_status(world, parent.id, RUN_EXECUTING); /* before one that has not started */
    assert_int_equal(run_now(world, parent.id)->snapshot, snapshot + 1);
    assert_string_equal(dequeue(world), "");
    assert_int_equal(succeed(world, parent.id, "1"), OK);
    assert_string_equal(dequeue(world), next.id);
    world_destroy(world);
}

static void restart_keeps_a_run_waiting_for_its_slot(void **state)
{
    struct triggered parent, other;
    struct world *world = make_parent_without_slot(&parent, &other);
    (void)state;
    world_restart(world);
    load_worker(world, "1", "hello", 3);
    queues_set_limit(&world->env->queues, SLICE("task/hello"), 1);
    world_pass(world, 1000);
    assert_status(world, parent.id, RUN_WAITING);
    assert_int_equal(succeed(world, other.id, "1"), OK);
    world_settle(world);
    assert_status(world, parent.id, RUN_EXECUTING);
    world_destroy(world);
}

static void run_that_waits_for_a_slot_may_wait_for_more(void **state)
{
    struct triggered parent, other;
    struct world *world = make_parent_without_slot(&parent, &other);
    (void)state;
    const struct wait second = { .type = WAIT_TIME,
                                 .id = SLICE("waitpoint_second"),
                                 .until = loop_wall_ms(world->loop) + 5000 };
    assert_int_equal(block_by(world, parent.id, &second, 1), OK);
    assert_int_equal(succeed(world, other.id, "1"), OK);
    world_settle(world);
    assert_status(world, parent.id, RUN_WAITING);
    assert_int_equal(world->env->queues.running, 0);
    world_pass(world, 6000);
    assert_status(world, parent.id, RUN_EXECUTING);
    world_destroy(world);
}

static void raised_limit_resumes_a_run(void **state)
{
    struct triggered parent, other;
    struct world *world = make_parent_without_slot(&parent, &other);
    (void)state;
    queues_change_limit(&world->env->queues, SLICE("task/hello"), 2);
    engine_match(world->engine, world->env);
    world_settle(world);
    assert_status(world, parent.id, RUN_EXECUTING);
    assert_int_equal(world->env->queues.running, 2);
    world_destroy(world);
}

static void run_whose_process_ends_without_a_slot_is_retried_by_its_queue(void **state)
{
    static const char error[] = "{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}";
    struct triggered parent, other;
    struct world *world = make_parent_without_slot(&parent, &other);
    (void)state;
    assert_int_equal(break_down(world, parent.id, error, 100), OK);
    assert_int_equal(run_now(world, parent.id)->execution, EXECUTION_QUEUED);
    assert_int_equal(world->env->queues.running, 1);
    assert_int_equal(succeed(world, other.id, "1"), OK);
    world_pass(world, 1000);
    assert_string_equal(dequeue(world), parent.id);
    world_destroy(world);
}

static void run_resumes_once_the_store_works_again(void **state)
{
    struct triggered parent, other;
    struct world *world = make_parent_without_slot(&parent, &other);
    (void)state;
    fake_store_fail_with(world->fake, STORE_NO_SPACE);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 2, .repeat = 3 };
    assert_int_equal(succeed(world, other.id, "1"), OK);
    world_settle(world);
    assert_status(world, parent.id, RUN_WAITING);
    assert_int_equal(world->env->queues.running, 0);
    for (int i = 0; i < 10; i++)
        world_pass(world, 1000);
    assert_status(world, parent.id, RUN_EXECUTING);
    world_destroy(world);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(existing_wait_is_not_added_again),
        TEST(second_batch_of_waits_costs_about_as_much_as_the_first),
        TEST(token_is_read_once_however_many_waits_follow),
        TEST(completed_token_stays_completed_when_waits_are_added),
        TEST(any_number_of_runs_resume_when_their_token_completes),
        TEST(number_of_waits_of_a_run_is_limited),
        cmocka_unit_test(run_whose_wait_has_ended_resumes_when_it_has_a_slot),
        cmocka_unit_test(restart_keeps_a_run_waiting_for_its_slot),
        cmocka_unit_test(run_that_waits_for_a_slot_may_wait_for_more),
        cmocka_unit_test(raised_limit_resumes_a_run),
        cmocka_unit_test(run_whose_process_ends_without_a_slot_is_retried_by_its_queue),
        cmocka_unit_test(run_resumes_once_the_store_works_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
