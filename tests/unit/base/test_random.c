/* Random numbers stay below their bound and reach each value. */
#include "tests/support/world/unit.h"

#include "base/random.h"

static void every_number_below_the_bound_is_drawn_and_no_other(void **state)
{
    (void)state;
    for (uint64_t bound = 1; bound <= 16; bound++) {
        unsigned seen = 0;
        for (int i = 0; i < 2000; i++) {
            uint64_t drawn = random_below(bound);
            assert_true(drawn < bound);
            seen |= 1u << drawn;
        }
        assert_int_equal(seen, (1u << bound) - 1);
    }
}

static void bound_may_be_any_64_bit_number(void **state)
{
    (void)state;
    static const uint64_t bounds[] = { UINT64_MAX, UINT64_MAX - 1, (UINT64_C(1) << 63) + 1,
                                       UINT64_C(1) << 63 };
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        for (int n = 0; n < 100; n++)
            assert_true(random_below(bounds[i]) < bounds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_below_the_bound_is_drawn_and_no_other),
        cmocka_unit_test(bound_may_be_any_64_bit_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
