/* A repeated request finds the run that it received, and no other request does. */
#include "core/fleet/leases.h"

#include "base/mem.h"
#include "tests/support/world/unit.h"
#include "tests/support/world/world.h"

enum { REMEMBERED = 512 };

static uint64_t last_rev;

static int create_world(void **state)
{
    last_rev = 0;
    *state = world_create(NULL);
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static struct environment *other_environment(struct world *world)
{
    return engine_add_environment(world->engine, WORLD_ENV + 1, "env_other", true);
}

/* Adds a run that was leased to this request. NULL: to one without an id. */
static struct tracked *leased(struct environment *env, const char *id, const char *request)
{
    struct run run = { .status = RUN_DEQUEUED,
                       .execution = EXECUTION_PENDING_EXECUTING,
                       .rev = ++last_rev,
                       .task = bytes_create(SLICE("hello")),
                       .queue = bytes_create(SLICE("task/hello")),
                       .worker_request = bytes_create(slice_of(request)) };
    snprintf(run.id, sizeof(run.id), "%s", id);
    return environment_load(env, &run);
}

static void lease(struct environment *env, const char *id, const char *request)
{
    leases_note(leased(env, id, request));
}

static const char *found(const struct environment *env, const char *request)
{
    const struct tracked *run = leases_find(env, slice_of(request));
    return run ? run->run.id : "";
}

static void each_request_finds_its_run(void **state)
{
    struct world *world = *state;
    lease(world->env, "run_a", "first");
    lease(world->env, "run_b", "second");
    assert_string_equal(found(world->env, "first"), "run_a");
    assert_string_equal(found(world->env, "second"), "run_b");
    assert_string_equal(found(world->env, "first"), "run_a"); /* any number of times */
}

static void lease_is_not_found_by_another_request(void **state)
{
    struct world *world = *state;
    assert_string_equal(found(world->env, "first"), ""); /* no run was leased yet */
    lease(world->env, "run_a", "first");
    assert_string_equal(found(world->env, "second"), "");
    assert_string_equal(found(world->env, "fir"), "");
    assert_string_equal(found(world->env, ""), "");
    assert_string_equal(found(world->env, NULL), "");
}

/* Two workers may use the same id in two environments. */
static void leases_of_environments_are_separate(void **state)
{
    struct world *world = *state;
    struct environment *other = other_environment(world);
    lease(world->env, "run_a", "same");
    assert_string_equal(found(other, "same"), "");
    lease(other, "run_b", "same");
    assert_string_equal(found(world->env, "same"), "run_a");
    assert_string_equal(found(other, "same"), "run_b");
}

static void run_that_is_not_leased_is_not_noted(void **state)
{
    struct world *world = *state;
    struct tracked *run = leased(world->env, "run_a", "first");
    run->run.execution = EXECUTION_QUEUED;
    leases_note(run);
    run->run.execution = EXECUTION_PENDING_EXECUTING;
    assert_string_equal(found(world->env, "first"), "");
}

/* It cannot be repeated, so it takes no slot from requests that can. */
static void a_request_without_an_id_is_not_noted(void **state)
{
    struct world *world = *state;
    lease(world->env, "run_a", "first");
    struct tracked *run = leased(world->env, "run_b", NULL);
    for (int i = 0; i < REMEMBERED; i++)
        leases_note(run);
    assert_string_equal(found(world->env, NULL), "");
    assert_string_equal(found(world->env, ""), "");
    assert_string_equal(found(world->env, "first"), "run_a");
}

static void a_run_that_was_started_is_not_found(void **state)
{
    struct world *world = *state;
    struct tracked *run = leased(world->env, "run_a", "first");
    leases_note(run);
    run->run.execution = EXECUTION_EXECUTING;
    assert_string_equal(found(world->env, "first"), "");
}

/* The run went back to its queue, and another request got it. */
static void lease_is_found_by_its_latest_request(void **state)
{
    struct world *world = *state;
    struct tracked *run = leased(world->env, "run_a", "first");
    leases_note(run);
    bytes_unref(run->run.worker_request);
    run->run.worker_request = bytes_create(SLICE("second"));
    leases_note(run);
    assert_string_equal(found(world->env, "first"), "");
    assert_string_equal(found(world->env, "second"), "run_a");
}

/* Its first run was started already; the worker may still use the same id again. */
static void request_with_two_runs_finds_the_leased_one(void **state)
{
    struct world *world = *state;
    struct tracked *run = leased(world->env, "run_a", "first");
    leases_note(run);
    lease(world->env, "run_b", "first");
    run->run.execution = EXECUTION_EXECUTING;
    assert_string_equal(found(world->env, "first"), "run_b");
}

static void a_run_that_has_left_memory_is_not_found(void **state)
{
    struct world *world = *state;
    struct tracked gone = { .env = world->env,
                            .run = { .id = "run_gone",
                                     .execution = EXECUTION_PENDING_EXECUTING,
                                     .worker_request = bytes_create(SLICE("first")) } };
    leases_note(&gone);
    assert_string_equal(found(world->env, "first"), "");
    bytes_unref(gone.run.worker_request);
}

static void only_the_newest_leases_of_an_environment_are_kept(void **state)
{
    struct world *world = *state;
    struct environment *other = other_environment(world);
    char id[RUN_ID_MAX], request[16];
    lease(other, "run_other", "0");
    for (int i = 0; i <= REMEMBERED; i++) {
        snprintf(id, sizeof(id), "run_%d", i);
        snprintf(request, sizeof(request), "%d", i);
        lease(world->env, id, request);
    }
    assert_string_equal(found(world->env, "0"), "");
    assert_string_equal(found(world->env, "1"), "run_1");
    assert_string_equal(found(world->env, request), id);
    assert_string_equal(found(other, "0"), "run_other");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_request_finds_its_run),
        TEST(lease_is_not_found_by_another_request),
        TEST(leases_of_environments_are_separate),
        TEST(run_that_is_not_leased_is_not_noted),
        TEST(a_request_without_an_id_is_not_noted),
        TEST(a_run_that_was_started_is_not_found),
        TEST(lease_is_found_by_its_latest_request),
        TEST(request_with_two_runs_finds_the_leased_one),
        TEST(a_run_that_has_left_memory_is_not_found),
        TEST(only_the_newest_leases_of_an_environment_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
