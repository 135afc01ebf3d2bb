/* The test store keeps the contract, fails on request and survives a crash. */
#include "tests/support/fakes/fake_store.h"

#include "base/mem.h"
#include "tests/support/contract/store_contract.h"

struct fake_world {
    struct store_world world;
    struct loop *loop;
    struct fake_store *fake;
};

static void turn(struct store_world *world)
{
    loop_turn(container_of(world, struct fake_world, world)->loop, 1);
}

static void reopen(struct store_world *world)
{
    fake_store_crash(container_of(world, struct fake_world, world)->fake, 1);
}

static int create_world(void **state)
{
    struct fake_world *own = mem_new(struct fake_world);
    own->loop = loop_create(NULL);
    own->fake = fake_store_create(own->loop);
    own->world = (struct store_world){ fake_store_store(own->fake), turn, reopen };
    *state = &own->world;
    return 0;
}

static int destroy_world(void **state)
{
    struct fake_world *own = container_of(*state, struct fake_world, world);
    fake_store_destroy(own->fake);
    loop_destroy(own->loop);
    free(own);
    return 0;
}

static struct fake_world *own_of(void **state)
{
    return container_of(*state, struct fake_world, world);
}

static void the_nth_commit_fails_and_writes_nothing(void **state)
{
    struct store_world *world = *state;
    *fake_store_fault(own_of(state)->fake) = (struct fault){ .countdown = 2, .repeat = 1 };
    fake_store_fail_with(own_of(state)->fake, STORE_NO_SPACE);
    assert_int_equal(commit_one(world, new_run(ENV_A, 1, "a")), STORE_OK);
    assert_int_equal(commit_one(world, new_run(ENV_A, 2, "a")), STORE_NO_SPACE);
    assert_true(world->store->full);
    assert_int_equal(commit_one(world, new_run(ENV_A, 3, "a")), STORE_NO_SPACE);
    assert_int_equal(commit_one(world, new_run(ENV_A, 4, "a")), STORE_OK);
    assert_false(world->store->full);
    assert_int_equal(fake_store_count(own_of(state)->fake, ENV_A), 2);
}

static int answers;

static void on_answer(struct store_commit *req, enum store_status status)
{
    (void)req;
    assert_int_equal(status, STORE_OK);
    answers++;
}

static void answer_comes_after_the_delay_and_the_data_earlier(void **state)
{
    struct store_world *world = *state;
    struct fake_world *own = own_of(state);
    struct change change = new_run(ENV_A, 1, "a");
    struct store_commit req = { .changes = &change, .change_count = 1, .done = on_answer };
    answers = 0;
    fake_store_set_delay(own->fake, 10, 0);
    world->store->ops->commit(world->store, &req);
    loop_turn(own->loop, 4);
    assert_null(fake_store_run(own->fake, ENV_A, change.run.id));
    loop_turn(own->loop, 2);
    assert_non_null(fake_store_run(own->fake, ENV_A, change.run.id));
    assert_int_equal(answers, 0);
    loop_turn(own->loop, 4);
    assert_int_equal(answers, 1);
    change_finish(&change);
}

static void crash_keeps_the_first_commits_in_flight_and_answers_none(void **state)
{
    struct store_world *world = *state;
    struct fake_world *own = own_of(state);
    size_t least = 20, most = 0;
    answers = 0;
    for (int round = 0; round < 50; round++) {
        struct change changes[20];
        struct store_commit reqs[20];
        size_t before = fake_store_count(own->fake, ENV_A);
        for (int i = 0; i < 20; i++) {
            changes[i] = new_run(ENV_A, round * 20 + i, "a");
            reqs[i] = (struct store_commit){ .changes = &changes[i],
                                             .change_count = 1,
                                             .done = on_answer };
            world->store->ops->commit(world->store, &reqs[i]);
        }
        fake_store_crash(own->fake, (uint64_t)round * 7919);
        size_t kept = fake_store_count(own->fake, ENV_A) - before;
        for (size_t i = 0; i < 20; i++) {
            bool there = fake_store_run(own->fake, ENV_A, changes[i].run.id);
            assert_int_equal(there, i < kept);
            change_finish(&changes[i]);
        }
        least = kept < least ? kept : least;
        most = kept > most ? kept : most;
    }
    loop_turn(own->loop, 1000);
    assert_int_equal(answers, 0);
    assert_int_equal(least, 0);
    assert_true(most > 2);
}

static bool was_closed;

static void on_closed(struct store *store)
{
    (void)store;
    was_closed = true;
}

static void closing_answers_all_requests_first(void **state)
{
    struct store_world *world = *state;
    struct change change = new_run(ENV_A, 1, "a");
    struct store_commit req = { .changes = &change, .change_count = 1, .done = on_answer };
    answers = 0;
    was_closed = false;
    world->store->ops->commit(world->store, &req);
    world->store->ops->close(world->store, on_closed);
    assert_false(was_closed);
    while (!was_closed)
        world->turn(world);
    assert_int_equal(answers, 1);
    change_finish(&change);
}

int main(void)
{
    const struct CMUnitTest own[] = {
        cmocka_unit_test_setup_teardown(the_nth_commit_fails_and_writes_nothing,
                                        create_world, destroy_world),
        cmocka_unit_test_setup_teardown(answer_comes_after_the_delay_and_the_data_earlier,
                                        create_world, destroy_world),
        cmocka_unit_test_setup_teardown(
            crash_keeps_the_first_commits_in_flight_and_answers_none, create_world,
            destroy_world),
        cmocka_unit_test_setup_teardown(closing_answers_all_requests_first, create_world,
                                        destroy_world),
    };
    int failures = store_contract_run("fake store: contract", create_world, destroy_world);
    return failures + cmocka_run_group_tests_name("fake store", own, NULL, NULL);
}
