/* Prometheus reads exactly what was counted. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/metrics.h"

static struct buf out;

static int tear_down(void **state)
{
    (void)state;
    buf_finish(&out);
    return 0;
}

static const char *print(void)
{
    buf_clear(&out);
    metrics_print(&out);
    buf_add_char(&out, '\0');
    return out.ptr;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void counters_add_up_and_gauges_are_set(void **state)
{
    (void)state;
    metric_add(M_CHANGES, 2);
    metric_add(M_CHANGES, 3);
    metrics[M_RUNS] = 7;
    metrics[M_RUNS] = 4;
    const char *text = print();
    assert_non_null(strstr(text, "# TYPE runcast_changes_total counter\n"
                                 "runcast_changes_total 5\n"));
    assert_non_null(strstr(text, "# TYPE runcast_runs gauge\nruncast_runs 4\n"));
}

static void metrics_of_one_name_share_their_head(void **state)
{
    (void)state;
    metrics[M_HTTP_CONNECTIONS] = 1;
    metrics[M_WS_CONNECTIONS] = 2;
    const char *text = print();
    assert_int_equal(count_of(text, "# TYPE runcast_connections gauge\n"), 1);
    assert_non_null(strstr(text, "runcast_connections{kind=\"http\"} 1\n"
                                 "runcast_connections{kind=\"ws\"} 2\n"));
}

/* The format allows one head per metric name. */
static void no_name_has_two_heads(void **state)
{
    (void)state;
    const char *text = print();
    for (const char *at = text; (at = strstr(at, "# TYPE ")); at++) {
        char head[128];
        assert_int_equal(sscanf(at, "# TYPE %100s", head), 1);
        char line[160];
        snprintf(line, sizeof(line), "# TYPE %.100s ", head);
        assert_int_equal(count_of(text, line), 1);
    }
}

static void histogram_counts_are_cumulative(void **state)
{
    (void)state;
    static const int64_t observed[] = { 0, 50, 51, 100, 3000, 10000000, 10000001 };
    for (size_t i = 0; i < sizeof(observed) / sizeof(observed[0]); i++)
        metric_observe_us(H_COMMIT, observed[i]);
    const char *text = print();
    static const char *const lines[] = {
        "# TYPE runcast_store_commit_seconds histogram\n",
        "runcast_store_commit_seconds_bucket{le=\"0.00005\"} 2\n",
        "runcast_store_commit_seconds_bucket{le=\"0.0001\"} 4\n",
        "runcast_store_commit_seconds_bucket{le=\"0.0025\"} 4\n",
        "runcast_store_commit_seconds_bucket{le=\"0.005\"} 5\n",
        "runcast_store_commit_seconds_bucket{le=\"10\"} 6\n",
        "runcast_store_commit_seconds_bucket{le=\"+Inf\"} 7\n",
        "runcast_store_commit_seconds_sum 20.003202\n",
        "runcast_store_commit_seconds_count 7\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strstr(text, lines[i]))
            fail_msg("not printed: %s", lines[i]);
}

/* Counts in its own buckets, as a thread does. */
static void buckets_counted_elsewhere_are_added_to_the_histogram(void **state)
{
    (void)state;
    struct buckets sizes = { 0 };
    buckets_note(&sizes, metric_bounds(H_GROUP), 1);
    buckets_note(&sizes, metric_bounds(H_GROUP), 3);
    buckets_note(&sizes, metric_bounds(H_GROUP), 5000);
    metric_merge(H_GROUP, &sizes);
    metric_merge(H_GROUP, &sizes);
    const char *text = print();
    static const char *const lines[] = {
        "runcast_store_group_commits_bucket{le=\"1\"} 2\n",
        "runcast_store_group_commits_bucket{le=\"2\"} 2\n",
        "runcast_store_group_commits_bucket{le=\"4\"} 4\n",
        "runcast_store_group_commits_bucket{le=\"1024\"} 4\n",
        "runcast_store_group_commits_bucket{le=\"+Inf\"} 6\n",
        "runcast_store_group_commits_sum 10008\n",
        "runcast_store_group_commits_count 6\n",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strstr(text, lines[i]))
            fail_msg("not printed: %s", lines[i]);
}

static void buckets_have_the_labels_of_their_histogram_before_their_own(void **state)
{
    (void)state;
    struct buckets waits = { 0 };
    buckets_note(&waits, &bounds_of_queues, 200000);
    buckets_print(&waits, &bounds_of_queues, "x_seconds", "a=\"b\"", &out);
    buf_add_char(&out, '\0');
    assert_non_null(strstr(out.ptr, "x_seconds_bucket{a=\"b\",le=\"0.1\"} 0\n"
                                    "x_seconds_bucket{a=\"b\",le=\"0.5\"} 1\n"));
    assert_non_null(strstr(out.ptr, "x_seconds_bucket{a=\"b\",le=\"3600\"} 1\n"
                                    "x_seconds_bucket{a=\"b\",le=\"+Inf\"} 1\n"
                                    "x_seconds_sum{a=\"b\"} 0.2\n"
                                    "x_seconds_count{a=\"b\"} 1\n"));
}

static void a_label_is_escaped(void **state)
{
    (void)state;
    metrics_print_label(&out, "name", "a\"b\\c\nd");
    buf_add_char(&out, '\0');
    assert_string_equal(out.ptr, "name=\"a\\\"b\\\\c\\nd\"");
}

static void every_line_is_a_comment_or_a_sample(void **state)
{
    (void)state;
    char *text = (char *)(uintptr_t)print();
    int lines = 0;
    for (char *rest, *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest), lines++) {
        if (strncmp(line, "# HELP ", 7) == 0 || strncmp(line, "# TYPE ", 7) == 0)
            continue;
        char *value = strrchr(line, ' '), *end;
        assert_non_null(value);
        strtod(value + 1, &end);
        assert_true(end > value + 1 && *end == '\0');
    }
    assert_true(lines > METRIC_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(counters_add_up_and_gauges_are_set, tear_down),
        cmocka_unit_test_teardown(metrics_of_one_name_share_their_head, tear_down),
        cmocka_unit_test_teardown(no_name_has_two_heads, tear_down),
        cmocka_unit_test_teardown(histogram_counts_are_cumulative, tear_down),
        cmocka_unit_test_teardown(buckets_counted_elsewhere_are_added_to_the_histogram,
                                  tear_down),
        cmocka_unit_test_teardown(
            buckets_have_the_labels_of_their_histogram_before_their_own, tear_down),
        cmocka_unit_test_teardown(a_label_is_escaped, tear_down),
        cmocka_unit_test_teardown(every_line_is_a_comment_or_a_sample, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
