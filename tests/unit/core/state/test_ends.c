/* A caller that waits for an end is notified once, and only of that end. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "core/state/ends.h"
#include "tests/support/world/calls.h"

enum { MANY = 5000, LEAST_TURNS = 10 };

struct listener {
    struct end_watch watch;
    unsigned *told;
};

static void on_end(struct end_watch *watch)
{
    struct listener *listener = container_of(watch, struct listener, watch);
    (*listener->told)++;
    free(listener);
}

/* Adds a listener that counts its notice in *told and frees itself. */
static struct listener *listen_to(struct world *world, const struct environment *env,
                                  const char *id, unsigned *told)
{
    struct listener *listener = mem_new(struct listener);
    listener->watch.fn = on_end;
    listener->told = told;
    ends_watch(world->engine, env, slice_of(id), &listener->watch);
    return listener;
}

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

static void every_listener_is_notified_once_of_the_end(void **state)
{
    struct world *world = *state;
    struct triggered run = trigger(world, (struct wish){ 0 });
    struct triggered other = trigger(world, (struct wish){ 0 });
    unsigned told = 0, of_other = 0;
    listen_to(world, world->env, run.id, &told);
    listen_to(world, world->env, run.id, &told);
    listen_to(world, world->env, other.id, &of_other);
    execute(world, run.id);
    assert_int_equal(told, 0);
    assert_int_equal(succeed(world, run.id, "1"), OK);
    world_settle(world);
    assert_int_equal(told, 2);
    assert_int_equal(of_other, 0);
    assert_int_equal(tag(world, run.id, "late"), OK);
    world_settle(world);
    assert_int_equal(told, 2);
    assert_int_equal(cancel(world, other.id), OK);
    world_settle(world);
    assert_int_equal(of_other, 1);
}

static void removed_listener_is_not_notified(void **state)
{
    struct world *world = *state;
    struct triggered run = trigger(world, (struct wish){ 0 });
    unsigned told = 0;
    struct listener *left = listen_to(world, world->env, run.id, &told);
    struct listener *late = listen_to(world, world->env, run.id, &told);
    listen_to(world, world->env, run.id, &told);
    ends_unwatch(world->engine, &left->watch);
    ends_unwatch(world->engine, &left->watch);
    ends_notify(world->engine, world->env, slice_of(run.id));
    ends_unwatch(world->engine, &late->watch); /* after the end, before the notice */
    world_settle(world);
    assert_int_equal(told, 1);
    free(left);
    free(late);
}

static void end_is_reported_in_its_own_environment_only(void **state)
{
    struct world *world = *state;
    struct environment *other = engine_add_environment(world->engine, 7, "other", false);
    struct triggered run = trigger(world, (struct wish){ 0 });
    unsigned told = 0, elsewhere = 0;
    listen_to(world, world->env, run.id, &told);
    struct listener *stays = listen_to(world, other, run.id, &elsewhere);
    assert_int_equal(cancel(world, run.id), OK);
    world_settle(world);
    assert_int_equal(told, 1);
    assert_int_equal(elsewhere, 0);
    ends_unwatch(world->engine, &stays->watch);
    free(stays);
}

static void thousands_of_listeners_are_notified_over_several_turns(void **state)
{
    struct world *world = *state;
    unsigned told = 0, turns = 0;
    for (int i = 0; i < MANY; i++)
        listen_to(world, world->env, "batch_1", &told);
    loop_set_budget(world->loop, 40);
    ends_notify(world->engine, world->env, SLICE("batch_1"));
    /* A caller that listens from now on waits for another end. */
    unsigned later = 0;
    struct listener *stays = listen_to(world, world->env, "batch_1", &later);
    while (told < MANY) {
        loop_turn(world->loop, 0);
        turns++;
    }
    assert_true(turns >= LEAST_TURNS);
    assert_int_equal(later, 0);
    ends_unwatch(world->engine, &stays->watch);
    free(stays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_listener_is_notified_once_of_the_end,
                                        create_world, destroy_world),
        cmocka_unit_test_setup_teardown(removed_listener_is_not_notified, create_world,
                                        destroy_world),
        cmocka_unit_test_setup_teardown(end_is_reported_in_its_own_environment_only,
                                        create_world, destroy_world),
        cmocka_unit_test_setup_teardown(
            thousands_of_listeners_are_notified_over_several_turns, create_world,
            destroy_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
