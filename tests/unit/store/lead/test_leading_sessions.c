/* A leader registers the session of its beats: it is replaced sooner if it is killed, and
 * doubts sooner. */
#include "store/lead/observation.h"
#include "tests/unit/store/lead/gateways.h"

enum { SEEDS = 300, TROUBLES = 40 };

/* Passes a turn. A gateway that has taken the lead leads at once. */
static void pass_turn(void)
{
    pass(TURN_MS);
    for (size_t i = 0; i < world.count; i++)
        if (world.all[i].taken && !world.all[i].lost && !world.all[i].stopped)
            leading_loaded(world.all[i].leading);
}

static int64_t pass_until_taken(const struct process *process)
{
    int64_t began_ms = world.now_ms;
    while (!process->taken && world.now_ms - began_ms < 60000)
        pass_turn();
    return world.now_ms - began_ms;
}

/* Starts a leader and a standby that know each other. */
static void start_both(struct process **a, struct process **b)
{
    *a = start_and_lead("a");
    *b = start("b", &several);
    pass(10000);
    assert_int_equal((*a)->doubts, 0);
}

/* ---- the leader ---- */

static void killed_leader_is_replaced_in_about_two_seconds(void **state)
{
    (void)state;
    struct process *a, *b;
    start_both(&a, &b);
    kill_process(a);
    int64_t took_ms = pass_until_taken(b);
    assert_in_range(took_ms, SESSION_DEAD_MS, SESSION_DEAD_MS + 700);
}

static void suspended_leader_is_replaced_after_dead_after(void **state)
{
    (void)state;
    struct process *a, *b;
    start_both(&a, &b);
    a->stopped = true;
    assert_in_range(pass_until_taken(b), 4800, 5300);
}

static void leader_with_a_session_doubts_one_second_after_its_last_beat(void **state)
{
    (void)state;
    struct process *a, *b;
    start_both(&a, &b);
    assert_in_range(leading_grant_ms(a->leading), 700, SESSION_TRUST_MS + 1);
    a->cut = true;
    pass(600);
    assert_true(leads(a));
    pass(500);
    assert_why_not(a, "no_beat");
    assert_int_equal(a->doubts, 1);
    a->cut = false;
    pass(300);
    assert_int_equal(a->certain, 1);
    assert_int_equal(b->taken, 0);
}

/* From the sending on the shorter time counts, which began with the last answered beat. */
static void registering_a_session_leaves_trust(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    pass(1000);
    while (!a->registered) {
        loop_turn(a->loop, TURN_MS);
        assert_true(leading_grant_ms(a->leading) >= SESSION_TRUST_MS / 2);
        if (a->beating)
            answer_beat(a);
    }
    pass(10000);
    assert_int_equal(a->doubts, 0);
    assert_int_equal(b->registered, 0);
}

/* A follower that is cut off together with the leader trusts itself until the last time
 * granted. */
static void session_is_not_registered_while_followers_trust_it_for_longer(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    int64_t began_ms = loop_boot_ms(a->loop), granted_ms = leading_grant_ms(a->leading);
    assert_in_range(granted_ms, 2900, 4001);
    start("b", &several);
    while (!a->registered) {
        pass(TURN_MS);
        assert_true(a->registered || leading_grant_ms(a->leading) > 0);
    }
    int64_t took_ms = loop_boot_ms(a->loop) - began_ms;
    assert_in_range(took_ms, granted_ms - SESSION_TRUST_MS, granted_ms);
    assert_int_equal(a->doubts, 0);
}

static void assert_trusts_for_four_seconds(struct process *a)
{
    assert_in_range(leading_grant_ms(a->leading), 2900, 4001);
    a->cut = true;
    pass(2500);
    assert_true(leads(a));
}

static void lone_leader_trusts_itself_for_four_seconds(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a");
    pass(10000);
    assert_trusts_for_four_seconds(a);
}

static void leader_behind_a_pooler_trusts_itself_for_four_seconds(void **state)
{
    (void)state;
    struct process *a = start_and_lead("a"), *b = start("b", &several);
    a->pooled = true;
    pass(10000);
    unsigned before = a->beats;
    pass(10000);
    assert_int_equal(a->beats - before, 10);
    assert_trusts_for_four_seconds(a);
    kill_process(a);
    assert_in_range(pass_until_taken(b), 2000, 5300);
}

