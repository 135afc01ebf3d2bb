/* store_contract_report.c - what every driver must do: report commits once and in order.
 *
 * A commit may need several turns to be applied. */
#include "base/mem.h"
#include "tests/support/contract/store_contract_cases.h"

enum { CROWD = 300, PARTS = 3 };

struct crowd {
    struct store_commit reqs[CROWD];
    struct change changes[CROWD];
    int answered;
    uint64_t last_seq;
};

static struct crowd *crowd;

static void on_one_of_many(struct store_commit *req, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    assert_true(req->changes[0].seq > crowd->last_seq);
    crowd->last_seq = req->changes[0].seq;
    crowd->answered++;
}

static void begin(struct store_world *world, int i)
{
    crowd->changes[i] = new_run(ENV_A, i, "hello");
    crowd->reqs[i] = (struct store_commit){ .changes = &crowd->changes[i],
                                            .change_count = 1,
                                            .now_ms = FIRST_RUN_MS,
                                            .done = on_one_of_many };
    world->store->ops->commit(world->store, &crowd->reqs[i]);
}

static void commits_are_answered_once_in_the_order_of_their_positions(void **state)
{
    struct store_world *world = *state;
    crowd = mem_new(struct crowd);
    for (int i = 0; i < CROWD; i++)
        begin(world, i);
    assert_int_equal(crowd->answered, 0);
    while (crowd->answered < CROWD)
        world->turn(world);
    assert_int_equal(crowd->last_seq, CROWD);
    assert_int_equal(count_runs(world, ENV_A), CROWD);
    for (int i = 0; i < CROWD; i++)
        change_finish(&crowd->changes[i]);
    free(crowd);
}

/* Applied in parts; later commits of its environment are reported after the last part. */
struct slow {
    struct store_commit req;
    struct change change;
    int parts, parts_in_turn;
    bool done;
};

static struct slow slow;

static bool on_part(struct store_commit *req)
{
    assert_ptr_equal(req, &slow.req);
    assert_int_equal(req->status, STORE_OK);
    assert_int_equal(crowd->answered, 0);
    slow.parts_in_turn++;
    return ++slow.parts < PARTS;
}

static void on_slow(struct store_commit *req, enum store_status status)
{
    (void)req;
    assert_int_equal(status, STORE_OK);
    assert_int_equal(slow.parts, PARTS);
    assert_int_equal(crowd->answered, 0);
    slow.done = true;
}

static void a_commit_is_applied_in_turns_before_later_ones_are_reported(void **state)
{
    struct store_world *world = *state;
    crowd = mem_new(struct crowd);
    slow = (struct slow){ .change = new_run(ENV_A, CROWD, "hello") };
    slow.req = (struct store_commit){ .changes = &slow.change,
                                      .change_count = 1,
                                      .now_ms = FIRST_RUN_MS,
                                      .apply = on_part,
                                      .done = on_slow };
    world->store->ops->commit(world->store, &slow.req);
    for (int i = 0; i < 3; i++)
        begin(world, i);
    while (crowd->answered < 3) {
        slow.parts_in_turn = 0;
        world->turn(world);
        assert_in_range(slow.parts_in_turn, 0, 1);
    }
    assert_true(slow.done);
    for (int i = 0; i < 3; i++)
        change_finish(&crowd->changes[i]);
    change_finish(&slow.change);
    free(crowd);
}

static bool on_part_beside_another(struct store_commit *req)
{
    (void)req;
    slow.parts++;
    return !crowd->answered;
}

static void on_slow_after_another(struct store_commit *req, enum store_status status)
{
    (void)req;
    assert_int_equal(status, STORE_OK);
    slow.done = true;
}

/* The parts do not end before the other environment has its result. */
static void a_commit_that_is_applied_in_turns_delays_no_other_environment(void **state)
{
    struct store_world *world = *state;
    crowd = mem_new(struct crowd);
    slow = (struct slow){ .change = new_run(ENV_B, CROWD, "hello") };
    slow.req = (struct store_commit){ .changes = &slow.change,
                                      .change_count = 1,
                                      .now_ms = FIRST_RUN_MS,
                                      .apply = on_part_beside_another,
                                      .done = on_slow_after_another };
    world->store->ops->commit(world->store, &slow.req);
    begin(world, 0);
    for (int turns = 0; !slow.done && turns < 100000; turns++)
        world->turn(world);
    assert_int_equal(crowd->answered, 1);
    assert_true(slow.done);
    change_finish(&crowd->changes[0]);
    change_finish(&slow.change);
    free(crowd);
}

static void on_lost(struct store_commit *req, enum store_status status)
{
    (void)req;
    assert_int_equal(status, STORE_LOST);
    slow.done = true;
}

/* A failed commit has nothing to apply. */
static void a_commit_that_lost_is_not_applied(void **state)
{
    struct store_world *world = *state;
    crowd = mem_new(struct crowd);
    struct change change = new_run(ENV_A, 1, "hello");
    change.expected = 5;
    change.marks = 0;
    slow = (struct slow){ .change = change };
    slow.req = (struct store_commit){ .changes = &slow.change,
                                      .change_count = 1,
                                      .now_ms = FIRST_RUN_MS,
                                      .apply = on_part,
                                      .done = on_lost };
    world->store->ops->commit(world->store, &slow.req);
    while (!slow.done)
        world->turn(world);
    assert_int_equal(slow.parts, 0);
    change_finish(&slow.change);
    free(crowd);
}

const struct CMUnitTest store_report_cases[] = {
    cmocka_unit_test(commits_are_answered_once_in_the_order_of_their_positions),
    cmocka_unit_test(a_commit_is_applied_in_turns_before_later_ones_are_reported),
    cmocka_unit_test(a_commit_that_is_applied_in_turns_delays_no_other_environment),
    cmocka_unit_test(a_commit_that_lost_is_not_applied),
};
const size_t store_report_case_count =
    sizeof(store_report_cases) / sizeof(store_report_cases[0]);
