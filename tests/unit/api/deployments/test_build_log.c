/* Secrets leave no trace in the output of a build, wherever its pieces are cut. */
#include "api/deployments/builds.h"

#include <stdio.h>

#include "tests/support/world/unit.h"

static struct secret_filter filter_of(const char *object)
{
    struct secret_filter filter = { 0 };
    struct loop *loop = loop_create(NULL);
    struct stint stint = loop_stint(loop);
    secret_filter_add_all(&filter, slice_of(object));
    assert_true(secret_filter_prepare(&filter, &stint));
    loop_destroy(loop);
    return filter;
}

static void assert_filtered(const char *object, const char *text, const char *expected)
{
    struct secret_filter filter = filter_of(object);
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct build_log log = { 0 };
        struct slice rest = slice_of(text);
        while (rest.len) {
            size_t len = rest.len < piece ? rest.len : piece;
            build_log_add(&log, &filter, (struct slice){ rest.ptr, len });
            rest = slice_from(rest, len);
        }
        build_log_end(&log);
        buf_add_char(&log.text, '\0');
        assert_string_equal(log.text.ptr, expected);
        build_log_finish(&log);
    }
    secret_filter_finish(&filter);
}

static void values_are_replaced(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"supersecret\"}", "a supersecret b supersecret",
                    "a <redacted> b <redacted>");
    assert_filtered("{\"A\":\"12345678\"}", "1234567123456781234567",
                    "1234567<redacted>1234567");
    assert_filtered("{}", "nothing to hide", "nothing to hide");
}

static void short_values_stay(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"1234567\",\"B\":\"\"}", "x 1234567 y", "x 1234567 y");
}

static void the_longest_of_those_that_begin_alike_is_taken(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"password\",\"B\":\"password-two\",\"C\":\"password-three\"}",
                    "password-two password-three password-x",
                    "<redacted> <redacted> <redacted>-x");
}

static void values_that_overlap_leave_nothing_of_each_other(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"abcdefghij\",\"B\":\"ghijklmnop\"}", "-abcdefghijklmnop-",
                    "-<redacted>-");
    assert_filtered("{\"A\":\"cdefghij\",\"B\":\"abcdefghijkl\"}", "abcdefghijklm",
                    "<redacted>m");
    assert_filtered("{\"A\":\"aaaaaaaa\"}", "baaaaaaaaaaaaaaaaaaaaaaab", "b<redacted>b");
}

static void values_are_found_inside_of_json(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"line one\\nline \\\"two\\\"\"}",
                    "line one\nline \"two\" and {\"a\":\"line one\\nline \\\"two\\\"\"}",
                    "<redacted> and {\"a\":\"<redacted>\"}");
}

static void a_log_keeps_its_end(void **state)
{
    (void)state;
    struct secret_filter none = { 0 };
    struct build_log log = { 0 };
    for (int i = 0; i < 70000; i++) {
        char line[48];
        int len = snprintf(line, sizeof(line), "line %d of a long log\n", i);
        build_log_add(&log, &none, (struct slice){ line, (size_t)len });
        assert_true(build_log_text(&log).len <= BUILD_LOG_MAX);
        assert_true(slice_starts(build_log_text(&log), "line "));
    }
    build_log_end(&log);
    assert_in_range(log.text.len, BUILD_LOG_MAX - sizeof("line 12345 of a long log"),
                    BUILD_LOG_MAX);
    assert_true(slice_starts(buf_slice(&log.text), "line "));
    buf_add_char(&log.text, '\0');
    assert_non_null(strstr(log.text.ptr, "line 69999 of a long log\n"));
    build_log_finish(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_replaced),
        cmocka_unit_test(short_values_stay),
        cmocka_unit_test(the_longest_of_those_that_begin_alike_is_taken),
        cmocka_unit_test(values_that_overlap_leave_nothing_of_each_other),
        cmocka_unit_test(values_are_found_inside_of_json),
        cmocka_unit_test(a_log_keeps_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
