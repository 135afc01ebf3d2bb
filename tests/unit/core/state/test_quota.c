/* Completions in a project whose storage quota is used up, or nearly; and evictions.
 * Evictions remove finished runs from memory. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "tests/support/world/calls.h"

enum { RUNS = 4, LONG = 700 << 10, SHORT = 4096 };

static struct quota project;

static int create_world(void **state)
{
    struct world *world = world_create(NULL);
    project = (struct quota){ .limit = 1 << 20 };
    engine_join_stored(world->engine, WORLD_ENV, &project);
    register_worker(world, "20260101.1", "hello", 3);
    *state = world;
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* ---- completions in flight at the same time ---- */

struct completion {
    struct complete_attempt op; /* must be first */
    char id[ID_MAX], snapshot[64];
    enum err status;
    bool done;
};

static void on_completed(struct command *command, enum err status)
{
    struct completion *completion = container_of(command, struct completion, op.command);
    completion->status = status;
    completion->done = true;
}

static struct bytes *text_of(size_t len)
{
    struct bytes *text = bytes_create_empty(len);
    memset(text->data, 'o', len);
    return text;
}

static void begin_completing(struct world *world, struct completion *completion,
                             struct bytes *output)
{
    struct complete_attempt *op = &completion->op;
    *op = (struct complete_attempt){ .ok = true, .output = output };
    completion->done = false;
    run_snapshot_id(run_now(world, completion->id), completion->snapshot);
    op->snapshot = slice_of(completion->snapshot);
    attempt_complete(world->engine, world->env, slice_of(completion->id), op, on_completed);
}

static void execute_all(struct world *world, struct completion *completions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct triggered run = trigger(world, (struct wish){ 0 });
        snprintf(completions[i].id, sizeof(completions[i].id), "%s", run.id);
        execute(world, run.id);
    }
}

/* Begins all of them before the store has answered any. */
static void complete_all(struct world *world, struct completion *completions, size_t count,
                         size_t len)
{
    struct bytes *output = text_of(len);
    for (size_t i = 0; i < count; i++)
        begin_completing(world, &completions[i], output);
    world_settle(world);
    for (size_t i = 0; i < count; i++)
        assert_true(completions[i].done);
    bytes_unref(output);
}

static size_t count_completed(struct world *world, const struct completion *completions,
                              size_t count)
{
    size_t completed = 0;
    for (size_t i = 0; i < count; i++) {
        const struct run *run = run_now(world, completions[i].id);
        assert_int_equal(completions[i].status, OK);
        assert_int_equal(completions[i].op.result, ATTEMPT_RUN_FINISHED);
        assert_true(run->status == RUN_COMPLETED || run->status == RUN_FAILED);
        completed += run->status == RUN_COMPLETED;
    }
    return completed;
}

static void assert_nothing_is_held(struct world *world)
{
    assert_int_equal(project.used,
                     world->store->ops->position(world->store, WORLD_ENV).stored);
}

static void outputs_in_flight_count_as_stored(void **state)
{
    struct completion completions[RUNS];
    execute_all(*state, completions, RUNS);
    complete_all(*state, completions, RUNS, LONG);
    assert_int_equal(count_completed(*state, completions, RUNS),
                     2); /* the second is too long */
    assert_in_range(project.used, project.limit, project.limit + LONG);
    assert_nothing_is_held(*state);
}

static void small_outputs_are_kept_even_over_the_quota(void **state)
{
    struct completion first[2], second[RUNS];
    execute_all(*state, first, 2);
    execute_all(*state, second, RUNS);
    complete_all(*state, first, 2, LONG);
    assert_true(engine_is_at_quota(((struct world *)*state)->env));
    complete_all(*state, second, RUNS, SHORT);
    assert_int_equal(count_completed(*state, second, RUNS), RUNS);
    assert_int_equal(run_now(*state, second[0].id)->output->len, SHORT);
}

