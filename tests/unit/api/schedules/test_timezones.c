/* The time zone names that clients are offered. */
#include "tests/support/world/unit.h"

#include "api/schedules/timezones.h"
#include "api/schedules/zone.h"

#define ZONE(name) name,
static const char *const names[] = {
#include "api/schedules/timezones.def"
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

static void zones_are_sorted_without_duplicates(void **state)
{
    (void)state;
    assert_true(NAMES > 400);
    for (size_t i = 1; i < NAMES; i++)
        if (strcmp(names[i - 1], names[i]) >= 0)
            fail_msg("%s comes before %s", names[i - 1], names[i]);
}

static void utc_is_not_in_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < NAMES; i++)
        assert_string_not_equal(names[i], "UTC");
}

static bool is_of_today(struct slice name)
{
    return !slice_is(name, "Africa/Abidjan") && !slice_is(name, "Asia/Calcutta");
}

static bool is_in_berlin(struct slice name)
{
    return slice_is(name, "Europe/Berlin");
}

static bool is_nowhere(struct slice name)
{
    (void)name;
    return false;
}

static void names_that_the_system_does_not_have_are_not_offered(void **state)
{
    (void)state;
    unsigned missing;
    struct bytes *list = timezones_list(is_of_today, &missing);
    assert_int_equal(missing, 2);
    assert_true(slice_starts(bytes_slice(list), "\"Africa/Accra\",\"Africa/"));
    assert_non_null(strstr(list->data, "\"Asia/Brunei\",\"Asia/Chita\""));
    bytes_unref(list);
    list = timezones_list(is_in_berlin, &missing);
    assert_int_equal(missing, NAMES - 1);
    assert_string_equal(list->data, "\"Europe/Berlin\"");
    bytes_unref(list);
    list = timezones_list(is_nowhere, &missing);
    assert_int_equal(missing, NAMES);
    assert_string_equal(list->data, "");
    bytes_unref(list);
}

static void zone_is_installed_if_the_system_has_its_file(void **state)
{
    (void)state;
    assert_true(zone_is_installed(SLICE("Europe/Berlin")));
    assert_false(zone_is_installed(SLICE("Europe/Atlantis")));
    assert_false(zone_is_installed(SLICE("../../../etc/passwd")));
    assert_false(zone_is_installed(SLICE("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_zone_offered_is_known_to_the_system),
        cmocka_unit_test(zones_are_sorted_without_duplicates),
        cmocka_unit_test(utc_is_not_in_the_table),
        cmocka_unit_test(names_that_the_system_does_not_have_are_not_offered),
        cmocka_unit_test(zone_is_installed_if_the_system_has_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
