/* A gateway finds out which others are alive: by changing beats and its own clock only. */
#include "store/lead/observation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { DEAD_MS = 5000, BEAT_MS = 1000, ME = 1, OTHER = 2 };

struct scene {
    struct observation observation;
    int64_t now_ms;
    uint64_t beats; /* of the other gateway */
};

static int open_scene(void **state)
{
    static struct scene scene;
    scene = (struct scene){ .now_ms = 1000000 };
    observation_init(&scene.observation, DEAD_MS, BEAT_MS, scene.now_ms);
    *state = &scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    observation_finish(&scene->observation);
    return 0;
}

/* My beat is answered at once. */
static void hear(struct scene *scene)
{
    struct store_gateway gateways[] = { { .id = ME, .beat = (uint64_t)scene->now_ms },
                                        { .id = OTHER, .beat = scene->beats } };
    struct store_beat answer = { .gateways = gateways, .gateway_count = 2 };
    observation_answer(&scene->observation, scene->now_ms, scene->now_ms, &answer);
}

/* Lets seconds pass in which my beats are answered. */
static void pass(struct scene *scene, int seconds, bool other_beats)
{
    for (int i = 0; i < seconds; i++) {
        scene->now_ms += BEAT_MS;
        scene->beats += other_beats;
        hear(scene);
    }
}

static bool other_is_dead(const struct scene *scene)
{
    return observation_dead_in(&scene->observation, OTHER, scene->now_ms) == 0;
}

static void beating_gateway_is_alive(void **state)
{
    struct scene *scene = *state;
    pass(scene, 100, true);
    assert_false(other_is_dead(scene));
}

static void gateway_without_a_beat_for_five_seconds_is_dead(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    pass(scene, 4, false);
    assert_false(other_is_dead(scene));
    pass(scene, 1, false);
    assert_true(other_is_dead(scene));
    pass(scene, 1, true);
    assert_false(other_is_dead(scene));
}

static void time_until_a_gateway_counts_as_dead_is_known(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(observation_dead_in(&scene->observation, OTHER, scene->now_ms),
                     INT64_MAX);
    pass(scene, 10, true);
    assert_int_equal(observation_dead_in(&scene->observation, OTHER, scene->now_ms),
                     DEAD_MS);
    pass(scene, 4, false);
    assert_int_equal(observation_dead_in(&scene->observation, OTHER, scene->now_ms + 300),
                     DEAD_MS - 4300);
}

static void gateway_without_any_beat_has_five_seconds_too(void **state)
{
    struct scene *scene = *state;
    pass(scene, 1, false);
    assert_false(other_is_dead(scene));
    pass(scene, 4, false);
    assert_false(other_is_dead(scene));
    pass(scene, 1, false);
    assert_true(other_is_dead(scene));
}

/* A crash of the database may lose the newest beats. */
static void decreasing_beat_counts_as_a_beat(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    pass(scene, 4, false);
    scene->beats -= 3;
    pass(scene, 4, false);
    assert_false(other_is_dead(scene));
}

static void no_gateway_counts_as_dead_while_own_beats_fail(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    pass(scene, 4, false);
    scene->now_ms += 60000;
    assert_false(other_is_dead(scene));
}

/* The database may have stood still, for all gateways. */
static void gap_restarts_the_time_of_all_gateways(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    pass(scene, 4, false);
    scene->now_ms += 2500;
    hear(scene);
    pass(scene, 4, false);
    assert_false(other_is_dead(scene));
    pass(scene, 1, false);
    assert_true(other_is_dead(scene));
}

/* A restart of the database that is shorter than a gap shows in the failed connection. */
static void failed_beat_restarts_the_time_of_all_gateways(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    pass(scene, 4, false);
    observation_miss(&scene->observation);
    pass(scene, 5, false);
    assert_false(other_is_dead(scene));
    pass(scene, 1, false);
    assert_true(other_is_dead(scene));
}

static void removed_gateway_is_not_found_and_not_dead(void **state)
{
    struct scene *scene = *state;
    pass(scene, 1, true);
    assert_non_null(observation_find(&scene->observation, OTHER));
    struct store_beat nobody = { 0 };
    observation_answer(&scene->observation, scene->now_ms, scene->now_ms, &nobody);
    assert_null(observation_find(&scene->observation, OTHER));
    assert_false(other_is_dead(scene));
}

static void doubt_begins_four_seconds_after_the_last_answered_beat_was_sent(void **state)
{
    struct scene *scene = *state;
    struct store_beat nobody = { 0 };
    int64_t sent_ms = scene->now_ms;
    observation_answer(&scene->observation, sent_ms, sent_ms + 3000, &nobody);
    assert_false(observation_doubts(&scene->observation, sent_ms + 4000));
    assert_true(observation_doubts(&scene->observation, sent_ms + 4001));
}

/* The leader's clock is a tenth slow, mine a tenth fast. Even then the leader is in doubt,
 * and so stops answering, before I find it dead. */
static void doubt_precedes_death_with_clocks_wrong_by_a_tenth(void **state)
{
    struct scene *scene = *state;
    struct store_beat nobody = { 0 };
    observation_answer(&scene->observation, scene->now_ms, scene->now_ms, &nobody);
    int64_t doubt = 0;
    while (!observation_doubts(&scene->observation, scene->now_ms + doubt * 9 / 10))
        doubt++;
    pass(scene, 10, true);
    int64_t death = 0, heard = scene->now_ms;
    while (!other_is_dead(scene)) {
        scene->now_ms = heard + ++death * 11 / 10;
        hear(scene);
    }
    assert_true(doubt < death);
}

