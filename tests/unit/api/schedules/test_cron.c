/* Cron expressions: which are invalid, when they run, and their descriptions. */
#include "tests/support/world/unit.h"

#include "api/schedules/cron.h"
#include "base/text.h"

static int64_t at(const char *text)
{
    int64_t ms;
    assert_int_equal(text_to_time(slice_of(text), &ms), OK);
    return ms;
}

static struct zone *zone_of(const char *name)
{
    struct zone *zone;
    assert_int_equal(zone_open(slice_of(name), &zone), OK);
    return zone;
}

static void invalid_cron_expression_is_rejected_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        { "", "0 fields" },
        { "* * * *", "4 fields" },
        { "0 * * * * *", "seconds" },
        { "60 * * * *", "0 to 59" },
        { "* 24 * * *", "0 to 23" },
        { "* * 0 * *", "1 to 31" },
        { "* * 32 * *", "1 to 31" },
        { "* * * 13 *", "1 to 12" },
        { "* * * * 8", "0 to 7" },
        { "5-1 * * * *", "ascending" },
        { "*/0 * * * *", "step" },
        { "1/ * * * *", "step" },
        { "1- * * * *", "range without an end" },
        { ", * * * *", "not a number" },
        { "a * * * *", "not a number" },
        { "-1 * * * *", "not a number" },
        { "1x * * * *", "not a number" },
        { "L * * * *", "not a number" },
        { "* * 5L * *", "not a number" },
        { "* * * FOO *", "not a number" },
        { "* * * * 5#6", "5#2" },
        { "* * * * 5#", "5#2" },
        { "* * * * 5Lx", "5L" },
        { "99999999999999999999 * * * *", "must be ascending" },
        { "0 0 30 2 *", "no month" },
        { "0 0 31 4,6,9,11 *", "no month" },
        { "@daily", "1 fields" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cron cron;
        struct failure why = { 0 };
        assert_int_equal(cron_read(slice_of(cases[i].text), &cron, &why), ERR_INVALID);
        if (!strstr(why.text, cases[i].reason))
            fail_msg("'%s': '%s' lacks '%s'", cases[i].text, why.text, cases[i].reason);
    }
}

static void step_larger_than_its_field_is_rejected_from_users_only(void **state)
{
    (void)state;
    static const char *const texts[] = { "*/61 * * * *", "* */25 * * *", "* * 1-5/32 * *",
                                         "* * * */13 *", "* * * * 1/9" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct cron cron;
        struct failure why = { 0 };
        assert_int_equal(cron_read_new(slice_of(texts[i]), &cron, &why), ERR_INVALID);
        assert_non_null(strstr(why.text, "a step is larger than the range"));
        assert_int_equal(cron_read(slice_of(texts[i]), &cron, &why), OK);
    }
    struct cron cron;
    struct failure why;
    assert_int_equal(cron_read_new(SLICE("*/60 */24 */31 */12 */7"), &cron, &why), OK);
}

struct next_case {
    const char *expression, *zone, *after, *next;
};

static void assert_next(const struct next_case *c)
{
    struct cron cron;
    struct failure why;
    struct zone *zone = zone_of(c->zone);
    if (cron_read(slice_of(c->expression), &cron, &why))
        fail_msg("%s", why.text);
    int64_t next = cron_next(&cron, zone, at(c->after));
    char text[TIME_TEXT_LEN + 1];
    text_from_time(next, text);
    if (next != at(c->next))
        fail_msg("%s in %s after %s: %s", c->expression, c->zone, c->after, text);
    zone_close(zone);
}