static void leader_with_slow_beats_registers_no_session(void **state)
{
    (void)state;
    struct process *a, *b;
    world.beat_ms = 1200;
    world.dead_ms = 6000;
    start_both(&a, &b);
    assert_int_equal(a->registered, 0);
}

static void leader_whose_only_standby_has_ended_trusts_itself_for_four_seconds(void **state)
{
    (void)state;
    struct process *a, *b;
    start_both(&a, &b);
    b->stopped = true;
    b->id = 0;
    pass(2000);
    assert_int_equal(a->registered, 0);
    assert_trusts_for_four_seconds(a);
}

/* ---- a session that ends while the leader lives ---- */

static void leader_that_reconnects_keeps_the_lead(void **state)
{
    (void)state;
    struct process *a, *b;
    start_both(&a, &b);
    for (int i = 0; i < 50; i++) {
        end_session(a);
        pass(300);
        assert_true(leads(a));
    }
    assert_int_equal(b->taken + a->doubts, 0);
}

static void leader_that_cannot_reconnect_stops_before_another_one_leads(void **state)
{
    (void)state;
    for (int64_t away_ms = 200; away_ms <= 6000; away_ms += 200) {
        struct process *a, *b;
        start_both(&a, &b);
        end_session(a);
        a->cut = true;
        for (int64_t ms = 0; ms < 10000; ms += TURN_MS) {
            a->cut = ms < away_ms;
            pass_turn();
            assert_false(leads(a) && leads(b));
        }
        assert_true(leads(a) || leads(b));
        assert_int_equal(a->lost, b->taken);
        assert_false(b->taken && away_ms < SESSION_DEAD_MS);
        close_world(NULL);
        open_world(NULL);
    }
}

/* A crash of the database ends all sessions, also if its server process lives on. */
static void end_of_all_sessions_leaves_the_leader_its_full_time(void **state)
{
    (void)state;
    for (int64_t away_ms = 0; away_ms <= 4000; away_ms += 200) {
        struct process *a, *b;
        start_both(&a, &b);
        end_session(a);
        end_session(b);
        a->cut = away_ms;
        pass(away_ms);
        a->cut = false;
        pass(10000);
        assert_true(leads(a));
        assert_int_equal(b->taken, 0);
        close_world(NULL);
        open_world(NULL);
    }
}

/* ---- drawn troubles ---- */

static uint64_t seed;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (unsigned)(seed >> 33) % below;
}

static void trouble(struct process *process)
{
    switch (draw(5)) {
    case 0: end_session(process); break;
    case 1: process->cut = true; break;
    case 2: process->stopped = true; break;
    default: process->cut = process->stopped = false; break;
    }
}

static void assert_one_leads_at_most(void)
{
    int count = 0;
    for (size_t i = 0; i < world.count; i++)
        count += !world.all[i].stopped && leads(&world.all[i]);
    assert_in_range(count, 0, 1);
}

static void two_gateways_never_lead_at_once(void **state)
{
    (void)state;
    unsigned takes = 0;
    for (unsigned n = 1; n <= SEEDS; n++) {
        seed = n;
        start_and_lead("a");
        start("b", &several);
        start("c", &several);
        pass(7000);
        for (int i = 0; i < TROUBLES; i++) {
            trouble(&world.all[draw(3)]);
            for (unsigned turns = draw(30); turns; turns--) {
                pass_turn();
                assert_one_leads_at_most();
            }
        }
        for (size_t i = 1; i < world.count; i++)
            takes += world.all[i].taken;
        close_world(NULL);
        open_world(NULL);
    }
    assert_true(takes > SEEDS / 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(killed_leader_is_replaced_in_about_two_seconds),
        TEST(suspended_leader_is_replaced_after_dead_after),
        TEST(leader_with_a_session_doubts_one_second_after_its_last_beat),
        TEST(registering_a_session_leaves_trust),
        TEST(session_is_not_registered_while_followers_trust_it_for_longer),
        TEST(lone_leader_trusts_itself_for_four_seconds),
        TEST(leader_behind_a_pooler_trusts_itself_for_four_seconds),
        TEST(leader_with_slow_beats_registers_no_session),
        TEST(leader_whose_only_standby_has_ended_trusts_itself_for_four_seconds),
        TEST(leader_that_reconnects_keeps_the_lead),
        TEST(leader_that_cannot_reconnect_stops_before_another_one_leads),
        TEST(end_of_all_sessions_leaves_the_leader_its_full_time),
        TEST(two_gateways_never_lead_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
