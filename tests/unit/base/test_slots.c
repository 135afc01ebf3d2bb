/* A pointer that is kept under the number of an environment is found, however large the
 * number. */
#include "base/slots.h"
#include "tests/support/world/unit.h"

static void unused_number_has_no_pointer(void **state)
{
    (void)state;
    struct slots slots = { 0 };
    uint32_t at = 0;
    assert_null(slots_get(&slots, 0));
    assert_null(slots_get(&slots, UINT32_MAX));
    assert_null(slots_next(&slots, &at));
    slots_finish(&slots);
}

static void pointers_stay_when_the_array_grows(void **state)
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

static void walk_visits_pointers_in_the_order_of_numbers(void **state)
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
        cmocka_unit_test(unused_number_has_no_pointer),
        cmocka_unit_test(pointers_stay_when_the_array_grows),
        cmocka_unit_test(walk_visits_pointers_in_the_order_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
