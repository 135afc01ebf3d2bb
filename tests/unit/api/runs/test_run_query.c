/* Filters and pages of a query: filter[…] and page[…]. */
#include "tests/support/world/unit.h"

#include "api/runs/run_query.h"

static const int64_t now = 1700000000000;
static const int64_t week = 7 * 24 * 3600 * INT64_C(1000);

/* Pairs of decoded name and value; NULL ends them. */
static struct api_call call_of(const char *const *pairs, enum vocabulary vocabulary)
{
    static struct query_pair decoded[API_QUERY_MAX];
    struct api_call call = { .vocabulary = vocabulary, .query = decoded };
    for (; pairs[0]; pairs += 2)
        decoded[call.query_count++] =
            (struct query_pair){ slice_of(pairs[0]), slice_of(pairs[1]) };
    return call;
}

static struct run_query query; /* has pointers into itself, so it must not move */

static void read_query(const char *const *pairs)
{
    struct api_call call = call_of(pairs, VOCABULARY_B);
    struct failure why = { 0 };
    assert_int_equal(run_query_read(&call, false, now, &query, &why), OK);
    assert_null(query.wrong);
}

#define QUERY(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void empty_query_covers_the_last_week(void **state)
{
    static const char *const none[] = { NULL };
    (void)state;
    read_query(none);
    assert_int_equal(query.limit, 25);
    assert_int_equal(query.filter.created_from, now - week);
    assert_int_equal(query.filter.created_to, 0);
    assert_int_equal(query.filter.statuses, 0);
    assert_int_equal(query.filter.is_test, -1);
    assert_int_equal(query.filter.task_count, 0);
    assert_false(query.filter.batch.ptr);
    assert_false(query.filter.nothing);
    assert_string_equal(query.after, "");
    assert_string_equal(query.before, "");
}

static void lists_are_split_at_commas(void **state)
{
    (void)state;
    read_query(QUERY("filter[taskIdentifier]", "a,b", "filter[version]", "1", "filter[tag]",
                     " x , ,y,", "filter[queue]", "task/a,other", "filter[region]", "eu"));
    assert_int_equal(query.filter.task_count, 2);
    assert_true(slice_is(query.filter.tasks[1], "b"));
    assert_int_equal(query.filter.version_count, 1);
    assert_int_equal(query.filter.tag_count, 2);
    assert_true(slice_is(query.filter.tags[0], "x"));
    assert_true(slice_is(query.filter.tags[1], "y"));
    assert_int_equal(query.filter.queue_count, 2);
    assert_true(slice_is(query.filter.queues[0], "task/a"));
    assert_int_equal(query.filter.region_count, 1);
}

static void empty_values_are_ignored(void **state)
{
    (void)state;
    read_query(QUERY("filter[status]", "", "filter[tag]", ",", "filter[isTest]", "",
                     "filter[bulkAction]", "", "page[size]", "", "page[after]", ""));
    assert_int_equal(query.filter.statuses, 0);
    assert_int_equal(query.filter.tag_count, 0);
    assert_int_equal(query.filter.is_test, -1);
    assert_false(query.filter.nothing);
    assert_int_equal(query.limit, 25);
}

static void statuses_of_both_vocabularies_are_read(void **state)
{
    static const struct {
        const char *words;
        enum vocabulary vocabulary;
        unsigned set;
    } cases[] = {
        { "QUEUED", VOCABULARY_A, 1u << RUN_QUEUED },
        { "QUEUED,DELAYED", VOCABULARY_B, 1u << RUN_QUEUED | 1u << RUN_DELAYED },
        { "EXECUTING", VOCABULARY_A, 1u << RUN_DEQUEUED | 1u << RUN_EXECUTING },
        { "EXECUTING", VOCABULARY_B, 1u << RUN_EXECUTING | 1u << RUN_RETRYING },
        { "FAILED", VOCABULARY_B, 1u << RUN_FAILED | 1u << RUN_INTERRUPTED },
        { "FAILED", VOCABULARY_A, 1u << RUN_FAILED },
        { "FROZEN,WAITING", VOCABULARY_B, 1u << RUN_WAITING },
        { "REATTEMPTING", VOCABULARY_B, 1u << RUN_RETRYING },
        { "WAITING_FOR_DEPLOY", VOCABULARY_B, 1u << RUN_PENDING_VERSION },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_call call =
            call_of(QUERY("filter[status]", cases[i].words), cases[i].vocabulary);
        struct failure why = { 0 };
        assert_int_equal(run_query_read(&call, false, now, &query, &why), OK);
        assert_int_equal(query.filter.statuses, cases[i].set);
    }
}

