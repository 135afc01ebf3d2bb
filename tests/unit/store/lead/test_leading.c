/* Which of several gateways on one database leads: one stops, is cut off or comes back. */
#include "tests/unit/store/lead/gateways.h"

/* ---- one gateway ---- */

static void a_database_of_one_process_is_led_at_once(void **state)
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

static void what_nobody_leads_is_taken_with_the_first_beat(void **state)
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

static void it_beats_once_a_second(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    unsigned before = a->beats;
    pass(10000);
    assert_int_equal(a->beats - before, 10);
}

static void a_take_of_which_nobody_knows_is_tried_again(void **state)
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

static void a_second_one_stands_by_as_long_as_the_first_one_beats(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(120000);
    assert_true(leads(a));
    assert_int_equal(b->taken, 0);
    assert_int_equal(b->standby, 1);
    assert_why_not(b, "standby");
}

static void one_without_a_database_stands_by_until_it_answers(void **state)
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

static void one_that_was_killed_is_followed_after_five_seconds(void **state)
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

/* It was killed between two beats: a live gateway beats once a second. */
static void one_that_was_killed_is_followed_when_it_is_dead_and_not_later(void **state)
{
    (void)state;
    world.dead_ms = 5300;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    unsigned before = b->beats;
    pass(10000);
    assert_int_equal(b->beats - before, 10);
    before = a->beats;
    while (a->beats == before)
        pass(TURN_MS);
    a->stopped = true;
    pass(5000);
    assert_int_equal(b->taken, 0);
    pass(500);
    assert_int_equal(b->taken, 1);
}

static void one_that_has_left_is_followed_with_the_next_beat(void **state)
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
static void one_that_was_stopped_answers_nobody_when_it_goes_on(void **state)
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

static void one_that_is_cut_off_stops_to_answer_before_another_begins(void **state)
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

static void one_that_is_cut_off_and_alone_goes_on_when_it_hears_again(void **state)
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
static void after_a_restart_of_the_database_nobody_is_dead(void **state)
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

static void of_two_that_stand_by_one_takes_over(void **state)
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
static void a_commit_that_was_refused_ends_the_lead_in_that_moment(void **state)
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

static void of_two_of_one_name_the_older_one_ends_for_good(void **state)
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

static void one_whose_row_is_gone_begins_anew(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->id = 0;
    pass(1500);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
}

static void one_that_is_about_to_end_takes_nothing(void **state)
{
    (void)state;
    struct process *a = start("a", &several);
    leading_drain(a->leading);
    pass(10000);
    assert_int_equal(a->taken, 0);
}

static void one_whose_clock_is_wrong_by_more_than_half_a_minute_takes_nothing(void **state)
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(a_database_of_one_process_is_led_at_once),
        TEST(what_nobody_leads_is_taken_with_the_first_beat),
        TEST(it_beats_once_a_second),
        TEST(a_take_of_which_nobody_knows_is_tried_again),
        TEST(one_without_a_database_stands_by_until_it_answers),
        TEST(a_second_one_stands_by_as_long_as_the_first_one_beats),
        TEST(one_that_was_killed_is_followed_after_five_seconds),
        TEST(one_that_was_killed_is_followed_when_it_is_dead_and_not_later),
        TEST(one_that_has_left_is_followed_with_the_next_beat),
        TEST(one_that_was_stopped_answers_nobody_when_it_goes_on),
        TEST(one_that_is_cut_off_stops_to_answer_before_another_begins),
        TEST(one_that_is_cut_off_and_alone_goes_on_when_it_hears_again),
        TEST(after_a_restart_of_the_database_nobody_is_dead),
        TEST(of_two_that_stand_by_one_takes_over),
        TEST(a_commit_that_was_refused_ends_the_lead_in_that_moment),
        TEST(of_two_of_one_name_the_older_one_ends_for_good),
        TEST(one_whose_row_is_gone_begins_anew),
        TEST(one_that_is_about_to_end_takes_nothing),
        TEST(one_whose_clock_is_wrong_by_more_than_half_a_minute_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
