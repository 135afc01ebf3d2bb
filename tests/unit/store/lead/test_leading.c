/* Which of several gateways on one database leads: one stops, is cut off or comes back. */
#include "tests/unit/store/lead/gateways.h"

/* ---- one gateway ---- */

static void single_gateway_leads_at_once(void **state)
{
    (void)state;
    struct process *only = start("a", &alone);
    assert_int_equal(only->taken, 0); /* not called from within the start */
    pass(TURN_MS);
    assert_int_equal(only->taken, 1);
    assert_why_not(only, "starting");
    leading_loaded(only->leading);
    pass(60000);
    assert_true(leads(only));
    assert_int_equal(only->beats + only->lost, 0);
}

static void database_without_a_leader_is_taken_with_the_first_beat(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    assert_why_not(a, "standby");
    pass(TURN_MS);
    assert_int_equal(a->taken, 1);
    assert_int_equal(a->standby, 0);
    assert_why_not(a, "starting");
    leading_loaded(a->leading);
    assert_true(leads(a));
}

static void gateway_beats_once_a_second(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    unsigned before = a->beats;
    pass(10000);
    assert_int_equal(a->beats - before, 10);
}

static void take_with_an_unknown_result_is_retried(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    a->refused = true;
    pass(TURN_MS);
    assert_int_equal(a->taken, 0);
    pass(1000);
    assert_int_equal(a->taken, 1);
}

/* ---- two gateways ---- */

static void second_gateway_stands_by_while_the_leader_beats(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(120000);
    assert_true(leads(a));
    assert_int_equal(b->taken, 0);
    assert_int_equal(b->standby, 1);
    assert_why_not(b, "standby");
}

static void gateway_stands_by_until_the_database_answers(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    a->cut = true;
    pass(3000);
    assert_int_equal(a->standby, 1);
    a->cut = false;
    pass(1000);
    assert_int_equal(a->taken, 1);
    assert_int_equal(a->standby, 1);
}

static void standby_takes_over_five_seconds_after_the_leader_is_suspended(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->stopped = true;
    pass(4000);
    assert_int_equal(b->taken, 0);
    pass(2500);
    assert_int_equal(b->taken, 1);
}

/* It is suspended between two beats: a live gateway beats once a second. */
static void standby_takes_over_as_soon_as_the_leader_counts_as_dead(void **state)
{
    (void)state;
    world.dead_ms = 5300;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    a->pooled = true;
    pass(10000);
    unsigned before = b->beats;
    pass(10000);
    assert_int_equal(b->beats - before, 10);
    a->stopped = true;
    for (before = b->beats; b->beats == before;)
        pass(TURN_MS);
    pass(5200);
    assert_int_equal(b->taken, 0);
    pass(200);
    assert_int_equal(b->taken, 1);
}

static void standby_takes_over_with_the_next_beat_after_the_leader_left(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(3000);
    a->stopped = true;
    a->id = 0;
    pass(1000);
    assert_int_equal(b->taken, 1);
}

/* In the very turn in which it continues, before it has received anything. */
static void stopped_leader_answers_no_client_when_it_continues(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->stopped = true;
    pass(20000);
    assert_int_equal(b->taken, 1);
    loop_turn(a->loop, 20000);
    assert_why_not(a, "no_beat");
    a->stopped = false;
    pass(1000);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
    pass(10000);
    assert_int_equal(a->lost, 1); /* only once */
}

static void leader_without_a_database_stops_answering_before_another_leads(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->cut = true;
    while (!b->taken) {
        pass(TURN_MS);
        assert_false(leads(a) && b->taken);
    }
    assert_why_not(a, "no_beat");
    a->cut = false;
    pass(2000);
    assert_int_equal(a->lost, 1);
}

static void lone_leader_continues_when_the_database_answers_again(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->cut = true;
    pass(60000);
    assert_why_not(a, "no_beat");
    a->cut = false;
    pass(2000);
    assert_true(leads(a));
    assert_int_equal(a->lost, 0);
}

/* The database was down: the gateway that led before leads again. */
static void no_gateway_counts_as_dead_after_a_database_restart(void **state)
{
    (void)state;
    for (int64_t down_ms = 500; down_ms <= 32000; down_ms *= 4) {
        open_world(NULL);
        struct process *a = start_and_lead("a"), *b = start("b", &several);
        pass(10000);
        a->cut = b->cut = true;
        pass(down_ms);
        b->cut = false;
        pass(4000); /* the first one needs longer to reconnect */
        a->cut = false;
        pass(20000);
        assert_true(leads(a));
        assert_int_equal(b->taken, 0);
        close_world(NULL);
        world.count = 0;
    }
}