static void the_other_filters_are_read(void **state)
{
    (void)state;
    read_query(QUERY("filter[isTest]", "true", "filter[machine]", "micro,large-2x",
                     "filter[batch]", "batch_1", "filter[schedule]", "sched_1",
                     "filter[env]", "staging,dev"));
    assert_int_equal(query.filter.is_test, 1);
    assert_int_equal(query.filter.machines, 1u << MACHINE_MICRO | 1u << MACHINE_LARGE_2X);
    assert_true(slice_is(query.filter.batch, "batch_1"));
    assert_true(slice_is(query.filter.schedule, "sched_1"));
    assert_int_equal(query.environments, 1u << ENVIRONMENT_STAGING | 1u << ENVIRONMENT_DEV);
    read_query(QUERY("filter[isTest]", "false", "filter[env]", "stg"));
    assert_int_equal(query.filter.is_test, 0);
    assert_int_equal(query.environments, 1u << ENVIRONMENT_STAGING);
    read_query(QUERY("filter[bulkAction]", "bulk_1"));
    assert_true(slice_is(query.filter.bulk, "bulk_1"));
}

static void unsupported_filter_matches_no_run(void **state)
{
    (void)state;
    read_query(QUERY("filter[error]", "error_1"));
    assert_true(query.filter.nothing);
}

static void time_window_is_given_by_from_to_or_period(void **state)
{
    static const struct {
        const char *from, *to, *period;
        int64_t created_from, created_to;
    } cases[] = {
        { "1699999999000", "", "", 1699999999000, 0 },
        { "", "1699999999000", "", 0, 1699999999000 },
        { "1600000000000", "1699999999000", "", 1600000000000, 1699999999000 },
        { "2023-11-14T22:13:20.000Z", "2023-11-14T22:13:21Z", "", 1700000000000,
          1700000001000 },
        { "0", "-5", "", 1, 1 },
        { "1600000000000", "1699999999000", "1h", 1700000000000 - 3600000, 0 },
        { "", "", "9999w", 1, 0 },
        { "rubbish", "", "1d", 1700000000000 - 86400000, 0 }, /* ignored */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        read_query(QUERY("filter[createdAt][from]", cases[i].from, "filter[createdAt][to]",
                         cases[i].to, "filter[createdAt][period]", cases[i].period));
        assert_int_equal(query.filter.created_from, cases[i].created_from);
        assert_int_equal(query.filter.created_to, cases[i].created_to);
    }
}

static void cursor_decodes_to_its_run(void **state)
{
    char cursor[CURSOR_MAX];
    (void)state;
    run_cursor("run_1234567891234567891ab", cursor);
    assert_null(strchr(cursor, '_'));
    read_query(QUERY("page[after]", cursor, "page[before]", cursor, "page[size]", "100"));
    assert_string_equal(query.after, "run_1234567891234567891ab");
    assert_string_equal(query.before, "run_1234567891234567891ab");
    assert_int_equal(query.limit, 100);
}

static void invalid_parameter_is_rejected_by_name(void **state)
{
    static const struct {
        const char *name, *value;
    } cases[] = {
        { "filter[status]", "NOPE" },
        { "filter[status]", "QUEUED,queued" },
        { "filter[isTest]", "maybe" },
        { "filter[machine]", "huge" },
        { "filter[env]", "nope" },
        { "filter[createdAt][from]", "yesterday" },
        { "filter[createdAt][to]", "x" },
        { "filter[createdAt][period]", "1 day" },
        { "page[size]", "0" },
        { "page[size]", "101" },
        { "page[size]", "x" },
        { "page[size]", "-1" },
        { "page[size]", "99999999999999999999" },
        { "page[after]", "!" },
        { "page[after]", "cnVu" },     /* run */
        { "page[before]", "cnVuXzE" }, /* run_1 */
        { "page[before]", "run_1234567891234567891ab" },
        { "page[after]",
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_call call = call_of(QUERY(cases[i].name, cases[i].value), VOCABULARY_A);
        struct failure why = { 0 };
        assert_int_equal(run_query_read(&call, false, now, &query, &why), ERR_INVALID);
        assert_string_equal(query.wrong, cases[i].name);
        assert_true(strlen(why.text) > 0);
    }
}

static void list_length_is_limited(void **state)
{
    char values[2 * QUERY_VALUES_MAX + 2];
    struct failure why = { 0 };
    (void)state;
    for (size_t i = 0; i + 1 < sizeof(values); i++)
        values[i] = i % 2 ? ',' : 'a';
    values[2 * QUERY_VALUES_MAX - 1] = '\0';
    read_query(QUERY("filter[tag]", values));
    assert_int_equal(query.filter.tag_count, QUERY_VALUES_MAX);

    values[2 * QUERY_VALUES_MAX - 1] = ',';
    values[2 * QUERY_VALUES_MAX + 1] = '\0';
    struct api_call call = call_of(QUERY("filter[tag]", values), VOCABULARY_A);
    assert_int_equal(run_query_read(&call, false, now, &query, &why), ERR_INVALID);
    assert_string_equal(query.wrong, "filter[tag]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_query_covers_the_last_week),
        cmocka_unit_test(lists_are_split_at_commas),
        cmocka_unit_test(empty_values_are_ignored),
        cmocka_unit_test(statuses_of_both_vocabularies_are_read),
        cmocka_unit_test(the_other_filters_are_read),
        cmocka_unit_test(unsupported_filter_matches_no_run),
        cmocka_unit_test(time_window_is_given_by_from_to_or_period),
        cmocka_unit_test(cursor_decodes_to_its_run),
        cmocka_unit_test(invalid_parameter_is_rejected_by_name),
        cmocka_unit_test(list_length_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
