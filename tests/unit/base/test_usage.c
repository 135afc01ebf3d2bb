/* The usage line of a command is the grammar of its words. */
#include "tests/support/world/unit.h"

#include "base/usage.h"

enum { WORDS_MAX = 8 };

static enum err read(const char *usage, const char *const *words, struct said *said,
                     struct failure *why)
{
    size_t count = 0;
    while (words[count])
        count++;
    return usage_read("org create", usage, words, count, said, why);
}

static void usage_line_is_split_into_parts(void **state)
{
    static const struct {
        const char *name, *value;
        bool optional;
    } parts[] = {
        { "NAME", "", false },   { "--email", "EMAIL", false }, { "--grace", "24h", true },
        { "--json", "", true },  { "--force", "", false },      { "--to", "URL", true },
        { "options", "", true },
    };
    struct slice rest =
        SLICE("NAME --email EMAIL [--grace 24h] [--json] --force [--to URL] "
              "[options]");
    struct usage_part part;
    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        assert_true(usage_next(&rest, &part));
        assert_true(slice_is(part.name, parts[i].name));
        assert_true(slice_is(part.value, parts[i].value));
        assert_int_equal(part.optional, parts[i].optional);
        assert_int_equal(usage_is_option(&part), parts[i].name[0] == '-');
        assert_int_equal(usage_is_argument(&part), i == 0);
    }
    assert_false(usage_next(&rest, &part));
    rest = SLICE("");
    assert_false(usage_next(&rest, &part));
}

static void words_may_have_any_order_and_the_last_option_wins(void **state)
{
    static const char *const words[] = {
        "--slug", "a", "--json", "--slug=b=c", "Acme", NULL
    };
    struct said said;
    struct failure why;
    (void)state;
    assert_int_equal(read("NAME [--slug SLUG] [--json]", words, &said, &why), OK);
    assert_string_equal(said.argument, "Acme");
    assert_string_equal(said_option(&said, "--slug"), "b=c");
    assert_string_equal(said_option(&said, "--json"), "");
    assert_null(said_option(&said, "--name"));
}

static void option_value_may_look_like_an_option(void **state)
{
    static const char *const words[] = { "--slug", "--json", "--org=--slug", "x", NULL };
    struct said said;
    struct failure why;
    (void)state;
    assert_int_equal(read("NAME [--slug SLUG] [--org SLUG] [--json]", words, &said, &why),
                     OK);
    assert_string_equal(said_option(&said, "--slug"), "--json");
    assert_string_equal(said_option(&said, "--org"), "--slug");
    assert_null(said_option(&said, "--json"));
}

static void words_that_the_usage_does_not_allow_are_rejected(void **state)
{
    static const struct {
        const char *usage;
        const char *words[WORDS_MAX];
        const char *said;
    } cases[] = {
        { "", { "x" }, "x: not for runcast org create; runcast help org explains it" },
        { "NAME", { "a", "b" }, "b: not for runcast org create;" },
        { "NAME", { "a", "--x" }, "--x: not an option of runcast org create;" },
        { "[--json]", { "--json=1" }, "--json=1: not an option" },
        { "[--slug SLUG]", { "--slug" }, "--slug: needs a value" },
        { "NAME [--a B]",
          { NULL },
          "NAME is missing; use runcast org create NAME [--a B] (runcast help org "
          "explains it)" },
        { "NAME --a B", { "x" }, "--a B is missing; use runcast org create NAME --a B (" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct said said;
        struct failure why = { 0 };
        assert_int_equal(read(cases[i].usage, cases[i].words, &said, &why), ERR_USAGE);
        if (!strstr(why.text, cases[i].said))
            fail_msg("%s", why.text);
    }
}

static void a_missing_confirmation_is_left_to_the_command(void **state)
{
    static const char *const words[] = { "acme", NULL };
    struct said said;
    struct failure why;
    (void)state;
    assert_int_equal(read("SLUG --confirm SLUG", words, &said, &why), OK);
    assert_null(said_option(&said, "--confirm"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_line_is_split_into_parts),
        cmocka_unit_test(words_may_have_any_order_and_the_last_option_wins),
        cmocka_unit_test(option_value_may_look_like_an_option),
        cmocka_unit_test(words_that_the_usage_does_not_allow_are_rejected),
        cmocka_unit_test(a_missing_confirmation_is_left_to_the_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
