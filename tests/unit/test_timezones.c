/* The names of the time zones that clients are offered. */
#include "tests/support/unit.h"

#include "base/zone.h"

#define ZONE(name) name,
static const char *const names[] = {
#include "api/timezones.def"
};
#undef ZONE

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void every_zone_offered_is_known_to_the_system(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMES; i++) {
        struct zone *zone;
        if (zone_open(slice_of(names[i]), &zone))
            fail_msg("%s does not load", names[i]);
        zone_close(zone);
    }
}

static void zones_are_sorted_and_none_comes_twice(void **state)
{
    (void)state;
    assert_true(NAMES > 400);
    for (size_t i = 1; i < NAMES; i++)
        if (strcmp(names[i - 1], names[i]) >= 0)
            fail_msg("%s comes before %s", names[i - 1], names[i]);
}

static void utc_is_no_name_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMES; i++)
        assert_string_not_equal(names[i], "UTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_zone_offered_is_known_to_the_system),
        cmocka_unit_test(zones_are_sorted_and_none_comes_twice),
        cmocka_unit_test(utc_is_no_name_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
