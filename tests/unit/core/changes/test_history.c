/* The history leads from each change of a run to the one before it. */
#include "tests/support/world/unit.h"

#include "core/changes/history.h"

/* Counts changes of the run since a position, as a feed does. */
static unsigned count_since(const struct history *history, uint64_t rev, uint64_t position)
{
    unsigned count = 0;
    while (rev > position) {
        count++;
        rev = history_before(history, rev);
    }
    return count;
}

static void changes_of_a_run_are_counted_among_those_of_others(void **state)
{
    struct history history = { 0 };
    (void)state;
    history_note(&history, 1, 0); /* a */
    history_note(&history, 2, 0); /* b */
    history_note(&history, 3, 1); /* a */
    history_note(&history, 4, 3); /* a */
    history_note(&history, 5, 2); /* b */

    assert_int_equal(history_before(&history, 4), 3);
    assert_int_equal(history_before(&history, 1), 0);
    assert_int_equal(count_since(&history, 4, 0), 3);
    assert_int_equal(count_since(&history, 4, 1), 2);
    assert_int_equal(count_since(&history, 4, 3), 1);
    assert_int_equal(count_since(&history, 5, 4), 1);
    history_finish(&history);
}

static void empty_history_has_no_changes(void **state)
{
    struct history history = { 0 };
    (void)state;
    assert_int_equal(history_before(&history, 1), 0);
    history_finish(&history);
}

/* After a start it begins in the middle, and it forgets changes that are too old. */
static void history_reaches_back_to_its_beginning_or_its_oldest_kept_change(void **state)
{
    enum { BEGIN = 1000, END = BEGIN + HISTORY_SIZE + 500 };
    struct history history = { 0 };
    (void)state;
    for (uint64_t seq = BEGIN; seq <= END; seq++)
        history_note(&history, seq, seq - 1);

    assert_int_equal(history_before(&history, BEGIN - 1), 0);
    assert_int_equal(history_before(&history, BEGIN + 500), 0); /* overwritten */
    assert_int_equal(history_before(&history, BEGIN + 501), BEGIN + 500);
    assert_int_equal(history_before(&history, END), END - 1);
    assert_int_equal(history_before(&history, END + 1), 0);
    assert_int_equal(count_since(&history, END, BEGIN), HISTORY_SIZE + 1);
    history_finish(&history);
}

/* Thousands of environments have one each, so an unused one must cost nothing. */
static void history_grows_with_the_changes(void **state)
{
    struct history history = { 0 };
    (void)state;
    for (uint64_t seq = 1000; seq < 1010; seq++)
        history_note(&history, seq, seq - 1);
    assert_in_range(history.capacity, 10, 20);
    for (uint64_t seq = 1010; seq < 1100; seq++)
        history_note(&history, seq, seq - 1);
    assert_in_range(history.capacity, 100, 200);
    for (uint64_t seq = 1001; seq < 1100; seq++)
        assert_int_equal(history_before(&history, seq), seq - 1);
    history_finish(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_of_a_run_are_counted_among_those_of_others),
        cmocka_unit_test(empty_history_has_no_changes),
        cmocka_unit_test(history_reaches_back_to_its_beginning_or_its_oldest_kept_change),
        cmocka_unit_test(history_grows_with_the_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
