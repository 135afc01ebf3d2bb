/* A window has the newest runs that match a query, and can show them at any step that it
 * has not forgotten. */
#include "tests/support/world/unit.h"

#include "base/mem.h"
#include "core/live/window.h"

static struct window *make(void)
{
    const struct run_filter all = { .is_test = -1 };
    struct window *window = window_create(NULL, query_create(&all, 0));
    window->listed = true;
    return window;
}

/* Ids sort by their number. Each call is a later change. */
static struct run run_of(unsigned number, uint32_t version)
{
    static uint64_t changes;
    struct run run = { .version = version, .rev = ++changes, .created_at = number };
    snprintf(run.id, sizeof(run.id), "run_%06u", number);
    return run;
}

static bool judge(struct window *window, unsigned number, bool wanted)
{
    struct run run = run_of(number, 1);
    return window_evaluate(window, &run, wanted);
}

/* "3 2 1", with an asterisk after those that have left since. */
static void assert_at(const struct window *window, uint64_t step, uint32_t limit,
                      const char *expected)
{
    struct window_member members[WINDOW_LIMIT_MAX];
    char text[256];
    size_t len = 0;
    uint32_t count = window_at(window, step, limit, members);
    text[0] = '\0';
    for (uint32_t i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d%s", i ? " " : "",
                                (int)strtol(members[i].id + 4, NULL, 10),
                                members[i].entry ? "" : "*");
    assert_string_equal(text, expected);
}

/* Runs come and leave anywhere in the set; a table of them gives the expected set. */
static void entries_stay_ordered_whatever_joins_and_leaves(void **state)
{
    enum { RUNS = 600, STEPS = 20000 };
    (void)state;
    struct window *window = make();
    bool there[RUNS] = { false };
    uint32_t count = 0, seed = 7;
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 1664525 + 1013904223;
        unsigned number = (seed >> 8) % RUNS;
        bool wanted = seed >> 24 & 1 && (count < WINDOW_KEPT || there[number]);
        judge(window, number, wanted);
        count += (unsigned)wanted - (unsigned)there[number];
        there[number] = wanted;
        assert_int_equal(window->count, count);
        uint32_t at = 0;
        for (unsigned i = RUNS; step % 100 == 0 && i-- > 0;)
            if (there[i])
                assert_int_equal(strtol(window_entry(window, at++)->id + 4, NULL, 10), i);
    }
    window_destroy(window);
}

static void newest_runs_come_first_in_whatever_order_they_join(void **state)
{
    (void)state;
    struct window *window = make();
    assert_true(judge(window, 2, true));
    assert_true(judge(window, 5, true));
    assert_true(judge(window, 3, true));
    assert_false(judge(window, 9, false));
    assert_at(window, window->step, 10, "5 3 2");
    assert_at(window, window->step, 2, "5 3");
    assert_true(judge(window, 3, false));
    assert_at(window, window->step, 2, "5 2");
    window_destroy(window);
}

static void window_shows_its_runs_at_an_earlier_step(void **state)
{
    (void)state;
    struct window *window = make();
    for (unsigned i = 1; i <= 4; i++)
        judge(window, i, true);
    uint64_t four = window->step;
    judge(window, 3, false);
    judge(window, 5, true);
    judge(window, 4, false);
    uint64_t later = window->step;
    judge(window, 4, true);
    assert_at(window, four, 3, "4 3* 2");
    assert_at(window, later, 3, "5 2 1");
    assert_at(window, window->step, 3, "5 4 2");
    assert_at(window, 1, 3, "");
    window_destroy(window);
}

static void run_that_joined_and_left_after_a_step_is_not_shown_at_it(void **state)
{
    (void)state;
    struct window *window = make();
    judge(window, 1, true);
    uint64_t one = window->step;
    judge(window, 2, true);
    judge(window, 2, false);
    judge(window, 2, true);
    judge(window, 2, false);
    assert_at(window, one, 10, "1");
    window_destroy(window);
}

/* A run that was read from memory or the store may be newer than changes that the window has
 * yet to evaluate. */
static void change_that_the_entry_includes_is_ignored(void **state)
{
    (void)state;
    struct window *window = make();
    struct run earlier = run_of(1, 1), later = run_of(1, 2), last = run_of(1, 3);
    window_add(window, &later);
    assert_false(window_evaluate(window, &earlier, false));
    assert_false(window_evaluate(window, &later, true));
    assert_int_equal(window_entry(window, 0)->version, 2);
    assert_true(window_evaluate(window, &last, false));
    assert_int_equal(window->count, 0);
    window_destroy(window);
}

static void full_window_drops_the_oldest_runs(void **state)
{
    (void)state;
    struct window *window = make();
    for (unsigned i = 1; i <= WINDOW_KEPT + 3; i++)
        assert_true(judge(window, i, true));
    assert_int_equal(window->count, WINDOW_KEPT);
    assert_true(window->more);
    assert_false(window_is_short(window, WINDOW_LIMIT_MAX));
    assert_false(judge(window, 1, true)); /* older than all others: only the store has it */
    window_destroy(window);
}

static void oldest_departures_are_forgotten(void **state)
{
    (void)state;
    struct window *window = make();
    judge(window, 1, true);
    uint64_t one = window->step;
    for (unsigned i = 0; i < WINDOW_DEPARTED; i++) {
        judge(window, 2 + i, true);
        judge(window, 2 + i, false);
    }
    assert_int_equal(window->forgotten, 0);
    assert_at(window, one, 10, "1");
    judge(window, 9000, true);
    judge(window, 9000, false);
    assert_true(window->forgotten > one);
    assert_at(window, window->forgotten, 2, "1");
    window_destroy(window);
}

static void period_and_retention_remove_runs(void **state)
{
    (void)state;
    struct window *window = make();
    for (unsigned i = 1; i <= 4; i++)
        judge(window, i, true);
    struct run ended = run_of(3, 2);
    ended.status = RUN_COMPLETED;
    ended.updated_at = 50;
    window_evaluate(window, &ended, true);
    assert_false(window_cut(window, 50, 1));
    assert_true(window_cut(window, 51, 1));
    assert_at(window, window->step, 10, "4 2 1");
    assert_true(window_cut(window, 0, 2));
    assert_at(window, window->step, 10, "4 2");
    window_destroy(window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_runs_come_first_in_whatever_order_they_join),
        cmocka_unit_test(entries_stay_ordered_whatever_joins_and_leaves),
        cmocka_unit_test(window_shows_its_runs_at_an_earlier_step),
        cmocka_unit_test(run_that_joined_and_left_after_a_step_is_not_shown_at_it),
        cmocka_unit_test(change_that_the_entry_includes_is_ignored),
        cmocka_unit_test(full_window_drops_the_oldest_runs),
        cmocka_unit_test(oldest_departures_are_forgotten),
        cmocka_unit_test(period_and_retention_remove_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