static void every_form_of_field_runs_when_it_should(void **state)
{
    (void)state;
    static const struct next_case cases[] = {
        { "* * * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z" },
        { "* * * * *", "UTC", "2026-01-01T00:00:59.999Z", "2026-01-01T00:01:00Z" },
        { "*/7 * * * *", "UTC", "2026-01-01T00:56:00Z", "2026-01-01T01:00:00Z" },
        { "5/20 * * * *", "UTC", "2026-01-01T00:25:00Z", "2026-01-01T00:45:00Z" },
        { "10-12,50 3 * * *", "UTC", "2026-01-01T03:12:00Z", "2026-01-01T03:50:00Z" },
        { "0 0 L * *", "UTC", "2028-02-01T00:00:00Z", "2028-02-29T00:00:00Z" },
        { "0 0 15,L * *", "UTC", "2026-04-15T00:00:00Z", "2026-04-30T00:00:00Z" },
        { "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z" },
        { "0 0 * * 7", "UTC", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z" },
        { "0 0 * * sun", "UTC", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z" },
        { "0 0 * * 5-7", "UTC", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z" },
        { "0 0 * * 5L", "UTC", "2026-11-21T00:00:00Z", "2026-11-27T00:00:00Z" },
        { "0 0 * * MON#1", "UTC", "2026-11-21T00:00:00Z", "2026-12-07T00:00:00Z" },
        { "0 0 * 2 5#5", "UTC", "2026-01-01T00:00:00Z", "2036-02-29T00:00:00Z" },
        { "0 0 13 * 5", "UTC", "2026-11-21T00:00:00Z", "2026-11-27T00:00:00Z" },
        { "0 0 13 * ?", "UTC", "2026-11-21T00:00:00Z", "2026-12-13T00:00:00Z" },
        { "0 0 30 2 5", "UTC", "2026-01-31T00:00:00Z", "2026-02-06T00:00:00Z" },
        { "0 0 1 jan *", "Asia/Tokyo", "2026-11-21T00:00:00Z", "2026-12-31T15:00:00Z" },
        { "0 0 1 1 *", "UTC", "1960-06-01T00:00:00Z", "1961-01-01T00:00:00Z" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_next(&cases[i]);
}

static void times_skipped_by_daylight_saving_run_later(void **state)
{
    (void)state;
    static const struct next_case cases[] = {
        /* 02:00 becomes 03:00 at 07:00 UTC */
        { "30 2 * * *", "America/New_York", "2026-03-07T12:00Z", "2026-03-08T07:30Z" },
        { "30 2 * * *", "America/New_York", "2026-03-08T07:30Z", "2026-03-09T06:30Z" },
        { "*/20 2 * * *", "America/New_York", "2026-03-08T07:00Z", "2026-03-08T07:20Z" },
        { "0 1-3 * * *", "America/New_York", "2026-03-08T06:00Z", "2026-03-08T07:00Z" },
        { "0 1-3 * * *", "America/New_York", "2026-03-08T07:00Z", "2026-03-09T05:00Z" },
        { "30 * * * *", "America/New_York", "2026-03-08T06:30Z", "2026-03-08T07:30Z" },
        { "0 */2 * * *", "Europe/London", "2026-03-29T00:00Z", "2026-03-29T01:00Z" },
        /* midnight is skipped */
        { "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00Z", "2026-04-23T22:00Z" },
        { "30 0 * * *", "Africa/Cairo", "2026-04-23T12:00Z", "2026-04-23T22:30Z" },
        { "0 0 24 4 *", "Africa/Cairo", "2026-04-23T12:00Z", "2026-04-23T22:00Z" },
        { "0 0 * * *", "America/Havana", "2026-03-07T12:00Z", "2026-03-08T05:00Z" },
        /* by half an hour: 02:00 becomes 02:30 at 15:30 UTC */
        { "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00Z", "2026-10-03T15:45Z" },
        { "*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:15Z", "2026-10-03T15:30Z" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_next(&cases[i]);
}

static void repeated_times_run_once_except_for_hourly_ones(void **state)
{
    (void)state;
    static const struct next_case cases[] = {
        /* 02:00 becomes 01:00 at 06:00 UTC */
        { "30 1 * * *", "America/New_York", "2026-11-01T00:00Z", "2026-11-01T05:30Z" },
        { "30 1 * * *", "America/New_York", "2026-11-01T05:30Z", "2026-11-02T06:30Z" },
        { "0 1-3 * * *", "America/New_York", "2026-11-01T05:00Z", "2026-11-01T07:00Z" },
        { "0 * * * *", "America/New_York", "2026-11-01T05:00Z", "2026-11-01T06:00Z" },
        { "59 * * * *", "America/New_York", "2026-11-01T05:59Z", "2026-11-01T06:59Z" },
        /* 24:00 becomes 23:00, so the evening is repeated */
        { "30 23 * * *", "Africa/Cairo", "2026-10-29T20:30Z", "2026-10-30T21:30Z" },
        { "30 * * * *", "Africa/Cairo", "2026-10-29T20:30Z", "2026-10-29T21:30Z" },
        { "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00Z", "2026-04-04T14:45Z" },
        { "*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:45Z", "2026-04-04T15:00Z" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_next(&cases[i]);
}

static void cron_expression_has_a_description(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *words;
    } cases[] = {
        { "* * * * *", "Every minute" },
        { "*/5 * * * *", "Every 5 minutes" },
        { "0 * * * *", "Every hour" },
        { "30 * * * *", "At 30 minutes past the hour" },
        { "0 9 * * *", "At 09:00 AM" },
        { "30 14 * * *", "At 02:30 PM" },
        { "0 0 1 * *", "At 12:00 AM, on day 1 of the month" },
        { "0 0 * * 0", "At 12:00 AM, only on Sunday" },
        { "0 9 * * 1-5", "At 09:00 AM, Monday through Friday" },
        { "0 9,17 * * *", "At 09:00 AM and 05:00 PM" },
        { "0 */2 * * *", "At 0 minutes past the hour, every 2 hours" },
        { "*/10 9,17 * * *",
          "Every 10 minutes, in the hours that begin at 09:00 AM and 05:00 PM" },
        { "0 0 1 1 *", "At 12:00 AM, on day 1 of the month, only in January" },
        { "0 0 L * *", "At 12:00 AM, on the last day of the month" },
        { "0 12 * * 5L", "At 12:00 PM, on the last Friday of the month" },
        { "0 12 * * 1#2", "At 12:00 PM, on the second Monday of the month" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cron cron;
        struct failure why;
        struct buf words = { 0 };
        assert_int_equal(cron_read(slice_of(cases[i].expression), &cron, &why), OK);
        cron_describe(&cron, &words);
        buf_add_char(&words, '\0');
        assert_string_equal(words.ptr, cases[i].words);
        buf_finish(&words);
    }
}

static void only_valid_zone_names_are_opened(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "/etc/passwd",
        "../zoneinfo/UTC",
        "Europe//Berlin",
        "Europe/Berlin/",
        "Europe",
        "Mars/Phobos",
        "tzdata.zi",
        "zone1970.tab",
        "right/Europe/Berlin",
        "leapseconds",
        "localtime",
        "europe/berlin ",
        ".",
    };
    struct zone *zone;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (zone_open(slice_of(names[i]), &zone) == OK)
            fail_msg("'%s' was opened", names[i]);
    assert_int_not_equal(zone_open(SLICE("UTC\0"), &zone), OK);
    assert_int_not_equal(zone_open(SLICE("Europe/Berlin\0"), &zone), OK);
    zone = zone_of("America/Argentina/ComodRivadavia");
    assert_int_equal(zone_offset(zone, at("2026-01-01T00:00Z") / 1000), -3 * 3600);
    zone_close(zone);
}

static void footer_rules_apply_after_the_last_transition(void **state)
{
    (void)state;
    static const struct {
        const char *zone, *time;
        int32_t offset;
    } cases[] = {
        { "Europe/Berlin", "2099-07-01T00:00Z", 7200 },
        { "Europe/Berlin", "2099-01-01T00:00Z", 3600 },
        { "Europe/Dublin", "2099-07-01T00:00Z", 3600 },
        { "Europe/Dublin", "2099-01-01T00:00Z", 0 },
        { "Pacific/Auckland", "2099-01-01T00:00Z", 13 * 3600 },
        { "America/New_York", "2099-07-01T00:00Z", -4 * 3600 },
        { "Asia/Kolkata", "2099-07-01T00:00Z", 19800 },
        { "UTC", "2099-07-01T00:00Z", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zone *zone = zone_of(cases[i].zone);
        assert_int_equal(zone_offset(zone, at(cases[i].time) / 1000), cases[i].offset);
        zone_close(zone);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_cron_expression_is_rejected_with_a_reason),
        cmocka_unit_test(step_larger_than_its_field_is_rejected_from_users_only),
        cmocka_unit_test(every_form_of_field_runs_when_it_should),
        cmocka_unit_test(times_skipped_by_daylight_saving_run_later),
        cmocka_unit_test(repeated_times_run_once_except_for_hourly_ones),
        cmocka_unit_test(cron_expression_has_a_description),
        cmocka_unit_test(only_valid_zone_names_are_opened),
        cmocka_unit_test(footer_rules_apply_after_the_last_transition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
