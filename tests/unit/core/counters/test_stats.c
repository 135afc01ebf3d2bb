/* A sample holds the counts of its ten seconds; samples are kept for six hours. */
#include "tests/support/world/unit.h"

#include "core/counters/stats.h"

enum { BEGIN = 1000 * STATS_INTERVAL_MS };

static void sample_is_kept_when_its_interval_ends(void **state)
{
    (void)state;
    struct stats stats;
    stats_init(&stats, BEGIN + 123);
    stats_note_run(&stats, -1, RUN_QUEUED);
    stats_note_run(&stats, RUN_QUEUED, RUN_EXECUTING);
    stats_note_run(&stats, RUN_EXECUTING, RUN_FAILED);
    stats_note_run(&stats, RUN_FAILED, RUN_FAILED); /* only its metadata changed */
    stats_note_run(&stats, -1, RUN_COMPLETED);
    assert_false(stats_is_over(&stats, BEGIN + STATS_INTERVAL_MS - 1));
    assert_true(stats_is_over(&stats, BEGIN + STATS_INTERVAL_MS));
    stats_close(&stats, BEGIN + STATS_INTERVAL_MS, 3, BEGIN - 5);
    assert_int_equal(stats.count, 1);
    const struct stats_sample *sample = stats_at(&stats, 0);
    assert_int_equal(sample->at, BEGIN);
    assert_int_equal(sample->triggers, 2);
    assert_int_equal(sample->ends[RUN_FAILED - RUN_CANCELED], 1);
    assert_int_equal(sample->ends[RUN_COMPLETED - RUN_CANCELED], 1);
    assert_int_equal(sample->queued, 3);
    assert_int_equal(sample->queued_since, BEGIN - 5);
    stats_finish(&stats);
}

static void empty_sample_is_not_kept(void **state)
{
    (void)state;
    struct stats stats;
    stats_init(&stats, BEGIN);
    stats_close(&stats, BEGIN + 25000, 0, 0);
    assert_int_equal(stats.count, 0);
    assert_int_equal(stats.open.at, BEGIN + 20000);
    assert_null(stats.ring);
    assert_false(stats_is_over(&stats, BEGIN)); /* the clock was set back */
    stats_finish(&stats);
}

static void six_hours_are_kept_and_found_by_their_time(void **state)
{
    (void)state;
    struct stats stats;
    int64_t now = BEGIN;
    stats_init(&stats, now);
    for (int i = 0; i < STATS_SAMPLES + 10; i++) {
        stats_note_run(&stats, -1, RUN_QUEUED);
        stats_close(&stats, now += STATS_INTERVAL_MS, (uint32_t)i, 0);
    }
    assert_int_equal(stats.count, STATS_SAMPLES);
    assert_int_equal(stats_at(&stats, 0)->queued, 10);
    assert_int_equal(stats_at(&stats, STATS_SAMPLES - 1)->queued, STATS_SAMPLES + 9);
    assert_int_equal(stats_find(&stats, 0), 0);
    assert_int_equal(stats_find(&stats, now), STATS_SAMPLES);
    assert_int_equal(stats_find(&stats, now - STATS_INTERVAL_MS), STATS_SAMPLES - 1);
    assert_int_equal(stats_find(&stats, now - STATS_INTERVAL_MS - 1), STATS_SAMPLES - 1);
    stats_finish(&stats);
}

static void delivery_times_are_rounded_up_by_a_quarter_at_most(void **state)
{
    (void)state;
    struct stats stats;
    static const int64_t times[] = { 1, 2, 3, 5, 999, 1000, 65537, 15000000 };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        stats_init(&stats, BEGIN);
        stats_note_delivery(&stats, times[i]);
        stats_close(&stats, BEGIN + STATS_INTERVAL_MS, 0, 0);
        uint32_t told = stats_at(&stats, 0)->p50_us;
        assert_true(told >= times[i] && told <= times[i] + times[i] / 4 + 1);
        assert_int_equal(stats_at(&stats, 0)->p99_us, told);
        stats_finish(&stats);
    }
    stats_init(&stats, BEGIN);
    for (int i = 0; i < 98; i++)
        stats_note_delivery(&stats, 100);
    stats_note_delivery(&stats, 1 << 20);
    stats_note_delivery(&stats, INT64_C(1) << 40); /* beyond the last bucket */
    stats_close(&stats, BEGIN + STATS_INTERVAL_MS, 0, 0);
    assert_int_equal(stats_at(&stats, 0)->deliveries, 100);
    assert_in_range(stats_at(&stats, 0)->p50_us, 100, 125);
    assert_in_range(stats_at(&stats, 0)->p99_us, 1 << 20, (1 << 20) + (1 << 18));
    stats_finish(&stats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_is_kept_when_its_interval_ends),
        cmocka_unit_test(empty_sample_is_not_kept),
        cmocka_unit_test(six_hours_are_kept_and_found_by_their_time),
        cmocka_unit_test(delivery_times_are_rounded_up_by_a_quarter_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
