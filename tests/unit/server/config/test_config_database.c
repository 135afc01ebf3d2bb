/* Settings of a shared database: what is rejected, and that passwords are never shown. A
 * password is not accepted as an argument either. */
#include "base/mem.h"
#include "tests/support/world/config_input.h"
#include "tests/support/world/unit.h"

#define KEY                                                                                \
    "RUNCAST_ENCRYPTION_KEY="                                                              \
    "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
#define URL "postgresql://runcast@db.internal:5432/runcast"

static void without_settings_there_is_no_shared_database(void **state)
{
    (void)state;
    struct config config = config_input_right(&(struct config_input){ 0 });
    assert_string_equal(config.database, "");
    assert_int_equal(config.beat_ms, 1000);
    assert_int_equal(config.dead_after_ms, 5000);
    config_finish(&config);
}

static void invalid_database_setting_error_names_the_remedy(void **state)
{
    (void)state;
    static const struct {
        struct config_input input;
        const char *what;
    } cases[] = {
        { { .arguments = { "--database", URL } }, "RUNCAST_ENCRYPTION_KEY" },
        { { .arguments = { "--database=" URL, "--check-config" } },
          "RUNCAST_ENCRYPTION_KEY" },
        { { .environment = { "RUNCAST_DATABASE=" URL } }, "RUNCAST_ENCRYPTION_KEY" },
        { { .arguments = { "--database", "postgresql://a:b@c/d" }, .environment = { KEY } },
          "RUNCAST_DATABASE_FILE" },
        { { .arguments = { "--database", "host=a password=b" }, .environment = { KEY } },
          "RUNCAST_DATABASE_FILE" },
        { { .arguments = { "--database-schema", "Runcast" } }, "lower case" },
        { { .arguments = { "--database-schema", "1" } }, "lower case" },
        { { .arguments = { "--gateway-name", "a b" } }, "letters, digits" },
        { { .arguments = { "--commit-durability", "off" } }, "on, remote_write" },
        { { .arguments = { "--failover", "lossy" } }, "unknown or lossless" },
        { { .arguments = { "--database-writers", "17" } }, "1 to 16" },
        { { .arguments = { "--beat", "2s" } }, "five times beat" },
        { { .arguments = { "--beat", "200ms", "--dead-after", "900ms" } }, "five times" },
        { { .arguments = { "--beat", "99ms" } }, "at least 100ms" },
        { { .arguments = { "--beat", "1s200ms" } }, "at least 100ms" },
        { { .arguments = { "--beat", "ms" } }, "at least 100ms" },
        { { .arguments = { "--beat", "9223372036854775807ms" } }, "at least 100ms" },
        { { .arguments = { "--gateway-name", "a" } }, "--gateway-name: needs PostgreSQL" },
        { { .arguments = { "--dead-after", "10s" } }, "--dead-after: needs PostgreSQL" },
        { { .arguments = { "--database-schema", "a" } }, "--database-schema: needs" },
        { { .environment = { "RUNCAST_DATABASE_READERS=4" } },
          "RUNCAST_DATABASE_READERS: needs PostgreSQL" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why = config_input_wrong(&cases[i].input);
        if (!strstr(why.text, cases[i].what))
            fail_msg("'%s' does not say '%s'", why.text, cases[i].what);
    }
}

static void assert_printed(const struct config *config, const char *text)
{
    struct buf out = { 0 };
    config_print(config, &out);
    buf_add_char(&out, '\0');
    if (!strstr(out.ptr, text))
        fail_msg("'%s' is not in %s", text, out.ptr);
    assert_null(strstr(out.ptr, "hush"));
    buf_finish(&out);
}

static void times_below_a_second_are_read_and_printed(void **state)
{
    (void)state;
    struct config config = config_input_right(&(struct config_input){
        .arguments = { "--beat", "200ms", "--dead-after", "1000ms", "--database", URL },
        .environment = { KEY } });
    assert_int_equal(config.beat_ms, 200);
    assert_int_equal(config.dead_after_ms, 1000);
    assert_printed(&config, "= 200ms");
    assert_printed(&config, "= 1s");
    config_finish(&config);
}

static void database_address_is_shown_without_its_password(void **state)
{
    (void)state;
    struct config config = config_input_right(&(struct config_input){
        .arguments = { "--database", URL }, .environment = { KEY } });
    assert_printed(&config, URL);
    config_finish(&config);
    config = config_input_right(&(struct config_input){
        .environment = { KEY, "RUNCAST_DATABASE=postgresql://a:hush@b/c" } });
    assert_printed(&config, "= ***");
    config_finish(&config);
}

static void database_address_may_be_read_from_a_file(void **state)
{
    (void)state;
    char variable[128];
    config_input_write("postgresql://a:hush@b/c\n");
    snprintf(variable, sizeof(variable), "RUNCAST_DATABASE_FILE=%s", config_input_path);
    struct config config =
        config_input_right(&(struct config_input){ .environment = { KEY, variable } });
    assert_string_equal(config.database, "postgresql://a:hush@b/c");
    config_finish(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_settings_there_is_no_shared_database),
        cmocka_unit_test(invalid_database_setting_error_names_the_remedy),
        cmocka_unit_test(times_below_a_second_are_read_and_printed),
        cmocka_unit_test(database_address_is_shown_without_its_password),
        cmocka_unit_test(database_address_may_be_read_from_a_file),
    };
    return cmocka_run_group_tests(tests, config_input_setup, config_input_teardown);
}