static void failed_commit_frees_its_reserved_quota(void **state)
{
    struct world *world = *state;
    struct completion completion;
    execute_all(world, &completion, 1);
    struct triggered next = trigger(world, (struct wish){ 0 });
    struct bytes *output = text_of((size_t)project.limit);
    *fake_store_fault(world->fake) = (struct fault){ .countdown = 1 };
    begin_completing(world, &completion, output);
    world_settle(world);
    assert_int_equal(completion.status, ERR_STORE);
    assert_false(engine_is_at_quota(world->env));
    assert_nothing_is_held(world);
    assert_string_equal(dequeue(world), next.id);
    begin_completing(world, &completion, output);
    world_settle(world);
    assert_int_equal(completion.status, OK);
    assert_true(engine_is_at_quota(world->env));
    assert_nothing_is_held(world);
    bytes_unref(output);
}

/* ---- memory of finished runs ---- */

static void end_runs(struct world *world, struct environment *env, unsigned count)
{
    world->env = env;
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(cancel(world, trigger(world, (struct wish){ 0 }).id), OK);
    world_settle(world);
}

/* The memory budget ends with its test. */
static void leave_memory(struct environment *env)
{
    env->project_final = NULL;
    env->finals.outer = NULL;
}

static void full_memory_budget_evicts_runs_of_the_largest_environment(void **state)
{
    enum { LARGE = 60, SMALL = 5 };
    struct world *world = *state;
    struct environment *own = world->env;
    struct environment *large = engine_add_environment(world->engine, 10, "large", false);
    struct environment *small = engine_add_environment(world->engine, 11, "small", false);
    struct trimmed_quota memory = { 0 };
    engine_join_finished(large, &memory, NULL);
    engine_join_finished(small, &memory, NULL);
    assert_int_equal(memory.quota.limit, 4 * large->budget);
    end_runs(world, small, SMALL);
    end_runs(world, large, LARGE);
    assert_int_equal(memory.quota.used, large->finals.used + small->finals.used);
    assert_int_equal(large->runs.count, LARGE);
    memory.quota.limit = memory.quota.used;
    end_runs(world, small, 1);
    assert_in_range(large->runs.count, LARGE / 2, LARGE - 1);
    assert_int_equal(small->runs.count, SMALL + 1);
    assert_true(memory.quota.used <= memory.quota.limit);
    assert_int_equal(memory.quota.used, large->finals.used + small->finals.used);
    leave_memory(large);
    leave_memory(small);
    world->env = own;
}

static void preview_branches_evict_their_runs_before_a_smaller_environment(void **state)
{
    enum { FIRST = 10, BRANCHES = 5, OF_BRANCH = 20, OF_PROD = 40 };
    struct world *world = *state;
    struct environment *own = world->env, *branches[BRANCHES];
    struct environment *prod = engine_add_environment(world->engine, FIRST, "prod", false);
    struct trimmed_quota memory = { 0 };
    struct quota together = { 0 };
    engine_join_finished(prod, &memory, NULL);
    end_runs(world, prod, OF_PROD);
    for (uint32_t i = 0; i < BRANCHES; i++) {
        branches[i] = engine_add_environment(world->engine, FIRST + 1 + i, "branch", false);
        engine_join_finished(branches[i], &memory, &together);
        end_runs(world, branches[i], OF_BRANCH);
    }
    memory.quota.limit = memory.quota.used;
    end_runs(world, branches[0], 1);
    assert_int_equal(prod->runs.count, OF_PROD);
    assert_true(memory.quota.used <= memory.quota.limit);
    assert_int_equal(memory.quota.used, together.used + prod->finals.used);
    for (uint32_t i = 0; i < BRANCHES; i++)
        leave_memory(branches[i]);
    leave_memory(prod);
    world->env = own;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(outputs_in_flight_count_as_stored),
        TEST(small_outputs_are_kept_even_over_the_quota),
        TEST(failed_commit_frees_its_reserved_quota),
        TEST(full_memory_budget_evicts_runs_of_the_largest_environment),
        TEST(preview_branches_evict_their_runs_before_a_smaller_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
