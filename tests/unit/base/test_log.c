/* A logged event is one line, whatever its fields hold. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json/scan.h"
#include "base/log.h"
#include "base/text.h"

static int real_stderr, file;
static char lines[8192];

/* Makes standard error a file in memory. */
static int set_up(void **state)
{
    (void)state;
    file = memfd_create("log", 0);
    real_stderr = dup(STDERR_FILENO);
    return file < 0 || real_stderr < 0 || dup2(file, STDERR_FILENO) < 0;
}

static int tear_down(void **state)
{
    (void)state;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    close(file);
    log_configure(LOG_INFO, LOG_AUTO);
    return 0;
}

static const char *logged(void)
{
    ssize_t len = pread(file, lines, sizeof(lines) - 1, 0);
    assert_true(len >= 0);
    lines[len] = '\0';
    return lines;
}

/* Returns the part of the line after the timestamp, which must be valid. */
static const char *after_time(const char *line, const char *head)
{
    int64_t ms;
    size_t len = strlen(head);
    assert_true(strncmp(line, head, len) == 0);
    assert_int_equal(text_to_time((struct slice){ line + len, TIME_TEXT_LEN }, &ms), OK);
    return line + len + TIME_TEXT_LEN;
}

static void a_json_line_holds_the_fields_in_order(void **state)
{
    (void)state;
    log_configure(LOG_INFO, LOG_JSON);
    log_info("listening", "address", "127.0.0.1", "port", log_number(3030), NULL);
    assert_string_equal(after_time(logged(), "{\"time\":\""),
                        "\",\"level\":\"info\",\"event\":\"listening\","
                        "\"address\":\"127.0.0.1\",\"port\":\"3030\"}\n");
}

static void a_logfmt_line_quotes_where_it_must(void **state)
{
    (void)state;
    log_configure(LOG_INFO, LOG_LOGFMT);
    log_error("cannot listen", "why", "address in use", "port", "80", "empty", "", "quote",
              "a\"b", NULL);
    assert_string_equal(
        after_time(logged(), "time="),
        " level=error event=\"cannot listen\" why=\"address in use\" port=80 "
        "empty=\"\" quote=\"a\\\"b\"\n");
}

static void log_format_is_json_without_a_terminal(void **state)
{
    (void)state;
    log_configure(LOG_INFO, LOG_AUTO);
    log_warn("x", NULL);
    assert_string_equal(after_time(logged(), "{\"time\":\""),
                        "\",\"level\":\"warn\",\"event\":\"x\"}\n");
}

static void events_below_the_level_are_not_written(void **state)
{
    (void)state;
    log_configure(LOG_WARN, LOG_JSON);
    log_debug("a", NULL);
    log_info("b", NULL);
    assert_string_equal(logged(), "");
    log_warn("c", NULL);
    log_error("d", NULL);
    assert_non_null(strstr(logged(), "\"event\":\"c\""));
    assert_non_null(strstr(logged(), "\"event\":\"d\""));
}

static const char *counted(int *count)
{
    ++*count;
    return "made";
}

static void debug_fields_are_computed_at_debug_level_only(void **state)
{
    (void)state;
    int made = 0;
    log_configure(LOG_INFO, LOG_JSON);
    log_debug("a", "b", counted(&made), NULL);
    log_decision("a", "env_1", "run_1", counted(&made), "c", counted(&made), NULL);
    assert_int_equal(made, 0);
    assert_string_equal(logged(), "");
    log_configure(LOG_DEBUG, LOG_JSON);
    log_debug("a", "b", counted(&made), NULL);
    assert_int_equal(made, 1);
    assert_string_equal(after_time(logged(), "{\"time\":\""),
                        "\",\"level\":\"debug\",\"event\":\"a\",\"b\":\"made\"}\n");
}

static void a_decision_names_environment_run_and_reason(void **state)
{
    (void)state;
    log_configure(LOG_DEBUG, LOG_LOGFMT);
    log_decision("lease over", "env_1", "run_1", "given back", "failures", log_number(2),
                 NULL);
    assert_string_equal(after_time(logged(), "time="),
                        " level=debug event=\"lease over\" environment=env_1 run=run_1 "
                        "reason=\"given back\" failures=2\n");
}

