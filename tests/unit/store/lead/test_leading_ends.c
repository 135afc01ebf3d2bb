/* A leader that is in doubt, hands the lead over, or removes the rows of others. */
#include "tests/unit/store/lead/gateways.h"

/* ---- doubt ---- */

static void leader_without_a_database_doubts_until_the_next_answer(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    pass(60000);
    assert_int_equal(a->doubts + a->certain, 0);
    a->cut = true;
    pass(4000 + TURN_MS);
    assert_int_equal(a->doubts, 1);
    assert_why_not(a, "no_beat");
    pass(60000);
    assert_int_equal(a->doubts, 1);
    assert_int_equal(a->certain, 0);
    a->cut = false;
    pass(1000);
    assert_int_equal(a->certain, 1);
    assert_true(leads(a));
    a->cut = true;
    pass(5000);
    assert_int_equal(a->doubts, 2);
}

static void rejected_commit_puts_the_leader_in_doubt_at_once(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->store.on_moved(a->store.moved_owner);
    assert_int_equal(a->doubts, 1);
    pass(TURN_MS);
    assert_int_equal(a->lost, 1);
    assert_int_equal(a->certain, 0);
}

/* ---- a planned end ---- */

static void handed_over_lead_is_taken_without_waiting_for_a_beat(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    assert_false(leading_has_successor(a->leading));
    struct process *b = start("b", &several);
    pass(10000);
    assert_true(leading_has_successor(a->leading));
    assert_false(leading_has_successor(b->leading));
    leading_hand_over(a->leading, on_left);
    assert_false(leads(a));
    assert_int_equal(a->left, 0); /* not called from within the call */
    pass(3 * TURN_MS);
    assert_int_equal(a->left, 1);
    assert_int_equal(b->taken, 1);
    a->store.on_moved(a->store.moved_owner); /* one of its statements was in flight */
    unsigned before = a->beats;
    pass(10000);
    assert_int_equal(a->lost + a->doubts, 0);
    assert_int_equal(a->beats, before);
}

static void leader_stops_leading_even_if_the_handover_fails(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->cut = true;
    leading_hand_over(a->leading, on_left);
    pass(TURN_MS);
    assert_int_equal(a->left, 1);
    assert_why_not(a, "standby");
    pass(7000);
    assert_int_equal(b->taken, 1);
}

static void dead_or_draining_gateway_is_not_a_successor(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    b->stopped = true;
    pass(7000);
    assert_false(leading_has_successor(a->leading));
    struct process *c = start("c", &several);
    pass(3000);
    assert_true(leading_has_successor(a->leading));
    leading_drain(c->leading);
    pass(3000);
    assert_false(leading_has_successor(a->leading));
}

static void pass_until_it_has_beaten(const struct process *process)
{
    unsigned before = process->beats;
    while (process->beats == before)
        pass(TURN_MS);
}

/* As when all gateways are stopped at once. */
static void standby_that_drains_is_at_once_not_a_successor(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    assert_true(leading_has_successor(a->leading));
    leading_drain(a->leading);
    leading_drain(b->leading);
    pass(2 * TURN_MS);
    leading_ask_successor(a->leading);
    assert_true(leading_asks_successor(a->leading));
    pass(2 * TURN_MS);
    assert_false(leading_asks_successor(a->leading));
    assert_false(leading_has_successor(a->leading));
}

static void gateway_that_just_joined_can_succeed_a_draining_leader(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    pass_until_it_has_beaten(a);
    start("b", &several);
    pass(TURN_MS);
    assert_false(leading_has_successor(a->leading));
    assert_false(leading_asks_successor(a->leading));
    leading_drain(a->leading);
    assert_true(leading_asks_successor(a->leading));
    pass(TURN_MS);
    assert_true(leading_has_successor(a->leading));
    assert_false(leading_asks_successor(a->leading));
}

static void beat_in_flight_does_not_decide_the_successor(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    loop_turn(a->loop, 1000); /* a beat is in flight */
    leading_drain(a->leading);
    answer_beat(a);
    assert_true(leading_asks_successor(a->leading));
    start("b", &several);
    pass(TURN_MS);
    assert_true(leading_has_successor(a->leading));
    assert_false(leading_asks_successor(a->leading));
}

