/* Secrets leave no trace in the output of a build, wherever its pieces are cut. */
#include "api/deployments/builds.h"

#include <stdio.h>

#include "tests/support/world/unit.h"

static struct secret_filter filter_of(const char *object)
{
    struct secret_filter filter = { 0 };
    struct loop *loop = loop_create(NULL);
    struct timeslice timeslice = loop_timeslice(loop);
    secret_filter_add_all(&filter, slice_of(object));
    assert_true(secret_filter_prepare(&filter, &timeslice));
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

static void secret_values_are_replaced(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"supersecret\"}", "a supersecret b supersecret",
                    "a <redacted> b <redacted>");
    assert_filtered("{\"A\":\"12345678\"}", "1234567123456781234567",
                    "1234567<redacted>1234567");
    assert_filtered("{}", "nothing to hide", "nothing to hide");
}

static void short_values_are_not_replaced(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"1234567\",\"B\":\"\"}", "x 1234567 y", "x 1234567 y");
}

static void longest_secret_with_the_same_beginning_is_replaced(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"password\",\"B\":\"password-two\",\"C\":\"password-three\"}",
                    "password-two password-three password-x",
                    "<redacted> <redacted> <redacted>-x");
}

static void overlapping_secrets_are_replaced_completely(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"abcdefghij\",\"B\":\"ghijklmnop\"}", "-abcdefghijklmnop-",
                    "-<redacted>-");
    assert_filtered("{\"A\":\"cdefghij\",\"B\":\"abcdefghijkl\"}", "abcdefghijklm",
                    "<redacted>m");
    assert_filtered("{\"A\":\"aaaaaaaa\"}", "baaaaaaaaaaaaaaaaaaaaaaab", "b<redacted>b");
}

static void secrets_are_found_in_json(void **state)
{
    (void)state;
    assert_filtered("{\"A\":\"line one\\nline \\\"two\\\"\"}",
                    "line one\nline \"two\" and {\"a\":\"line one\\nline \\\"two\\\"\"}",
                    "<redacted> and {\"a\":\"<redacted>\"}");
}

static void long_log_keeps_its_end(void **state)
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
        cmocka_unit_test(secret_values_are_replaced),
        cmocka_unit_test(short_values_are_not_replaced),
        cmocka_unit_test(longest_secret_with_the_same_beginning_is_replaced),
        cmocka_unit_test(overlapping_secrets_are_replaced_completely),
        cmocka_unit_test(secrets_are_found_in_json),
        cmocka_unit_test(long_log_keeps_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