static void decision_omits_absent_fields(void **state)
{
    (void)state;
    log_configure(LOG_DEBUG, LOG_LOGFMT);
    log_decision("drained", NULL, NULL, "quiet", NULL);
    assert_string_equal(after_time(logged(), "time="),
                        " level=debug event=drained reason=quiet\n");
}

static void no_field_can_forge_a_line(void **state)
{
    (void)state;
    static const char *const hostile[] = {
        "a\nlevel=error", "a\r\n", "\x1b[31m", "\xff\xfe", "\"}\n{\"", "a\xc3",
    };
    static const enum log_format formats[] = { LOG_JSON, LOG_LOGFMT };
    int count = 0;
    for (size_t f = 0; f < 2; f++) {
        log_configure(LOG_INFO, formats[f]);
        for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++, count++)
            log_info("x", "field", hostile[i], NULL);
    }
    struct slice rest = slice_of(logged()), line;
    assert_true(text_is_utf8(rest));
    assert_null(strchr(lines, '\x1b'));
    int found = 0;
    while (slice_split(&rest, '\n', &line) && line.len) {
        assert_true(line.ptr[0] == 't' || scan_is_json(line));
        found++;
    }
    assert_int_equal(found, count);
}

static void control_characters_are_escaped(void **state)
{
    (void)state;
    log_configure(LOG_INFO, LOG_LOGFMT);
    log_info("x", "a",
             "\xc2\x9b"
             "31m\x7f",
             "b", "\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6", "c",
             "\xc3\xbc\xe2\x82\xac\xe2\x80\xa7 \xf0\x9f\x98\x80", NULL);
    assert_non_null(strstr(logged(), "a=\"\\u009b31m\\u007f\" "
                                     "b=\"\\u202e\\u2028\\u2066\" "
                                     "c=\"\xc3\xbc\xe2\x82\xac\xe2\x80\xa7 "
                                     "\xf0\x9f\x98\x80\""));
}

static void an_absent_field_is_empty(void **state)
{
    (void)state;
    log_configure(LOG_INFO, LOG_JSON);
    const char *absent = NULL;
    log_info("x", "a", absent, "b", "c", NULL);
    assert_non_null(strstr(logged(), "\"a\":\"\",\"b\":\"c\""));
}

static void eight_numbers_can_be_fields_of_one_line(void **state)
{
    (void)state;
    const char *texts[8];
    char expected[12];
    for (int i = 0; i < 8; i++)
        texts[i] = log_number(i);
    for (int i = 0; i < 8; i++) {
        snprintf(expected, sizeof(expected), "%d", i);
        assert_string_equal(texts[i], expected);
    }
    assert_string_equal(log_number(INT64_MIN), "-9223372036854775808");
}

static void a_slice_is_cut_between_characters(void **state)
{
    (void)state;
    char text[200];
    memset(text, 'a', sizeof(text));
    assert_int_equal(strlen(log_slice((struct slice){ text, 200 })), 100);
    assert_int_equal(strlen(log_slice((struct slice){ text, 100 })), 100);
    memcpy(text + 99, "\xc3\xa4", 2);
    assert_int_equal(strlen(log_slice((struct slice){ text, 200 })), 99);
    assert_string_equal(log_slice(SLICE("a\0b")), "a?b");
    assert_string_equal(log_slice((struct slice){ 0 }), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_json_line_holds_the_fields_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_logfmt_line_quotes_where_it_must, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(log_format_is_json_without_a_terminal, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(events_below_the_level_are_not_written, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(debug_fields_are_computed_at_debug_level_only,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_decision_names_environment_run_and_reason, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(decision_omits_absent_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_field_can_forge_a_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(control_characters_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_absent_field_is_empty, set_up, tear_down),
        cmocka_unit_test(eight_numbers_can_be_fields_of_one_line),
        cmocka_unit_test(a_slice_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
