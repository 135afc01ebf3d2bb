/* Clients of a gateway that follows begin once memory has what the leader had. */
#include "tests/support/world/unit.h"

#include "core/live/certainty.h"

enum { WAITERS = 3 };

struct scene {
    struct loop *loop;
    struct certainty certainty;
    bool is_certain;
    uint64_t asked;
    struct reaches reaches; /* of an environment */
    uint64_t applied;
    struct called {
        struct certainty_waiter waiter;
        unsigned times;
    } called[WAITERS];
};

static bool is_certain(void *owner)
{
    return ((struct scene *)owner)->is_certain;
}

static uint64_t ask(void *owner)
{
    return ++((struct scene *)owner)->asked;
}

static void on_called(struct certainty_waiter *waiter)
{
    container_of(waiter, struct called, waiter)->times++;
}

static int open_scene(void **state)
{
    static struct scene scene;
    scene = (struct scene){ .loop = loop_create(NULL), .is_certain = true };
    certainty_init(&scene.certainty, scene.loop);
    scene.certainty.is_certain = is_certain;
    scene.certainty.ask = ask;
    scene.certainty.owner = &scene;
    for (int i = 0; i < WAITERS; i++)
        certainty_waiter_init(&scene.called[i].waiter, on_called);
    certainty_follow(&scene.certainty, true);
    reaches_init(&scene.reaches, scene.loop, &scene.applied);
    *state = &scene;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < WAITERS; i++)
        certainty_forget(&scene->called[i].waiter);
    certainty_finish(&scene->certainty);
    reaches_finish(&scene->reaches);
    loop_destroy(scene->loop);
    return 0;
}

static void confirm(struct scene *scene, int i)
{
    certainty_confirm(&scene->certainty, &scene->called[i].waiter, NULL);
}

/* Returns how often waiter i was called by now. */
static unsigned called(struct scene *scene, int i)
{
    for (int turn = 0; turn < 4; turn++)
        loop_turn(scene->loop, 1);
    return scene->called[i].times;
}

static void one_question_is_for_all_of_a_turn(void **state)
{
    struct scene *scene = *state;
    confirm(scene, 0);
    confirm(scene, 1);
    assert_int_equal(called(scene, 0), 0);
    assert_int_equal(scene->asked, 1);
    certainty_answered(&scene->certainty, 1);
    assert_int_equal(called(scene, 0), 1);
    assert_int_equal(called(scene, 1), 1);
}

static void answer_to_an_earlier_question_is_too_old(void **state)
{
    struct scene *scene = *state;
    confirm(scene, 0);
    called(scene, 0);
    confirm(scene, 1);
    called(scene, 1);
    certainty_answered(&scene->certainty, 1);
    assert_int_equal(called(scene, 0), 1);
    assert_int_equal(called(scene, 1), 0);
    certainty_answered(&scene->certainty, 2);
    assert_int_equal(called(scene, 1), 1);
}

static void lost_question_is_answered_by_a_later_one(void **state)
{
    struct scene *scene = *state;
    confirm(scene, 0);
    called(scene, 0);
    certainty_answered(&scene->certainty, 7);
    assert_int_equal(called(scene, 0), 1);
}

static void answer_in_doubt_waits_for_certainty(void **state)
{
    struct scene *scene = *state;
    confirm(scene, 0);
    called(scene, 0);
    scene->is_certain = false;
    certainty_answered(&scene->certainty, 1);
    assert_int_equal(called(scene, 0), 0);
    scene->is_certain = true;
    certainty_return(&scene->certainty);
    assert_int_equal(called(scene, 0), 1);
}

static void end_of_a_doubt_answers_no_question(void **state)
{
    struct scene *scene = *state;
    confirm(scene, 0);
    called(scene, 0);
    certainty_return(&scene->certainty);
    assert_int_equal(called(scene, 0), 0);
}

static void questions_without_an_answer_are_bounded(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 2 * CERTAINTY_QUESTIONS; i++) {
        certainty_forget(&scene->called[0].waiter);
        confirm(scene, 0);
        called(scene, 0);
    }
    assert_int_equal(scene->asked, CERTAINTY_QUESTIONS);
    certainty_answered(&scene->certainty, 1);
    assert_int_equal(called(scene, 0), 0);
    assert_int_equal(scene->asked, CERTAINTY_QUESTIONS + 1);
    certainty_answered(&scene->certainty, scene->asked);
    assert_int_equal(called(scene, 0), 1);
}

