/* The cost of many waits of one run, and their limit. */
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
