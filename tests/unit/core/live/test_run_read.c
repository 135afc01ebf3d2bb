/* A run that only the store has is read once for all callers that wait meanwhile. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/mem.h"
#include "tests/support/fakes/fault.h"
#include "tests/support/world/world.h"

enum { SMALL_MEMORY = 16 * 1024, OUTPUT = 1000, READ_MS = 10000, MANY = 1000 };

static int create_world(void **state)
{
    *state = world_create(&(struct world_options){ .engine.memory = SMALL_MEMORY });
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

/* Finishes some runs, so that those before them leave memory. */
static void finish_some(struct world *world, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "run_%03u", i);
        create(world, id, "a");
        finish_run(world, id, OUTPUT);
    }
    world_settle(world);
    assert_null(environment_find(world->env, SLICE("run_001")));
}

/* Counts loads from now on. */
static void count_loads(struct world *world)
{
    *fake_store_load_fault(world->fake) = (struct fault){ .countdown = MANY };
}

static int loads(struct world *world)
{
    return MANY - fake_store_load_fault(world->fake)->countdown;
}

struct asked {
    struct run_read read;
    bool done;
    enum err status;
    struct run run; /* the run that was read */
};

static void on_read(struct run_read *read, enum err status)
{
    struct asked *asked = container_of(read, struct asked, read);
    assert_false(asked->done);
    asked->done = true;
    asked->status = status;
    if (!status)
        run_copy(&asked->run, read->run);
    assert_int_equal(read->loaded, !status);
}

static void ask(struct world *world, const char *id, struct asked *asked)
{
    *asked = (struct asked){ 0 };
    run_read_begin(world->env, slice_of(id), &asked->read, on_read);
}

static void forget(struct asked *asked, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run_finish(&asked[i].run);
}

static void simultaneous_readers_share_one_read_of_the_store(void **state)
{
    struct world *world = *state;
    struct asked asked[6];
    finish_some(world, 1, 50);
    count_loads(world);
    fake_store_set_delay(world->fake, 0, READ_MS);
    for (size_t i = 0; i < 4; i++)
        ask(world, i < 3 ? "run_001" : "run_002", &asked[i]);
    world_settle(world);
    world_pass(world, READ_MS / 2);
    ask(world, "run_001", &asked[4]);
    world_settle(world);
    world_pass(world, READ_MS / 2);
    for (size_t i = 0; i < 5; i++) {
        assert_true(asked[i].done);
        assert_int_equal(asked[i].status, OK);
        assert_string_equal(asked[i].run.id, i == 3 ? "run_002" : "run_001");
    }
    assert_int_equal(loads(world), 2);

    ask(world, "run_001", &asked[5]); /* no read still waits for it */
    world_settle(world);
    world_pass(world, READ_MS);
    assert_int_equal(asked[5].status, OK);
    assert_int_equal(loads(world), 3);
    forget(asked, 6);
}

/* The run may have changed since the read began, and have left memory again. */
static void read_begun_before_a_change_is_not_shared_after_it(void **state)
{
    struct world *world = *state;
    struct asked asked[2];
    finish_some(world, 1, 50);
    count_loads(world);
    fake_store_set_delay(world->fake, 0, READ_MS);
    ask(world, "run_001", &asked[0]);
    world_settle(world);
    uint64_t before = world->env->applied;
    finish_some(world, 51, 50);
    assert_true(world->env->cold > before);
    assert_false(asked[0].done);
    ask(world, "run_001", &asked[1]);
    world_settle(world);
    world_pass(world, READ_MS);
    assert_true(asked[0].done && asked[1].done);
    assert_int_equal(loads(world), 2);
    forget(asked, 2);
}

static void failed_read_is_reported_to_all_who_wait(void **state)
{
    struct world *world = *state;
    struct asked asked[3];
    finish_some(world, 1, 50);
    *fake_store_load_fault(world->fake) = (struct fault){ .countdown = 1 };
    for (size_t i = 0; i < 3; i++)
        ask(world, i < 2 ? "run_001" : "run_nobody", &asked[i]);
    world_settle(world);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(asked[i].status, i < 2 ? ERR_STORE : ERR_NOT_FOUND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(simultaneous_readers_share_one_read_of_the_store),
        TEST(read_begun_before_a_change_is_not_shared_after_it),
        TEST(failed_read_is_reported_to_all_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
