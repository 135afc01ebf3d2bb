/* Text chosen by others is shown without anything that a terminal would obey. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "base/terminal.h"

static void expect_shown(struct slice text, const char *shown)
{
    char *got = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&got, &len);
    terminal_show(out, text);
    fclose(out);
    assert_int_equal(len, strlen(shown));
    assert_string_equal(got, shown);
    free(got);
}

static void control_sequences_are_not_shown(void **state)
{
    (void)state;
    expect_shown(SLICE("\033]0;title\a\033[2J"), "?]0;title??[2J");
    expect_shown(SLICE("a\x7f\xc2\x9b\x32J\xe2\x80\xae"), "a??2J?");
    expect_shown(SLICE("a\0b\rc"), "a?b?c");
}

static void other_characters_are_shown(void **state)
{
    (void)state;
    expect_shown(SLICE("one\n\ttwo \xc3\xa9 \xe2\x82\xac \xc2\xa0.\n"),
                 "one\n\ttwo \xc3\xa9 \xe2\x82\xac \xc2\xa0.\n");
    expect_shown(SLICE(""), "");
}

/* An eight-bit terminal treats these bytes as the C1 control characters. */
static void bytes_that_are_not_utf8_are_not_shown(void **state)
{
    (void)state;
    expect_shown(SLICE("a\x9b"
                       "2J\xe2"),
                 "a?2J?");
    expect_shown(SLICE("\xe2\x80"), "??");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_sequences_are_not_shown),
        cmocka_unit_test(other_characters_are_shown),
        cmocka_unit_test(bytes_that_are_not_utf8_are_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
