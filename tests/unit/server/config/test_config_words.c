/* Subcommands: which row of the table words mean, among settings, and what is rejected. */
#include "tests/support/world/unit.h"

#include "server/config/config.h"
#include "server/subcommands.h"

enum { ARGUMENTS_MAX = 24 };

static char *no_variables[] = { NULL };

static enum err read(struct config *config, const char *const *words, struct failure *why)
{
    char *arguments[ARGUMENTS_MAX] = { (char *)"runcast" };
    int count = 1;
    for (; words[count - 1]; count++)
        arguments[count] = (char *)words[count - 1];
    return config_read(config, subcommands, count, arguments, no_variables, why);
}

static void words_of_a_command_may_be_mixed_with_settings(void **state)
{
    static const char *const given[] = {
        "--log-level", "warn",       "user",    "create",          "--data", "/x",
        "Ada",         "--org=acme", "--email", "ada@example.com", NULL
    };
    struct config config;
    struct failure why;
    (void)state;
    assert_int_equal(read(&config, given, &why), OK);
    assert_string_equal(config.command->words, "user create");
    assert_int_equal(config.word_count, 6); /* as they were given */
    assert_string_equal(config.said.argument, "Ada");
    assert_string_equal(said_option(&config.said, "--org"), "acme");
    assert_string_equal(said_option(&config.said, "--email"), "ada@example.com");
    assert_null(said_option(&config.said, "--data"));
    assert_string_equal(config.data, "/x");
    config_finish(&config);
}

static void command_is_the_row_with_the_longest_matching_prefix(void **state)
{
    static const struct {
        const char *given[ARGUMENTS_MAX];
        const char *row;
    } cases[] = {
        { { "org", "list" }, "org list" },
        { { "org", "create", "serve" }, "org create" },
        { { "keys", "--data", "/x" }, "keys" },
        { { "keys", "--project", "x" }, "keys" },
        { { "keys", "--new-personal-token", "--user", "x" }, "keys --new-personal-token" },
        { { "keys", "--data", "/x", "rotate", "dev", "--grace", "1h" }, "keys rotate" },
        { { "org", "create", "--help" }, "org create" },
        { { "backup", "--data", "/x", "db" }, "backup" },
        { { "restore", "x" }, "restore" },
        { { "db", "stats", "--json" }, "db stats" },
        { { "copy", "--to", "postgresql://x/y" }, "copy" },
        { { "help", "db", "stats" }, "db check" }, /* the row with the help */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config;
        struct failure why = { 0 };
        if (read(&config, cases[i].given, &why))
            fail_msg("%s", why.text);
        assert_string_equal(config.command->words, cases[i].row);
        config_finish(&config);
    }
}

static void unknown_command_is_rejected_with_a_suggestion(void **state)
{
    static const struct {
        const char *given[ARGUMENTS_MAX];
        const char *said;
    } cases[] = {
        { { "--org", "acme" }, "--org: unknown" },
        { { "--to", "postgresql://x/y" }, "--to: unknown" },
        { { "serve", "--grace", "1h" }, "--grace: not an option of runcast serve" },
        { { "serve", "supervise" }, "supervise: not for runcast serve" },
        { { "keys", "rotate", "dev", "--grace" }, "--grace: needs a value" },
        { { "org", "create", "a", "--nmae", "b" }, "--nmae: unknown" },
        { { "db", "stats", "--json=1" }, "--json: unknown" },
        { { "orgs", "list" }, "orgs: not a command; did you mean org?" },
        { { "keys", "rotte", "dev" },
          "keys rotte: not a command; did you mean keys rotate?" },
        { { "keys", "show" },
          "keys show: not a command; runcast help keys lists its commands" },
        { { "org" }, "org: incomplete; use runcast org create, list, rename or delete (" },
        { { "org", "--slug", "x" }, "org: incomplete; use runcast org create," },
        { { "org", "create", "--slug", "x" },
          "NAME is missing; use runcast org create NAME [--slug SLUG] (runcast help org" },
        { { "user", "create", "Ada" },
          "--email EMAIL is missing; use runcast user create" },
        { { "user", "list", "--email", "x" },
          "--email: not an option of runcast user list" },
        { { "help", "orgs" }, "orgs: not a command; did you mean org?" },
        { { "help", "org", "creat" }, "did you mean org create?" },
        { { "help", "org", "create", "x" }, "x: not for runcast help org create" },
        { { "user", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13",
            "14", "15", "16" },
          "16: too many words" },
        { { "user", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13",
            "14", "--org", "x" },
          "x: too many words" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config;
        struct failure why = { 0 };
        assert_int_not_equal(read(&config, cases[i].given, &why), OK);
        if (!strstr(why.text, cases[i].said))
            fail_msg("%s", why.text);
    }
}

/* Finds rows that would break something: without an action, or under another command. */
static void each_row_of_the_table_is_complete(void **state)
{
    (void)state;
    assert_string_equal(subcommands->words, "serve");
    for (const struct subcommand *row = subcommands; row->words; row++) {
        size_t len = strcspn(row->words, " ");
        assert_int_equal((row->stay != NULL) + (row->run != NULL), 1);
        assert_int_equal(row->about != NULL, row->place != NULL);
        if (!row->about &&
            (strncmp(row->words, row[-1].words, len) || row[-1].words[len] > ' '))
            fail_msg("%s stands below another command", row->words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_the_table_is_complete),
        cmocka_unit_test(command_is_the_row_with_the_longest_matching_prefix),
        cmocka_unit_test(words_of_a_command_may_be_mixed_with_settings),
        cmocka_unit_test(unknown_command_is_rejected_with_a_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