/* A client that asks endlessly must not make the leader end the connection. */
static void questions_pause(void **state)
{
    struct scene *scene = *state;
    for (int i = 0; i < 1000; i++) {
        certainty_forget(&scene->called[0].waiter);
        confirm(scene, 0);
        loop_turn(scene->loop, i % 10 == 0);
        certainty_answered(&scene->certainty, scene->asked);
    }
    assert_in_range(scene->asked, 49, 100 / CERTAINTY_EVERY_MS);
    confirm(scene, 1);
    called(scene, 1);
    certainty_answered(&scene->certainty, scene->asked);
    assert_int_equal(called(scene, 1), 1);
}

static void gateway_that_takes_the_lead_needs_no_answer(void **state)
{
    struct scene *scene = *state;
    confirm(scene, 0);
    called(scene, 0);
    confirm(scene, 1);
    scene->is_certain = false;
    certainty_follow(&scene->certainty, false);
    assert_int_equal(called(scene, 1), 0);
    scene->is_certain = true;
    certainty_return(&scene->certainty);
    assert_int_equal(called(scene, 0), 1);
    assert_int_equal(called(scene, 1), 1);
}

static void leader_confirms_without_a_question(void **state)
{
    struct scene *scene = *state;
    certainty_follow(&scene->certainty, false);
    assert_false(certainty_asks(&scene->certainty));
    confirm(scene, 0);
    assert_int_equal(called(scene, 0), 1);
    assert_int_equal(scene->asked, 0);
}

static void forgotten_waiter_is_not_called(void **state)
{
    struct scene *scene = *state;
    confirm(scene, 0);
    certainty_forget(&scene->called[0].waiter);
    called(scene, 0);
    assert_int_equal(scene->asked, 0);
    confirm(scene, 1);
    called(scene, 1);
    certainty_forget(&scene->called[1].waiter);
    certainty_answered(&scene->certainty, 1);
    assert_int_equal(called(scene, 1), 0);
}

/* ---- changes that have arrived, but wait ---- */

static void confirm_runs(struct scene *scene, int i)
{
    certainty_confirm(&scene->certainty, &scene->called[i].waiter, &scene->reaches);
    called(scene, i);
    certainty_answered(&scene->certainty, scene->asked);
}

static void reach(struct scene *scene, uint64_t seq)
{
    scene->applied = seq;
    reaches_note(&scene->reaches);
}

static void changes_that_have_arrived_are_waited_for(void **state)
{
    struct scene *scene = *state;
    scene->reaches.arrived = 5;
    confirm_runs(scene, 0);
    assert_int_equal(called(scene, 0), 0);
    assert_true(certainty_waits(&scene->called[0].waiter));
    scene->reaches.arrived = 9; /* later ones need not be in memory */
    reach(scene, 5);
    assert_int_equal(called(scene, 0), 1);
    confirm(scene, 1); /* for the accounts */
    called(scene, 1);
    certainty_answered(&scene->certainty, scene->asked);
    assert_int_equal(called(scene, 1), 1);
}

static void memory_that_is_late_is_not_confirmed(void **state)
{
    struct scene *scene = *state;
    scene->reaches.shown_until = loop_boot_ms(scene->loop);
    confirm_runs(scene, 0);
    assert_int_equal(called(scene, 0), 0);
    scene->reaches.arrived = 5;
    scene->reaches.shown_until = INT64_MAX;
    certainty_return(&scene->certainty);
    assert_int_equal(called(scene, 0), 0);
    reach(scene, 5);
    assert_int_equal(called(scene, 0), 1);
}

static void forgotten_waiter_reaches_nothing(void **state)
{
    struct scene *scene = *state;
    scene->reaches.arrived = 5;
    confirm_runs(scene, 0);
    called(scene, 0);
    certainty_forget(&scene->called[0].waiter);
    assert_false(certainty_waits(&scene->called[0].waiter));
    reach(scene, 5);
    assert_int_equal(called(scene, 0), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(one_question_is_for_all_of_a_turn),
        CASE(answer_to_an_earlier_question_is_too_old),
        CASE(lost_question_is_answered_by_a_later_one),
        CASE(answer_in_doubt_waits_for_certainty),
        CASE(end_of_a_doubt_answers_no_question),
        CASE(questions_without_an_answer_are_bounded),
        CASE(questions_pause),
        CASE(gateway_that_takes_the_lead_needs_no_answer),
        CASE(leader_confirms_without_a_question),
        CASE(forgotten_waiter_is_not_called),
        CASE(changes_that_have_arrived_are_waited_for),
        CASE(memory_that_is_late_is_not_confirmed),
        CASE(forgotten_waiter_reaches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
