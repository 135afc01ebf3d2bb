/* Numbers are written with a decimal point, whatever the locale of the process. */
#include "tests/support/world/unit.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json/scan.h"
#include "core/model/metadata.h"

/* A locale of our own, because few are installed: only its numbers differ from the C
 * locale. */
static const char comma[] = "LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \".\"\\n"
                            "grouping 3;3\\nEND LC_NUMERIC\\n";

static bool make_locale(const char *folder)
{
    char command[400];
    snprintf(command, sizeof(command),
             "cd %s && printf '%s' > source && "
             "localedef -c -i source -f UTF-8 --no-archive ./comma >log 2>&1; "
             "test -e comma/LC_NUMERIC",
             folder, comma);
    return system(command) == 0;
}

static int use_decimal_comma(void **state)
{
    char folder[] = "/tmp/runcast-locale-XXXXXX";
    char command[100];
    (void)state;
    assert_non_null(mkdtemp(folder));
    if (make_locale(folder) && !setenv("LOCPATH", folder, 1))
        setlocale(LC_NUMERIC, "comma");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static int use_the_usual(void **state)
{
    (void)state;
    setlocale(LC_NUMERIC, "C");
    return unsetenv("LOCPATH");
}

static void assert_comma(void)
{
    char text[8];
    snprintf(text, sizeof(text), "%.1f", 1.5);
    assert_string_equal(text, "1,5"); /* otherwise localedef or its data is missing */
}

static void number_is_read_with_a_decimal_point(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double number;
    } cases[] = {
        { "1.5", 1.5 },
        { "-0.25e2", -25 },
        { " 1234.5 ", 1234.5 },
        { "1e400", HUGE_VAL },
        { "0.0000000000000000000000000000000000000000000000000000000000000001", 1e-64 },
    };
    assert_comma();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double number = 0;
        assert_true(scan_number(slice_of(cases[i].text), &number));
        assert_true(number == cases[i].number);
    }
    assert_true(scan_equal(SLICE("[0.50]"), SLICE("[5e-1]")));
    assert_false(scan_equal(SLICE("0.5"), SLICE("0.25")));
}

static void number_is_written_with_a_decimal_point(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = { { 1.5, "1.5" }, { 1234567.25, "1234567.25" }, { 2.5e-9, "2.5e-9" } };
    assert_comma();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf out = { 0 };
        buf_add_json_double(&out, cases[i].number);
        assert_true(slice_is(buf_slice(&out), cases[i].text));
        buf_finish(&out);
    }
}

static void sum_in_metadata_keeps_its_fraction(void **state)
{
    (void)state;
    struct buf out = { 0 };
    struct failure why;
    assert_comma();
    struct slice half = SLICE("[{\"type\":\"increment\",\"key\":\"n\",\"value\":0.5}]");
    assert_int_equal(metadata_apply(SLICE("{\"n\":1.25}"), half, &out, &why), OK);
    assert_true(slice_is(buf_slice(&out), "{\"n\":1.75}"));
    buf_finish(&out);
}

static void text_that_is_not_a_number_is_rejected(void **state)
{
    (void)state;
    static const char *const texts[] = { "", " ", "\"1\"", "null", "[1]", "1.2.3", "1,5" };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        double number = 7;
        assert_false(scan_number(slice_of(texts[i]), &number));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(number_is_read_with_a_decimal_point),
        cmocka_unit_test(number_is_written_with_a_decimal_point),
        cmocka_unit_test(sum_in_metadata_keeps_its_fraction),
        cmocka_unit_test(text_that_is_not_a_number_is_rejected),
    };
    return cmocka_run_group_tests_name("numbers", tests, use_decimal_comma, use_the_usual);
}
