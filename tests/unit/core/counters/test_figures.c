/* Counts per environment, which include its branches, while the table has a free slot. */
#include "core/counters/figures.h"
#include "tests/support/world/unit.h"

static struct figures_table table;

static int empty(void **state)
{
    (void)state;
    table = (struct figures_table){ 0 };
    return 0;
}

static void first_fifty_environments_have_counts_of_their_own(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= FIGURES_MAX; number++) {
        struct figures *figures = figures_join(&table, number);
        assert_int_equal(figures->number, number);
        assert_int_equal(figures_place(&table, figures), number - 1);
    }
    struct figures *rest = figures_join(&table, FIGURES_MAX + 1);
    assert_ptr_equal(rest, &table.rest);
    assert_ptr_equal(figures_join(&table, FIGURES_MAX + 2), rest);
    assert_int_equal(figures_place(&table, rest), FIGURES_MAX);
    assert_int_equal(rest->number, 0);
}

static void branches_count_with_their_environment(void **state)
{
    (void)state;
    struct figures *parent = figures_join(&table, 4), *branch = figures_join(&table, 4);
    assert_ptr_equal(parent, branch);
    figures_note_run(branch, -1, RUN_QUEUED);
    figures_leave(branch);
    assert_int_equal(figures_join(&table, 4)->triggers, 1);
    figures_leave(parent);
    assert_int_equal(parent->number, 4);
    figures_leave(parent);
    assert_int_equal(parent->number, 0);
}

/* An environment that counts with the rest stays there. In a free slot of its own, its
 * counts would look like a burst. */
static void freed_slot_goes_to_the_next_environment(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= FIGURES_MAX; number++)
        figures_join(&table, number);
    struct figures *rest = figures_join(&table, 60), *third = &table.first[2];
    figures_note_run(third, -1, RUN_QUEUED);
    figures_note_wait(third, 5);
    figures_leave(rest);
    assert_ptr_equal(figures_join(&table, 61), &table.rest);
    figures_leave(third);
    assert_ptr_equal(figures_join(&table, 62), third);
    assert_int_equal(third->number, 62);
    assert_int_equal(third->triggers, 0);
    assert_int_equal(buckets_count(&third->queue_waits), 0);
}

static void run_counts_at_trigger_and_at_its_end(void **state)
{
    (void)state;
    struct figures *figures = figures_join(&table, 1);
    figures_note_run(figures, -1, RUN_QUEUED);
    figures_note_run(figures, RUN_QUEUED, RUN_EXECUTING);
    figures_note_run(figures, RUN_EXECUTING, RUN_FAILED);
    figures_note_run(figures, RUN_FAILED, RUN_FAILED); /* only its metadata changed */
    figures_note_run(figures, -1, RUN_COMPLETED);
    assert_int_equal(figures->triggers, 2);
    assert_int_equal(figures->ends[RUN_FAILED - RUN_CANCELED], 1);
    assert_int_equal(figures->ends[RUN_COMPLETED - RUN_CANCELED], 1);
    assert_int_equal(figures->ends[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(first_fifty_environments_have_counts_of_their_own, empty),
        cmocka_unit_test_setup(branches_count_with_their_environment, empty),
        cmocka_unit_test_setup(freed_slot_goes_to_the_next_environment, empty),
        cmocka_unit_test_setup(run_counts_at_trigger_and_at_its_end, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
