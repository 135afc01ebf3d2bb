/* Outside dev, a worker may restrict which runs it takes, and give one back with a reason.
 * It takes runs of deployed versions only, or for machines for which it has the
 * capacity. */
#include "core/engine/calls.h"
#include "core/fleet/versions.h"
#include "core/fleet/waiting.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/unit.h"

/* A worker that waits for a run. */
struct waiter {
    struct dequeue dequeue; /* must be first */
    enum err status;
    bool done;
};

static const struct dequeue_terms deployed = { .deployed_only = true };
static const struct dequeue_terms small = { .has_room = true, .cores = 1, .gigabytes = 1 };

static int create_world(void **state)
{
    struct world *world = world_create(&(struct world_options){ .is_prod = true });
    register_worker(world, "20260101.1", "hello,other", 3);
    *state = world;
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

static void on_dequeued(struct dequeue *dequeue, enum err status)
{
    struct waiter *waiter = container_of(dequeue, struct waiter, dequeue);
    waiter->status = status;
    waiter->done = true;
}

static void ask(struct world *world, struct waiter *waiter,
                const struct dequeue_terms *terms)
{
    waiter->done = false;
    assert_int_equal(dequeue_begin(world->engine, &world->env, 1, terms, &waiter->dequeue,
                                   60000, on_dequeued),
                     OK);
    world_settle(world);
}

static void assert_got(const struct waiter *waiter, const char *id)
{
    assert_true(waiter->done);
    assert_int_equal(waiter->status, OK);
    assert_string_equal(waiter->dequeue.command.run_id, id);
}

static void leave(struct world *world, struct waiter *waiter)
{
    assert_false(waiter->done);
    dequeue_cancel(&waiter->dequeue);
    world_settle(world);
    assert_true(waiter->done);
}

static void assert_waits(struct world *world, const char *id, const char *reason,
                         const char *words)
{
    const struct tracked *run = environment_find(world->env, slice_of(id));
    struct waiting waiting;
    struct buf text = { 0 };
    waiting_look(run, NULL, &waiting);
    assert_string_equal(waiting_name(waiting.reason), reason);
    waiting_explain(run, &waiting, &text);
    buf_add_char(&text, '\0');
    assert_non_null(strstr(text.ptr, words));
    buf_finish(&text);
}

/* Triggers a run that is queued for the given machine. */
static struct triggered trigger_for(struct world *world, enum machine machine)
{
    struct triggered got = trigger(world, (struct wish){ 0 });
    environment_find(world->env, slice_of(got.id))->run.machine = (uint8_t)machine;
    world_pass(world, 10);
    return got;
}

static void run_of_a_plain_registration_needs_a_worker_with_its_code(void **state)
{
    struct world *world = *state;
    struct waiter supervisor, worker;
    struct triggered got = trigger(world, (struct wish){ 0 });
    ask(world, &supervisor, &deployed);
    assert_false(supervisor.done);
    assert_waits(world, got.id, "no_worker", "registered by a worker, not deployed");
    ask(world, &worker, &any_run);
    assert_got(&worker, got.id);
    leave(world, &supervisor);
}

static void deployed_only_worker_skips_plain_runs(void **state)
{
    struct world *world = *state;
    struct waiter supervisor, worker;
    struct triggered plain = trigger(world, (struct wish){ 0 });
    world_pass(world, 10);
    versions_deployed(world->env, add_deployment(world, "20260101.2", "hello", "ci-1"));
    struct triggered first = trigger(world, (struct wish){ .external = "ci-1" });
    world_pass(world, 10);
    struct triggered second = trigger(world, (struct wish){ .external = "ci-1" });
    ask(world, &supervisor, &deployed);
    assert_got(&supervisor, first.id);
    ask(world, &worker, &any_run);
    assert_got(&worker, plain.id); /* the oldest run */
    ask(world, &worker, &any_run);
    assert_got(&worker, second.id);
}

static void promotion_moves_queued_runs_to_the_deployment(void **state)
{
    struct world *world = *state;
    struct waiter supervisor;
    struct workers *workers = world->env->fleet->workers;
    struct triggered got = trigger(world, (struct wish){ 0 });
    ask(world, &supervisor, &deployed);
    assert_false(supervisor.done);
    struct worker *worker = add_deployment(world, "20260101.2", "hello", "");
    versions_deployed(world->env, worker);
    workers_promote(workers, worker, 1);
    fleet_changed(world->env);
    world_settle(world);
    assert_got(&supervisor, got.id);
}

static void run_is_not_given_to_a_worker_without_capacity(void **state)
{
    struct world *world = *state;
    struct waiter narrow, roomy;
    struct triggered large = trigger_for(world, MACHINE_LARGE_1X);
    struct triggered behind = trigger_for(world, MACHINE_MICRO);
    ask(world, &narrow, &small);
    assert_false(narrow.done); /* the run after it does not overtake */
    assert_waits(world, large.id, "room",
                 "no free capacity for a large-1x (4 cores, 8 GB)");
    ask(world, &roomy, &any_run);
    assert_got(&roomy, large.id);
    assert_got(&narrow, behind.id);
}

static void run_that_takes_all_the_capacity_fits(void **state)
{
    struct world *world = *state;
    struct waiter exact;
    struct triggered got = trigger_for(world, MACHINE_SMALL_2X);
    ask(world, &exact, &small);
    assert_got(&exact, got.id);
}

static void on_released(struct command *command, enum err status)
{
    (void)command;
    assert_int_equal(status, OK);
}

/* The last worker that gave it back gives the reason. */
static void run_that_is_given_back_too_often_fails(void **state)
{
    struct world *world = *state;
    struct triggered got = trigger(world, (struct wish){ 0 });
    for (int i = 0; i < 12; i++) {
        struct release op = { .reason = SLICE("this version was built for libc \"musl\"") };
        char snapshot[64];
        assert_string_equal(dequeue(world), got.id);
        run_snapshot_id(run_now(world, got.id), snapshot);
        op.snapshot = slice_of(snapshot);
        attempt_release(world->engine, world->env, slice_of(got.id), &op, on_released);
        world_settle(world);
        world_pass(world, 3600 * 1000); /* the longest pause */
    }
    assert_status(world, got.id, RUN_SYSTEM_FAILURE);
    assert_non_null(strstr(run_now(world, got.id)->error->data,
                           "after it was dequeued; the last one reported: this version was "
                           "built for libc \\\"musl\\\""));
}

static void ask_as(struct world *world, struct waiter *waiter, const char *id)
{
    waiter->done = false;
    assert_int_equal(dequeue_begin(world->engine, &world->env, 1, &any_run,
                                   &waiter->dequeue, 60000, on_dequeued),
                     OK);
    dequeue_name_request(&waiter->dequeue, slice_of(id));
}

/* A proxy may keep the connection of a worker that has given up its call. */
static void repeated_request_waits_once(void **state)
{
    struct world *world = *state;
    static struct waiter dropped, other, retry;
    ask_as(world, &dropped, "a");
    ask_as(world, &other, "b");
    ask_as(world, &retry, "a");
    world_settle(world);
    assert_true(dropped.done);
    assert_int_equal(dropped.status, ERR_CANCELED);
    struct triggered first = trigger(world, (struct wish){ 0 });
    world_settle(world);
    assert_got(&other, first.id);
    struct triggered second = trigger(world, (struct wish){ 0 });
    world_settle(world);
    assert_got(&retry, second.id);
}

static void repeated_request_during_the_commit_of_its_lease_gets_the_run(void **state)
{
    struct world *world = *state;
    static struct waiter dropped, retry;
    struct triggered got = trigger(world, (struct wish){ 0 });
    ask_as(world, &dropped, "a");
    engine_match_now(&engine_share_of(world->env)->matching);
    assert_true(dropped.dequeue.holding);
    ask_as(world, &retry, "a");
    world_settle(world);
    assert_int_equal(dropped.status, ERR_CANCELED);
    assert_got(&retry, got.id);
}

static void request_repeated_twice_keeps_its_run(void **state)
{
    struct world *world = *state;
    static struct waiter first, second, third, other;
    struct triggered got = trigger(world, (struct wish){ 0 });
    ask_as(world, &first, "a");
    world_settle(world);
    assert_got(&first, got.id);
    ask_as(world, &second, "a");
    ask_as(world, &third, "a");
    world_settle(world);
    assert_int_equal(second.status, ERR_CANCELED);
    assert_got(&third, got.id);
    ask_as(world, &other, "b");
    world_settle(world);
    assert_false(other.done);
    dequeue_cancel(&other.dequeue);
    world_settle(world);
}

/* A worker's token may be for branches alone, and the last of them may be archived. */
static void worker_without_environments_gets_no_run(void **state)
{
    struct world *world = *state;
    static struct waiter waiter;
    for (int named = 0; named < 2; named++) {
        waiter.done = false;
        assert_int_equal(dequeue_begin(world->engine, &world->env, 0, &any_run,
                                       &waiter.dequeue, 1000, on_dequeued),
                         OK);
        if (named)
            dequeue_name_request(&waiter.dequeue, slice_of("a"));
        world_pass(world, 1001);
        world_settle(world);
        assert_true(waiter.done);
        assert_int_equal(waiter.status, ERR_NOT_FOUND);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, create_world, destroy_world)

enum { BRANCHES = 200, OWN_RUNS = 5 };

/* Returns the environment of the run that a worker of all these environments gets. */
static const struct environment *served(struct world *world,
                                        struct environment *const *environments)
{
    struct waiter waiter = { 0 };
    assert_int_equal(dequeue_begin(world->engine, environments, BRANCHES + 1, &any_run,
                                   &waiter.dequeue, 5, on_dequeued),
                     OK);
    world_settle(world);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, OK);
    return waiter.dequeue.command.env;
}

static void branches_of_a_project_share_one_turn(void **state)
{
    struct world *world = *state;
    struct environment *environments[BRANCHES + 1] = { world->env };
    struct quota project = { 0 };
    for (uint32_t i = 1; i <= BRANCHES; i++) {
        environments[i] = engine_add_environment(world->engine, 10 + i, "branch", false);
        engine_join_stored(world->engine, 10 + i, &project);
        world->env = environments[i];
        register_worker(world, "20260101.1", "hello,other", 3);
        trigger(world, (struct wish){ 0 });
    }
    world->env = environments[0];
    for (int i = 0; i < OWN_RUNS; i++)
        trigger(world, (struct wish){ 0 });
    int own = 0;
    for (int i = 0; i < 2 * OWN_RUNS; i++)
        own += served(world, environments) == world->env;
    assert_int_equal(own, OWN_RUNS);
    assert_ptr_not_equal(served(world, environments), world->env);
}

static void branches_take_one_turn_among_the_environments_of_their_project(void **state)
{
    struct world *world = *state;
    struct environment *environments[BRANCHES + 1] = { world->env };
    struct quota stored = { 0 }, project = { 0 }, together = { .outer = &project };
    engine_join_stored(world->engine, WORLD_ENV, &stored);
    for (uint32_t i = 1; i <= BRANCHES; i++) {
        environments[i] = engine_add_environment(world->engine, 10 + i, "branch", false);
        environments[i]->project_unfinished = &together;
        engine_join_stored(world->engine, 10 + i, &stored);
        world->env = environments[i];
        register_worker(world, "20260101.1", "hello,other", 3);
        trigger(world, (struct wish){ 0 });
    }
    world->env = environments[0];
    for (int i = 0; i < OWN_RUNS; i++)
        trigger(world, (struct wish){ 0 });
    int own = 0;
    for (int i = 0; i < 2 * OWN_RUNS; i++)
        own += served(world, environments) == world->env;
    assert_int_equal(own, OWN_RUNS);
    for (uint32_t i = 1; i <= BRANCHES; i++)
        environments[i]->project_unfinished = NULL; /* the quotas end here */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_of_a_plain_registration_needs_a_worker_with_its_code),
        TEST(deployed_only_worker_skips_plain_runs),
        TEST(promotion_moves_queued_runs_to_the_deployment),
        TEST(run_is_not_given_to_a_worker_without_capacity),
        TEST(run_that_takes_all_the_capacity_fits),
        TEST(run_that_is_given_back_too_often_fails),
        TEST(repeated_request_waits_once),
        TEST(request_repeated_twice_keeps_its_run),
        TEST(worker_without_environments_gets_no_run),
        TEST(repeated_request_during_the_commit_of_its_lease_gets_the_run),
        TEST(branches_of_a_project_share_one_turn),
        TEST(branches_take_one_turn_among_the_environments_of_their_project),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