/* ---- sessions ---- */

/* My beat is answered at once; the session of the other gateway has ended. */
static void see_ended(struct scene *scene)
{
    struct store_gateway gateways[] = {
        { .id = ME, .beat = (uint64_t)scene->now_ms },
        { .id = OTHER, .beat = scene->beats, .session = SESSION_ENDED }
    };
    struct store_beat answer = { .gateways = gateways, .gateway_count = 2 };
    observation_answer(&scene->observation, scene->now_ms, scene->now_ms, &answer);
}

static void gateway_without_a_session_in_two_answers_is_dead(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    see_ended(scene);
    scene->now_ms += SESSION_DEAD_MS;
    assert_false(other_is_dead(scene)); /* another answer is needed */
    see_ended(scene);
    assert_true(other_is_dead(scene));
    hear(scene);
    assert_false(other_is_dead(scene));
}

static void beat_between_two_answers_without_a_session_is_life(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    see_ended(scene);
    scene->beats++;
    scene->now_ms += SESSION_DEAD_MS;
    see_ended(scene);
    assert_false(other_is_dead(scene));
}

/* Only the time at which I send a beat is certain to be after its session ended. */
static void answers_without_a_session_must_be_apart(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    see_ended(scene);
    scene->now_ms += SESSION_DEAD_MS - 1;
    see_ended(scene);
    scene->now_ms += 500;
    assert_false(other_is_dead(scene));
    assert_int_equal(observation_dead_in(&scene->observation, OTHER, scene->now_ms), 1);
    see_ended(scene);
    assert_true(other_is_dead(scene));
}

static void sessions_do_not_count_after_an_unanswered_beat(void **state)
{
    struct scene *scene = *state;
    pass(scene, 10, true);
    observation_miss(&scene->observation);
    for (int i = 0; i < 5; i++) {
        scene->now_ms += BEAT_MS;
        see_ended(scene);
        assert_false(other_is_dead(scene));
    }
}

/* As above, with the session of the leader. */
static void doubt_precedes_death_by_session_with_clocks_wrong_by_a_tenth(void **state)
{
    (void)state;
    assert_true(SESSION_TRUST_MS * 11 / 10 + 1 < SESSION_DEAD_MS * 9 / 10);
}

static void registered_leader_doubts_from_the_sending_on(void **state)
{
    struct scene *scene = *state;
    pass(scene, 1, true);
    observation_send(&scene->observation, true);
    assert_int_equal(observation_doubts_in(&scene->observation, scene->now_ms),
                     SESSION_TRUST_MS + 1);
    observation_miss(&scene->observation);
    observation_send(&scene->observation, false);
    assert_int_equal(observation_doubts_in(&scene->observation, scene->now_ms),
                     SESSION_TRUST_MS + 1);
    struct store_gateway me = { .id = ME };
    struct store_beat answer = { .me = ME, .gateways = &me, .gateway_count = 1 };
    observation_answer(&scene->observation, scene->now_ms, scene->now_ms, &answer);
    assert_int_equal(observation_doubts_in(&scene->observation, scene->now_ms),
                     DEAD_MS * 4 / 5 + 1);
}

static void session_is_registered_once_no_follower_trusts_me_for_longer(void **state)
{
    struct scene *scene = *state;
    pass(scene, 1, true);
    int64_t left = observation_grant(&scene->observation, false, scene->now_ms);
    int64_t until = scene->now_ms + left;
    assert_int_equal(left, observation_doubts_in(&scene->observation, scene->now_ms));
    for (; scene->now_ms + SESSION_TRUST_MS < until; pass(scene, 1, true)) {
        assert_false(observation_may_register(&scene->observation, scene->now_ms));
        assert_int_equal(observation_grant(&scene->observation, true, scene->now_ms),
                         SESSION_TRUST_MS);
    }
    assert_true(observation_may_register(&scene->observation, scene->now_ms));
    scene->now_ms += SESSION_TRUST_MS; /* my last answered beat is too old */
    assert_false(observation_may_register(&scene->observation, scene->now_ms));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(beating_gateway_is_alive),
        TEST(gateway_without_a_beat_for_five_seconds_is_dead),
        TEST(time_until_a_gateway_counts_as_dead_is_known),
        TEST(gateway_without_any_beat_has_five_seconds_too),
        TEST(decreasing_beat_counts_as_a_beat),
        TEST(no_gateway_counts_as_dead_while_own_beats_fail),
        TEST(gap_restarts_the_time_of_all_gateways),
        TEST(failed_beat_restarts_the_time_of_all_gateways),
        TEST(removed_gateway_is_not_found_and_not_dead),
        TEST(doubt_begins_four_seconds_after_the_last_answered_beat_was_sent),
        TEST(doubt_precedes_death_with_clocks_wrong_by_a_tenth),
        TEST(gateway_without_a_session_in_two_answers_is_dead),
        TEST(beat_between_two_answers_without_a_session_is_life),
        TEST(answers_without_a_session_must_be_apart),
        TEST(sessions_do_not_count_after_an_unanswered_beat),
        TEST(doubt_precedes_death_by_session_with_clocks_wrong_by_a_tenth),
        TEST(registered_leader_doubts_from_the_sending_on),
        TEST(session_is_registered_once_no_follower_trusts_me_for_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
