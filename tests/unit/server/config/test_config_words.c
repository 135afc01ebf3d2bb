/* Commands on accounts: their words, among settings. */
#include "tests/support/world/unit.h"

#include "server/config/config.h"

enum { ARGUMENTS_MAX = 24 };

static char *no_variables[] = { NULL };

static enum err read(struct config *config, const char *const *words, struct failure *why)
{
    char *arguments[ARGUMENTS_MAX] = { (char *)"runcast" };
    int count = 1;
    for (; words[count - 1]; count++)
        arguments[count] = (char *)words[count - 1];
    return config_read(config, count, arguments, no_variables, why);
}

static void words_are_kept_and_settings_are_not_among_them(void **state)
{
    static const char *const given[] = {
        "--log-level", "warn",       "user",    "create",          "--data", "/x",
        "Ada",         "--org=acme", "--email", "ada@example.com", NULL
    };
    static const char *const words[] = { "user",           "create", "Ada",
                                         "--org",          "acme",   "--email",
                                         "ada@example.com" };
    struct config config;
    struct failure why;
    (void)state;
    assert_int_equal(read(&config, given, &why), OK);
    assert_int_equal(config.command, COMMAND_ACCOUNTS);
    assert_int_equal(config.word_count, sizeof(words) / sizeof(words[0]));
    for (size_t i = 0; i < config.word_count; i++)
        assert_string_equal(config.words[i], words[i]);
    assert_string_equal(config.data, "/x");
    config_finish(&config);
}

static void the_first_word_decides(void **state)
{
    static const struct {
        const char *given[ARGUMENTS_MAX];
        enum config_command command;
    } cases[] = {
        { { "org", "list" }, COMMAND_ACCOUNTS },
        { { "org", "create", "serve" }, COMMAND_ACCOUNTS },
        { { "keys", "--data", "/x" }, COMMAND_KEYS },
        { { "keys", "--data", "/x", "rotate", "dev" }, COMMAND_ACCOUNTS },
        { { "org", "--help" }, COMMAND_HELP },
        { { "backup", "--data", "/x", "db" }, COMMAND_DATA },
        { { "restore", "x" }, COMMAND_DATA },
        { { "db", "stats", "--json" }, COMMAND_DATA },
        { { "copy", "--to", "postgresql://x/y" }, COMMAND_DATA },
        { { "help", "db", "check" }, COMMAND_HELP },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config;
        struct failure why;
        assert_int_equal(read(&config, cases[i].given, &why), OK);
        assert_int_equal(config.command, cases[i].command);
        config_finish(&config);
    }
}

static void options_of_commands_are_not_settings(void **state)
{
    static const struct {
        const char *given[ARGUMENTS_MAX];
        const char *said;
    } cases[] = {
        { { "--org", "acme" }, "--org: unknown" },
        { { "--to", "postgresql://x/y" }, "--to: unknown" },
        { { "serve", "--grace", "1h" }, "--grace: unknown" },
        { { "keys", "rotate", "dev", "--grace" }, "--grace: needs a value" },
        { { "org", "create", "a", "--nmae", "b" }, "--nmae: unknown" },
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
        assert_int_equal(read(&config, cases[i].given, &why), ERR_INVALID);
        if (!strstr(why.text, cases[i].said))
            fail_msg("%s", why.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_word_decides),
        cmocka_unit_test(words_are_kept_and_settings_are_not_among_them),
        cmocka_unit_test(options_of_commands_are_not_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
