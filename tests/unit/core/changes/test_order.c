/* An order keeps runs by their last change, and finds a place by its position alone. */
#include "tests/support/world/unit.h"

#include "core/changes/order.h"
#include "core/changes/tracked.h"

static struct tracked runs[10000];

static int number_of(const struct tracked *run)
{
    return run ? (int)(run - runs) : -1;
}

static void append(struct order *order, uint64_t rev, int run)
{
    runs[run].run.rev = rev;
    order_append(order, &runs[run]);
}

/* A run that changes leaves its old place and goes to the end. */
static void changed_run_is_last(void **state)
{
    struct order order = { 0 };
    (void)state;
    append(&order, 4, 1);
    append(&order, 7, 2);
    append(&order, 9, 3);
    order_clear(&order, 7);
    append(&order, 12, 2);

    assert_int_equal(order.runs, 3);
    uint32_t at = order_after(&order, 4);
    assert_null(order_place(&order, at).run); /* cleared; its rev stays for the search */
    assert_int_equal(order_place(&order, at).rev, 7);
    assert_int_equal(number_of(order_place(&order, at + 1).run), 3);
    assert_int_equal(number_of(order_place(&order, at + 2).run), 2);
    order_finish(&order);
}

static void position_is_found_between_places(void **state)
{
    static const struct {
        uint64_t rev;
        uint32_t after;
    } cases[] = { { 0, 0 }, { 3, 0 }, { 4, 1 }, { 5, 1 }, { 6, 1 },
                  { 7, 2 }, { 8, 2 }, { 9, 3 }, { 10, 3 } };
    struct order order = { 0 };
    (void)state;
    assert_int_equal(order_after(&order, 5), 0);
    append(&order, 4, 1);
    append(&order, 7, 2);
    append(&order, 9, 3);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(order_after(&order, cases[i].rev), cases[i].after);
    order_finish(&order);
}

static void clearing_an_absent_run_changes_nothing(void **state)
{
    struct order order = { 0 };
    (void)state;
    order_clear(&order, 1);
    append(&order, 4, 1);
    order_clear(&order, 3);
    order_clear(&order, 5);
    assert_int_equal(order.runs, 1);
    order_clear(&order, 4);
    order_clear(&order, 4);
    assert_int_equal(order.runs, 0);
    order_finish(&order);
}

/* Runs that change all the time take at most two places for each run. */
static void order_is_squeezed_when_half_of_it_is_empty(void **state)
{
    struct order order = { 0 };
    uint64_t rev = 0, last[10];
    (void)state;
    for (int i = 0; i < 10; i++)
        append(&order, last[i] = ++rev, i);
    for (int round = 0; round < 1000; round++) {
        int run = (round * 7) % 10;
        order_clear(&order, last[run]);
        append(&order, last[run] = ++rev, run);
        assert_int_equal(order.runs, 10);
        assert_true(order.count <= 2 * 10 + 1);
        assert_int_equal(number_of(order_place(&order, order.count - 1).run), run);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(
            number_of(order_place(&order, order_after(&order, last[i]) - 1).run), i);
    order_finish(&order);
}

static void memory_shrinks_with_the_runs(void **state)
{
    struct order order = { 0 };
    (void)state;
    for (int i = 0; i < 10000; i++)
        append(&order, (uint64_t)i + 1, i);
    assert_true(order.capacity >= 10000);
    for (uint64_t rev = 1; rev <= 9990; rev++)
        order_clear(&order, rev);
    assert_true(order.capacity < 100);
    assert_int_equal(order.runs, 10);
    assert_int_equal(order_place(&order, order_after(&order, 9990)).rev, 9991);
    order_finish(&order);
}

/* At start, runs come newest first, after the unfinished ones. */
static void runs_are_inserted_in_the_order_of_their_revs(void **state)
{
    static const uint64_t revs[] = { 50, 90, 10, 70, 30, 20 };
    struct order order = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof(revs) / sizeof(revs[0]); i++) {
        runs[revs[i]].run.rev = revs[i];
        order_insert(&order, &runs[revs[i]]);
    }
    for (uint32_t i = 0; i < order.count; i++) {
        assert_int_equal(number_of(order_place(&order, i).run), order_place(&order, i).rev);
        assert_true(i == 0 || order_place(&order, i - 1).rev < order_place(&order, i).rev);
    }
    order_clear(&order, 30);
    order_insert(&order, &runs[30]);
    assert_int_equal(order.runs, 6);
    assert_int_equal(order.count, 6);
    order_finish(&order);
}

static void assert_ascends(const struct order *order)
{
    uint64_t before = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        struct place place = order_place(order, i);
        assert_true(place.run ? place.rev > before : place.rev >= before);
        before = place.rev;
        found += place.run != NULL;
    }
    assert_int_equal(found, order->runs);
}

/* One of every `each` runs is unfinished, and in the order before the others come, newest
 * first. */
static void insert_downwards(uint32_t each)
{
    enum { COUNT = sizeof(runs) / sizeof(runs[0]) - 1 };
    struct order order = { 0 };
    uint32_t moved = 0;
    for (uint32_t rev = 1; rev <= COUNT; rev++) {
        runs[rev].run.rev = rev;
        if (rev % each == 0)
            order_insert(&order, &runs[rev]);
    }
    assert_int_equal(order.count, order.runs);
    for (uint32_t rev = COUNT; rev > 0; rev--) {
        uint32_t count = order.count;
        if (rev % each == 0)
            continue;
        order_insert(&order, &runs[rev]);
        moved += order.count != count;
    }
    assert_int_equal(order.runs, COUNT);
    assert_ascends(&order);
    assert_true(moved < 100); /* of 9999 */
    assert_true(order.count < COUNT + COUNT / 2);
    for (uint32_t rev = 1; rev <= COUNT; rev += 7) {
        order_clear(&order, rev);
        order_insert(&order, &runs[rev]);
        order_clear(&order, rev);
    }
    assert_int_equal(order.runs, COUNT - (COUNT + 6) / 7);
    assert_ascends(&order);
    order_finish(&order);
}

/* With a million runs after it, an insert would move eight megabytes. */
static void inserts_in_descending_order_seldom_move_other_runs(void **state)
{
    (void)state;
    insert_downwards(10000);
    insert_downwards(100);
    insert_downwards(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_run_is_last),
        cmocka_unit_test(position_is_found_between_places),
        cmocka_unit_test(clearing_an_absent_run_changes_nothing),
        cmocka_unit_test(order_is_squeezed_when_half_of_it_is_empty),
        cmocka_unit_test(memory_shrinks_with_the_runs),
        cmocka_unit_test(runs_are_inserted_in_the_order_of_their_revs),
        cmocka_unit_test(inserts_in_descending_order_seldom_move_other_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
