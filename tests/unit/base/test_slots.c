/* A pointer that is kept under the number of an environment is found, however large the
 * number. */
#include "base/slots.h"
#include "tests/support/world/unit.h"

static void nothing_is_where_nothing_was_put(void **state)
{
    (void)state;
    struct slots slots = { 0 };
    uint32_t at = 0;
    assert_null(slots_get(&slots, 0));
    assert_null(slots_get(&slots, UINT32_MAX));
    assert_null(slots_next(&slots, &at));
    slots_finish(&slots);
}

static void what_was_put_stays_when_higher_numbers_come(void **state)
{
    (void)state;
    struct slots slots = { 0 };
    int one, other;
    *slots_at(&slots, 3) = &one;
    *slots_at(&slots, 1000) = &other;
    assert_ptr_equal(slots_get(&slots, 3), &one);
    assert_ptr_equal(slots_get(&slots, 1000), &other);
    assert_null(slots_get(&slots, 4));
    assert_null(slots_get(&slots, 1001));
    slots_finish(&slots);
}

static void a_walk_meets_each_in_the_order_of_the_numbers(void **state)
{
    (void)state;
    struct slots slots = { 0 };
    int items[3];
    uint32_t at = 0;
    *slots_at(&slots, 7) = &items[2];
    *slots_at(&slots, 0) = &items[0];
    *slots_at(&slots, 5) = &items[1];
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(slots_next(&slots, &at), &items[i]);
    assert_null(slots_next(&slots, &at));
    slots_finish(&slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_where_nothing_was_put),
        cmocka_unit_test(what_was_put_stays_when_higher_numbers_come),
        cmocka_unit_test(a_walk_meets_each_in_the_order_of_the_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