static void lone_draining_leader_asks_for_a_successor_once(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    leading_drain(a->leading);
    assert_false(leading_has_successor(a->leading)); /* while that beat is in flight */
    pass(TURN_MS);
    assert_false(leading_has_successor(a->leading));
    assert_false(leading_asks_successor(a->leading));
}

static void draining_leader_without_a_database_asks_for_a_successor_once(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    a->cut = true;
    leading_drain(a->leading);
    pass(TURN_MS);
    assert_false(leading_asks_successor(a->leading));
}

static void gateway_with_its_own_database_asks_for_no_successor(void **state)
{
    (void)state;
    struct process *only = start("a", &alone);
    pass(TURN_MS);
    leading_loaded(only->leading);
    leading_drain(only->leading);
    assert_false(leading_asks_successor(only->leading));
    assert_false(leading_has_successor(only->leading));
    assert_int_equal(only->beats, 0);
    assert_true(leads(only));
}

static void gateway_that_does_not_get_the_lead_is_notified_of_the_leader(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several),
                   *c = start("c", &several);
    pass(10000);
    leading_hand_over(a->leading, on_left);
    pass(3000);
    assert_int_equal(b->taken + c->taken, 1);
    assert_int_equal(b->others + c->others, 1);
    assert_int_equal((b->taken ? c : b)->others, 1);
}

/* ---- the successor of a leader that drains ---- */

/* a leads; all have an address for their peers. */
static void open_three(struct process *all[GATEWAYS])
{
    all[0] = start_and_lead("a");
    all[1] = start("b", &several);
    all[2] = start("c", &several);
    for (size_t i = 0; i < GATEWAYS; i++)
        all[i]->serves = true;
    pass(10000);
}

static uint64_t hand_over(struct process *leader)
{
    pass(3000); /* it has seen the beats of the others */
    leading_hand_over(leader->leading, on_left);
    pass(3 * TURN_MS);
    assert_int_equal(leader->left, 1);
    return leader->named;
}

static void lead_is_handed_over_to_the_gateway_that_joined_first(void **state)
{
    struct process *all[GATEWAYS];
    (void)state;
    open_three(all);
    assert_int_equal(hand_over(all[0]), all[1]->id);
    assert_int_equal(all[1]->taken, 1);
    assert_int_equal(all[2]->taken, 0);
}

static void gateway_that_drains_is_not_named_as_successor(void **state)
{
    struct process *all[GATEWAYS];
    (void)state;
    open_three(all);
    leading_drain(all[1]->leading);
    assert_int_equal(hand_over(all[0]), all[2]->id);
    assert_int_equal(all[2]->taken, 1);
}

static void gateway_that_must_not_lead_is_not_named_as_successor(void **state)
{
    struct process *all[GATEWAYS];
    (void)state;
    open_three(all);
    leading_refrain(all[1]->leading, "it has an old version");
    assert_int_equal(hand_over(all[0]), all[2]->id);
    assert_int_equal(all[2]->taken, 1);
}

static void dead_gateway_is_not_named_as_successor(void **state)
{
    struct process *all[GATEWAYS];
    (void)state;
    open_three(all);
    all[1]->stopped = true;
    pass(7000);
    assert_int_equal(hand_over(all[0]), all[2]->id);
}

static void gateway_without_an_address_for_peers_is_not_named_as_successor(void **state)
{
    struct process *all[GATEWAYS];
    (void)state;
    open_three(all);
    all[1]->serves = false;
    assert_int_equal(hand_over(all[0]), all[2]->id);
}

static void no_gateway_is_named_if_none_can_lead(void **state)
{
    struct process *all[GATEWAYS];
    (void)state;
    open_three(all);
    leading_drain(all[1]->leading);
    leading_refrain(all[2]->leading, "it has an old version");
    assert_int_equal(hand_over(all[0]), 0);
}

/* ---- a lead that is handed over by hand ---- */

static void lead_is_passed_to_the_named_gateway(void **state)
{
    (void)state;
    struct failure why;
    struct process *a = start_and_lead("a"), *b = start("b", &several),
                   *c = start("c", &several);
    pass(10000);
    assert_int_equal(leading_pass(a->leading, "c", &why), OK);
    assert_why_not(a, "standby");
    assert_int_equal(a->doubts, 1);
    assert_int_equal(a->lost, 0); /* not called from within the call */
    pass(3 * TURN_MS);
    assert_int_equal(a->lost, 1);
    assert_false(a->for_good);
    assert_int_equal(c->taken, 1);
    pass(10000);
    assert_int_equal(b->taken, 0);
    assert_int_equal(b->others, 1);
}