static void only_one_of_two_standbys_takes_over(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several),
                   *c = start("c", &several);
    pass(10000);
    a->stopped = true;
    pass(30000);
    assert_int_equal(b->taken + c->taken, 1);
    assert_int_equal(b->lost + c->lost, 0);
}

/* A statement of the database reports the lost lead before any beat does. */
static void rejected_commit_ends_the_lead_at_once(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    pass(500);
    a->store.on_moved(a->store.moved_owner);
    assert_why_not(a, "standby");
    assert_int_equal(a->lost, 0); /* not called from within on_moved */
    pass(TURN_MS);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
}

static void older_gateway_of_the_same_name_ends_for_good(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->id = 0;
    struct process *again = start("a", &several);
    pass(1500);
    assert_int_equal(again->taken, 1);
    assert_int_equal(a->lost, 1);
    assert_true(a->for_good);
    assert_non_null(strstr(a->reason, "--gateway-name"));
}

static void gateway_whose_row_is_gone_joins_again(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->id = 0;
    pass(1500);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
}

static void draining_gateway_does_not_take_the_lead(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    leading_drain(a->leading);
    pass(10000);
    assert_int_equal(a->taken, 0);
}

static void gateway_that_cannot_store_everything_leaves_the_lead_to_others(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(1000);
    leading_refrain(b->leading, "it is of an earlier version");
    pass(2000);
    assert_false(leading_has_successor(a->leading));
    struct process *c = start("c", &several);
    pass(2000);
    assert_true(leading_has_successor(a->leading));
    a->stopped = true;
    a->id = 0;
    pass(10000);
    assert_int_equal(b->taken, 0);
    assert_int_equal(c->taken, 1);
}

static void gateway_that_finds_out_while_it_loads_loses_the_lead(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    pass(10000);
    assert_int_equal(a->taken, 1);
    leading_refrain(a->leading, "it lacks the encryption key");
    pass(1000);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
}

static void gateway_with_a_wrong_clock_does_not_take_the_lead(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    a->ahead_ms = 31000;
    pass(5000);
    assert_int_equal(a->taken, 0);
    a->ahead_ms = 29000;
    pass(2000);
    assert_int_equal(a->taken, 1);
}

static void standby_knows_the_leader(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    assert_null(leading_leader(b->leading)); /* no response yet */
    pass(100);
    assert_int_equal(leading_leader(b->leading)->id, a->id);
    assert_null(leading_leader(a->leading));
    a->id = 0;
    pass(2000);
    assert_int_equal(b->taken, 1);
    assert_null(leading_leader(b->leading));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(single_gateway_leads_at_once),
        TEST(database_without_a_leader_is_taken_with_the_first_beat),
        TEST(gateway_beats_once_a_second),
        TEST(take_with_an_unknown_result_is_retried),
        TEST(gateway_stands_by_until_the_database_answers),
        TEST(second_gateway_stands_by_while_the_leader_beats),
        TEST(standby_takes_over_five_seconds_after_the_leader_is_suspended),
        TEST(standby_takes_over_as_soon_as_the_leader_counts_as_dead),
        TEST(standby_takes_over_with_the_next_beat_after_the_leader_left),
        TEST(stopped_leader_answers_no_client_when_it_continues),
        TEST(leader_without_a_database_stops_answering_before_another_leads),
        TEST(lone_leader_continues_when_the_database_answers_again),
        TEST(no_gateway_counts_as_dead_after_a_database_restart),
        TEST(only_one_of_two_standbys_takes_over),
        TEST(rejected_commit_ends_the_lead_at_once),
        TEST(older_gateway_of_the_same_name_ends_for_good),
        TEST(gateway_whose_row_is_gone_joins_again),
        TEST(draining_gateway_does_not_take_the_lead),
        TEST(gateway_that_cannot_store_everything_leaves_the_lead_to_others),
        TEST(gateway_that_finds_out_while_it_loads_loses_the_lead),
        TEST(gateway_with_a_wrong_clock_does_not_take_the_lead),
        TEST(standby_knows_the_leader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
