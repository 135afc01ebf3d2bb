/* Dequeues take tokens of rates: stored with the lease, given back if there is none. */
#include "tests/support/world/unit.h"

#include "core/engine/calls.h"
#include "core/state/rates.h"
#include "tests/support/world/calls.h"

enum { HOUR_MS = 3600 * 1000 };

static int create_world(void **state)
{
    struct world *world = world_create(NULL);
    const struct queue_settings hourly = { .total_rate = { 2, HOUR_MS } };
    register_worker(world, "20260101.1", "hello", 3);
    queues_configure(&world->env->queues, SLICE("task/hello"), &hourly);
    *state = world;
    return 0;
}

static int destroy_world(void **state)
{
    world_destroy(*state);
    return 0;
}

struct waiter {
    struct dequeue dequeue; /* must be first */
    enum err status;
    bool done;
};

static void on_dequeued(struct dequeue *dequeue, enum err status)
{
    struct waiter *waiter = container_of(dequeue, struct waiter, dequeue);
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

static uint32_t available(const struct world *world)
{
    const struct rate_place place = { .name = SLICE("task/hello") };
    struct rate_figures bucket = queues_bucket(&world->env->queues, place);
    return rate_available(bucket.rate, bucket.full_at,
                          loop_now_ms(world->loop) * RATE_NS_PER_MS);
}

static void a_held_dequeue_gets_a_run_when_a_token_comes_back(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    for (int i = 0; i < 3; i++)
        trigger(world, (struct wish){ 0 });
    assert_string_not_equal(dequeue(world), "");
    assert_string_not_equal(dequeue(world), "");
    wait_for_work(world, &waiter, HOUR_MS);
    world_pass(world, HOUR_MS / 2 - 100);
    assert_false(waiter.done);
    world_pass(world, 100);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, OK);
    assert_int_equal(available(world), 0);
}

struct scanning {
    struct store_scan scan;
    bool done;
};

static void on_scanned(struct store_read *read, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(read, struct scanning, scan.read)->done = true;
}

static void the_commit_of_a_lease_says_when_the_bucket_is_full(void **state)
{
    struct world *world = *state;
    struct scanning scanning = { .scan = { .read = { READ_SCAN, WORLD_ENV, on_scanned },
                                           .of_claims = true,
                                           .claim_kind = CLAIM_RATE } };
    trigger(world, (struct wish){ 0 });
    assert_string_not_equal(dequeue(world), "");
    world->store->ops->read(world->store, &scanning.scan.read);
    world_settle(world);
    assert_true(scanning.done);
    assert_int_equal(scanning.scan.count, 1);
    const struct document *claim = &scanning.scan.documents[0];
    assert_string_equal(claim->name->data, "[\"queue\",\"task/hello\"]");
    int64_t left_ms = claim->stale_at - loop_wall_ms(world->loop);
    assert_true(left_ms > HOUR_MS / 2 - 100 && left_ms <= HOUR_MS / 2);
    store_read_finish(&scanning.scan.read);
}

static void on_canceled(struct command *command, enum err status)
{
    (void)command;
    assert_int_equal(status, OK);
}

/* The run is canceled between its choice and the decision of its lease. */
static void a_lease_that_is_not_made_gives_its_token_back(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    struct cancel op = { 0 };
    struct triggered got = trigger(world, (struct wish){ 0 });
    wait_for_work(world, &waiter, 20);
    run_cancel(world->engine, world->env, slice_of(got.id), &op, on_canceled);
    loop_turn(world->loop, 0);
    assert_true(waiter.dequeue.holding);
    assert_int_equal(available(world), 1);
    world_pass(world, 100);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, ERR_NOT_FOUND);
    assert_int_equal(available(world), 2);
}

/* The lease may have been stored. */
static void a_failed_commit_keeps_its_token(void **state)
{
    struct world *world = *state;
    struct waiter waiter;
    struct triggered got = trigger(world, (struct wish){ 0 });
    fake_store_fault(world->fake)->countdown = 1;
    wait_for_work(world, &waiter, 20);
    world_settle(world);
    assert_true(waiter.done);
    assert_int_equal(waiter.status, ERR_STORE);
    assert_int_equal(available(world), 1);
    assert_string_equal(dequeue(world), got.id);
    assert_int_equal(available(world), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, create_world, destroy_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_held_dequeue_gets_a_run_when_a_token_comes_back),
        TEST(the_commit_of_a_lease_says_when_the_bucket_is_full),
        TEST(a_lease_that_is_not_made_gives_its_token_back),
        TEST(a_failed_commit_keeps_its_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