static void lead_that_its_successor_does_not_take_is_taken_by_another_gateway(void **state)
{
    (void)state;
    struct failure why;
    struct process *a = start_and_lead("a"), *b = start("b", &several),
                   *c = start("c", &several);
    pass(10000);
    assert_int_equal(leading_pass(a->leading, "c", &why), OK);
    c->stopped = true;
    pass(800);
    assert_int_equal(b->taken, 0);
    pass(1000);
    assert_int_equal(b->taken, 1);
}

static void lead_is_passed_only_to_a_gateway_that_can_take_it(void **state)
{
    (void)state;
    struct failure why;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    assert_int_equal(leading_pass(b->leading, "a", &why), ERR_INVALID);
    assert_int_equal(leading_pass(a->leading, "a", &why), ERR_INVALID);
    assert_int_equal(leading_pass(a->leading, "c", &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "\"c\""));
    b->stopped = true;
    pass(7000);
    assert_int_equal(leading_pass(a->leading, "b", &why), ERR_INVALID);
    b->stopped = false;
    leading_drain(b->leading);
    pass(3000);
    assert_int_equal(leading_pass(a->leading, "b", &why), ERR_INVALID);
    assert_true(leads(a));
}

static void leader_that_passes_its_lead_without_a_database_has_lost_it(void **state)
{
    (void)state;
    struct failure why;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->cut = true;
    assert_int_equal(leading_pass(a->leading, "b", &why), OK);
    pass(TURN_MS);
    assert_int_equal(a->lost, 1);
    pass(7000);
    assert_int_equal(b->taken, 1);
}

static void leader_in_doubt_does_not_pass_its_lead(void **state)
{
    (void)state;
    struct failure why;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    a->cut = b->cut = true;
    pass(4000 + TURN_MS);
    assert_why_not(a, "no_beat");
    assert_int_equal(leading_pass(a->leading, "b", &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "the database does not respond"));
    a->cut = b->cut = false;
    pass(2000);
    assert_true(leads(a));
    assert_int_equal(a->lost, 0);
    assert_int_equal(leading_pass(a->leading, "b", &why), OK);
}

/* ---- gateways that are gone ---- */

static void rows_of_dead_gateways_are_removed_after_an_hour(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(10000);
    b->stopped = true;
    pass(3590 * 1000);
    assert_int_not_equal(b->id, 0);
    pass(20 * 1000);
    assert_int_equal(b->id, 0);
    assert_true(leads(a));
    b->stopped = false;
    pass(2000);
    assert_int_equal(b->lost, 1);
    assert_false(b->for_good);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(leader_without_a_database_doubts_until_the_next_answer),
        TEST(rows_of_dead_gateways_are_removed_after_an_hour),
        TEST(rejected_commit_puts_the_leader_in_doubt_at_once),
        TEST(handed_over_lead_is_taken_without_waiting_for_a_beat),
        TEST(leader_stops_leading_even_if_the_handover_fails),
        TEST(dead_or_draining_gateway_is_not_a_successor),
        TEST(standby_that_drains_is_at_once_not_a_successor),
        TEST(gateway_that_just_joined_can_succeed_a_draining_leader),
        TEST(beat_in_flight_does_not_decide_the_successor),
        TEST(lone_draining_leader_asks_for_a_successor_once),
        TEST(draining_leader_without_a_database_asks_for_a_successor_once),
        TEST(gateway_with_its_own_database_asks_for_no_successor),
        TEST(gateway_that_does_not_get_the_lead_is_notified_of_the_leader),
        TEST(lead_is_handed_over_to_the_gateway_that_joined_first),
        TEST(gateway_that_drains_is_not_named_as_successor),
        TEST(gateway_that_must_not_lead_is_not_named_as_successor),
        TEST(dead_gateway_is_not_named_as_successor),
        TEST(gateway_without_an_address_for_peers_is_not_named_as_successor),
        TEST(no_gateway_is_named_if_none_can_lead),
        TEST(lead_is_passed_to_the_named_gateway),
        TEST(lead_that_its_successor_does_not_take_is_taken_by_another_gateway),
        TEST(lead_is_passed_only_to_a_gateway_that_can_take_it),
        TEST(leader_in_doubt_does_not_pass_its_lead),
        TEST(leader_that_passes_its_lead_without_a_database_has_lost_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
