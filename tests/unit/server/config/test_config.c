/* Settings: their sources, which source wins, and the error for an invalid one. */
#include "tests/support/world/config_input.h"
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/config/config_help.h"
#include "server/config/config_value.h"
#include "server/subcommands.h"

#define HEX_KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define CANARY "CANARY_of_a_secret"

/* Returns the output of print, terminated. */
static struct buf print(const struct config *config)
{
    struct buf out = { 0 };
    config_print(config, &out);
    buf_add_char(&out, '\0');
    return out;
}

static void defaults_apply_without_settings(void **state)
{
    (void)state;
    struct config config = config_input_right(&(struct config_input){ 0 });
    assert_int_equal(config.action, ACTION_NONE);
    assert_string_equal(config.command->words, "serve");
    assert_true(config_serves(&config));
    assert_string_equal(config.listen, "127.0.0.1:3030");
    assert_string_equal(config.data, "./data");
    assert_string_equal(config.public_url, "");
    assert_string_equal(config.metrics_token, "");
    assert_int_equal(config.env_concurrency, 100);
    assert_true(config.retain_ms == INT64_C(30) * 24 * 3600 * 1000);
    assert_int_equal(config.memory, 1 << 30);
    assert_true(config.batch_memory == 64 << 20 && config.stream_memory == 64 << 20);
    assert_int_equal(config.drain_timeout_ms, 30000);
    assert_true(config.lease_ms == 60000 && config.heartbeat_ms == 300000);
    assert_true(config.cancel_ms == 60000 && config.dequeue_wait_ms == 10000);
    assert_int_equal(config.queue_size, 0);
    assert_false(config.insecure);
    assert_int_equal(config_log_level(&config), LOG_INFO);
    assert_int_equal(config_log_format(&config), LOG_AUTO);
    assert_null(config.file);
    for (int i = 0; i < SETTING_COUNT; i++)
        assert_string_equal(config.origins[i], "default");
    config_finish(&config);
}

static void price_list_replaces_prices_of_its_machines(void **state)
{
    (void)state;
    static const struct {
        struct config_input input;
        struct prices prices;
    } cases[] = {
        { { .file = NULL },
          { 0.0025, { 0.00169, 0.00338, 0.00675, 0.0085, 0.017, 0.034, 0.068 } } },
        { { .arguments = { "--run-price", "0", "--machine-prices",
                           " micro = 0 ,large-2x=1e-3" } },
          { 0, { 0, 0.00338, 0.00675, 0.0085, 0.017, 0.034, 0.001 } } },
        { { .environment = { "RUNCAST_MACHINE_PRICES=0" } }, { 0.0025, { 0 } } },
        { { .arguments = { "--machine-prices=" }, .file = "run-price = 1\n" },
          { 1, { 0.00169, 0.00338, 0.00675, 0.0085, 0.017, 0.034, 0.068 } } },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config = config_input_right(&cases[i].input);
        struct prices prices = config_prices(&config);
        assert_memory_equal(&prices, &cases[i].prices, sizeof(prices));
        config_finish(&config);
    }
}

static void flags_override_variables_override_file_override_defaults(void **state)
{
    (void)state;
    static const struct {
        struct config_input input;
        int64_t value;
        const char *origin;
    } cases[] = {
        { { .file = "env-concurrency = 3\n" }, 3, NULL },
        { { .environment = { "RUNCAST_ENV_CONCURRENCY=2" },
            .file = "env-concurrency = 3\n" },
          2,
          "RUNCAST_ENV_CONCURRENCY" },
        { { .arguments = { "--env-concurrency", "1" },
            .environment = { "RUNCAST_ENV_CONCURRENCY=2" },
            .file = "env-concurrency = 3\n" },
          1,
          "--env-concurrency" },
        { { .arguments = { "--env-concurrency=1" }, .file = "env-concurrency = 3\n" },
          1,
          "--env-concurrency" },
        { { .arguments = { "--env-concurrency=7", "--env-concurrency=1" } },
          1,
          "--env-concurrency" },
        { { .environment = { "RUNCAST_ENV_CONCURRENCY=" } }, 100, "default" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config = config_input_right(&cases[i].input);
        assert_int_equal(config.env_concurrency, cases[i].value);
        if (cases[i].origin)
            assert_string_equal(config.origins[SETTING_env_concurrency], cases[i].origin);
        config_finish(&config);
    }
}

static void values_of_every_type_are_read(void **state)
{
    (void)state;
    struct config config = config_input_right(&(struct config_input){
        .arguments = { "serve", "--retain", "0", "--lease=1m30s", "--memory", "256m",
                       "--batch-memory", "2G", "--insecure", "--log-level", "debug",
                       "--public-url", "https://runs.example.com/a" },
        .environment = { "RUNCAST_DATA=/var/lib/runcast", "RUNCAST_LOG_FORMAT=json",
                         "PATH=/bin", "RUNCAST_ALLOW_ORIGIN=https://a.b, http://c:80 ,*" },
        .file = "# a comment\n; another\n\n  drain-timeout = 2h\nqueue-size=5 ; five\n"
                "listen: [::1]:0\n",
    });
    assert_int_equal(config.retain_ms, 0);
    assert_int_equal(config.lease_ms, 90000);
    assert_int_equal(config.memory, 256 << 20);
    assert_true(config.batch_memory == INT64_C(2) << 30);
    assert_true(config.insecure);
    assert_int_equal(config_log_level(&config), LOG_DEBUG);
    assert_int_equal(config_log_format(&config), LOG_JSON);
    assert_string_equal(config.public_url, "https://runs.example.com/a");
    assert_string_equal(config.data, "/var/lib/runcast");
    assert_string_equal(config.allow_origin, "https://a.b, http://c:80 ,*");
    assert_int_equal(config.drain_timeout_ms, 7200000);
    assert_int_equal(config.queue_size, 5);
    assert_string_equal(config.listen, "[::1]:0");
    assert_string_equal(config.file, config_input_path);
    config_finish(&config);
}

static void a_flag_may_be_set_to_false_again(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool insecure;
    } cases[] = {
        { "RUNCAST_INSECURE=true", true },   { "RUNCAST_INSECURE=1", true },
        { "RUNCAST_INSECURE=YES", true },    { "RUNCAST_INSECURE=on", true },
        { "RUNCAST_INSECURE=false", false }, { "RUNCAST_INSECURE=0", false },
        { "RUNCAST_INSECURE=no", false },    { "RUNCAST_INSECURE=Off", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config =
            config_input_right(&(struct config_input){ .environment = { cases[i].value } });
        assert_int_equal(config.insecure, cases[i].insecure);
        config_finish(&config);
    }
    struct config config = config_input_right(&(struct config_input){
        .arguments = { "--insecure=false" }, .environment = { "RUNCAST_INSECURE=1" } });
    assert_false(config.insecure);
    config_finish(&config);
}

static void commands_and_actions_are_distinguished(void **state)
{
    (void)state;
    static const struct {
        struct config_input input;
        enum config_action action;
        const char *command; /* words of the command's row */
    } cases[] = {
        { { .arguments = { "serve" } }, ACTION_NONE, "serve" },
        { { .arguments = { "keys", "--data", "/x" } }, ACTION_NONE, "keys" },
        { { .arguments = { "--data", "/x", "keys" } }, ACTION_NONE, "keys" },
        { { .arguments = { "--help" } }, ACTION_HELP, "serve" },
        { { .arguments = { "-h" } }, ACTION_HELP, "serve" },
        { { .arguments = { "keys", "--help", "--nonsense" } }, ACTION_HELP, "keys" },
        { { .arguments = { "help", "org" } }, ACTION_HELP, "org create" },
        { { .arguments = { "--version" } }, ACTION_VERSION, "serve" },
        { { .arguments = { "--check-config" } }, ACTION_CHECK_CONFIG, "serve" },
        { { .arguments = { "--print-config", "serve" } }, ACTION_PRINT_CONFIG, "serve" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config config = config_input_right(&cases[i].input);
        assert_int_equal(config.action, cases[i].action);
        assert_string_equal(config.command->words, cases[i].command);
        assert_int_equal(config_serves(&config), i == 0);
        config_finish(&config);
    }
}

static void invalid_price_error_names_source_value_and_remedy(void **state)
{
    (void)state;
    static const struct {
        struct config_input input;
        const char *where, *what;
    } cases[] = {
        { { .arguments = { "--run-price", "-1" } }, "--run-price:", "cents like 0.0025" },
        { { .arguments = { "--run-price", "1000001" } }, "--run-price:", "up to 1000000" },
        { { .arguments = { "--run-price", "free" } }, "--run-price:", "cents like 0.0025" },
        { { .arguments = { "--machine-prices", "micro=1,huge=2" } },
          "--machine-prices:",
          "\"micro=1,huge=2\"" },
        { { .arguments = { "--machine-prices", "micro=1,large-2x=2,micro=3" } },
          "--machine-prices:",
          "each once" },
        { { .arguments = { "--machine-prices", "micro=1," } },
          "--machine-prices:",
          "small-1x=0.0034" },
        { { .environment = { "RUNCAST_MACHINE_PRICES=micro=0x1" } },
          "RUNCAST_MACHINE_PRICES:",
          "small-1x=0.0034" },
        { { .file = "machine-prices = micro=1e999\n" }, ":1:", "small-1x=0.0034" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why = config_input_wrong(&cases[i].input);
        if (!strstr(why.text, cases[i].where) || !strstr(why.text, cases[i].what))
            fail_msg("'%s' does not say '%s' and '%s'", why.text, cases[i].where,
                     cases[i].what);
    }
}

static void option_or_quotes_are_rejected_as_a_value(void **state)
{
    (void)state;
    static const struct {
        struct config_input input;
        const char *where, *what;
    } cases[] = {
        { { .arguments = { "--data", "--insecure" } }, "--data:", "--data=VALUE" },
        { { .arguments = { "user", "create", "Ada", "--email", "--org", "x" } },
          "--email:",
          "\"--org\" looks like the next option" },
        { { .file = "data = \"/x\"\n" }, ":1: data:", "without them" },
        { { .file = "data = '/x'\n" }, ":1: data:", "without them" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why = config_input_wrong(&cases[i].input);
        assert_non_null(strstr(why.text, cases[i].where));
        assert_non_null(strstr(why.text, cases[i].what));
    }
    struct config config =
        config_input_right(&(struct config_input){ .arguments = { "--data=--insecure" } });
    assert_string_equal(config.data, "--insecure");
    config_finish(&config);
}

static void a_public_url_needs_a_host_and_a_port_that_exist(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "http://:80",   "http://h:0",      "http://h:99999/a", "http://h:",
        "http://[::1",  "http://[::g]:80", "http://a[::1]",    "http:///a",
        "http://h:8o",  "http://h/a/..",   "http://h/.",       "http://h/../a",
        "http://h/%2e", "http://h/$(id)"
    };
    static const char *const right[] = { "http://h", "http://h:1/a/",
                                         "http://h/a.b/..c~_-1", "https://[::1]:65535",
                                         "http://127.0.0.1:80" };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct config_input input = { .arguments = { "--public-url", wrong[i] } };
        assert_non_null(strstr(config_input_wrong(&input).text, wrong[i]));
    }
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        struct config_input input = { .arguments = { "--public-url", right[i] } };
        struct config config = config_input_right(&input);
        assert_string_equal(config.public_url, right[i]);
        config_finish(&config);
    }
}

static void invalid_setting_error_names_source_value_and_remedy(void **state)
{
    (void)state;
    static const struct {
        struct config_input input;
        const char *where, *what;
    } cases[] = {
        { { .arguments = { "--lisen", "x" } }, "--lisen:", "did you mean --listen?" },
        { { .arguments = { "--env-conc=1" } },
          "--env-conc:",
          "did you mean --env-concurrency?" },
        { { .arguments = { "--zebra" } }, "--zebra:", "--help" },
        { { .arguments = { "--" } }, "--:", "--help" },
        { { .arguments = { "-x" } }, "-x:", "help lists all" },
        { { .arguments = { "srve" } }, "srve:", "did you mean serve?" },
        { { .arguments = { "vault" } }, "vault:", "vault rotate" },
        { { .arguments = { "rotate" } }, "rotate:", "not a command" },
        { { .environment = { "RUNCAST_NEXT_ENCRYPTION_KEY=x" } }, "KEY:", "64 hex" },
        { { .arguments = { "--data" } }, "--data:", "needs a value" },
        { { .arguments = { "--config" } }, "--config:", "needs a value" },
        { { .arguments = { "--config", "/no/such" } }, "/no/such:", "No such file" },
        { { .arguments = { "--config", "/tmp" } }, "/tmp:", "cannot be read" },
        { { .arguments = { "--env-concurrency", "0" } },
          "--env-concurrency:",
          "1 to 100000" },
        { { .arguments = { "--env-concurrency", "1e3" } }, "--env-concurrency:", "1e3" },
        { { .arguments = { "--env-concurrency=" } }, "--env-concurrency:", "a number" },
        { { .arguments = { "--memory", "1023k" } }, "--memory:", "at least 1m" },
        { { .arguments = { "--memory", "3q" } }, "--memory:", "a size like" },
        { { .arguments = { "--memory", "9999999999g" } }, "--memory:", "a size like" },
        { { .arguments = { "--memory", "-1" } }, "--memory:", "a size like" },
        { { .arguments = { "--memory", "m" } }, "--memory:", "a size like" },
        { { .arguments = { "--lease", "0" } }, "--lease:", "at least 1s" },
        { { .arguments = { "--lease", "30" } }, "--lease:", "a time like 30s" },
        { { .arguments = { "--retain", "forever" } }, "--retain:", "a time like 30s" },
        { { .arguments = { "--insecure=maybe" } }, "--insecure:", "true or false" },
        { { .arguments = { "--data=" } }, "--data:", "a directory" },
        { { .arguments = { "--listen", "nonsense" } }, "--listen:", "127.0.0.1:3030" },
        { { .arguments = { "--public-url", "runs.example.com" } },
          "--public-url:",
          "https://" },
        { { .arguments = { "--public-url", "https://u:p@x" } },
          "--public-url:",
          "https://" },
        { { .arguments = { "--public-url", "https://" } }, "--public-url:", "https://" },
        { { .arguments = { "--allow-origin", "a.b" } }, "--allow-origin:", "origins" },
        { { .arguments = { "--allow-origin", "https://a/b" } },
          "--allow-origin:",
          "origins" },
        { { .arguments = { "--allow-origin", "https://a,,*" } },
          "--allow-origin:",
          "origins" },
        { { .environment = { "RUNCAST_LOG_LEVEL=loud" } },
          "RUNCAST_LOG_LEVEL:",
          "debug, info" },
        { { .environment = { "RUNCAST_LOG_FORMAT=xml" } },
          "RUNCAST_LOG_FORMAT:",
          "logfmt" },
        { { .environment = { "RUNCAST_CONNECTIONS=5" } },
          "RUNCAST_CONNECTIONS:",
          "from 16" },
        { { .environment = { "RUNCAST_CONFIG=/no/such" } }, "/no/such:", "No such file" },
        { { .file = "\nmmory = 1g\n" }, ":2: mmory:", "did you mean memory?" },
        { { .file = "config = other.conf\n" }, ":1: config:", "unknown" },
        { { .file = "memory = 1q\n" }, ":1:", "a size like" },
        { { .file = "data = /x\n[server]\nmemory = 1g\n" }, ":2:", "not supported" },
        { { .file = "data = /x\n  [server]\n" }, ":2:", "not supported" },
        { { .file = "data = /x\nmemory\n" }, ":2:", "name = value" },
        { { .file = "= 1\n" }, ":1:", "unknown" },
        { { .file = "memory = 1g\nlease = 5s\nmemory = 2g\n" },
          ":3: memory is already set in",
          ":1; write it once" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why = config_input_wrong(&cases[i].input);
        if (!strstr(why.text, cases[i].where) || !strstr(why.text, cases[i].what))
            fail_msg("'%s' does not say '%s' and '%s'", why.text, cases[i].where,
                     cases[i].what);
    }
}

static void too_long_line_is_an_error(void **state)
{
    (void)state;
    char line[400] = "data = ";
    memset(line + 7, 'x', 300);
    struct failure why = config_input_wrong(&(struct config_input){ .file = line });
    assert_non_null(strstr(why.text, ":1: line too long (max"));
}

static void last_line_may_lack_its_newline(void **state)
{
    (void)state;
    struct config config =
        config_input_right(&(struct config_input){ .file = "data = /x\nqueue-size = 7" });
    assert_int_equal(config.queue_size, 7);
    config_finish(&config);
}

static void indented_line_is_not_a_continuation(void **state)
{
    (void)state;
    struct config config = config_input_right(
        &(struct config_input){ .file = "data = /x\n  queue-size = 7\n\tlease = 5s\n" });
    assert_string_equal(config.data, "/x");
    assert_int_equal(config.queue_size, 7);
    assert_int_equal(config.lease_ms, 5000);
    config_finish(&config);
}

/* ---- unknown variables ---- */

/* Returns the bytes that were written to standard error while reading. */
static struct buf read_with_log(const struct config_input *input)
{
    struct buf text = { 0 };
    FILE *log = tmpfile();
    int kept = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(fileno(log), STDERR_FILENO);
    struct config config = config_input_right(input);
    dup2(kept, STDERR_FILENO);
    close(kept);
    config_finish(&config);

    rewind(log);
    char *place = buf_reserve(&text, 4096);
    text.len = fread(place, 1, 4095, log);
    buf_add_char(&text, '\0');
    fclose(log);
    return text;
}

static void unknown_variable_causes_only_a_warning(void **state)
{
    (void)state;
    struct buf log = read_with_log(&(struct config_input){
        .environment = { "RUNCAST_LGO_LEVEL=" CANARY, "OTHER=1" } });
    assert_non_null(strstr(log.ptr, "RUNCAST_LGO_LEVEL"));
    assert_non_null(strstr(log.ptr, "log-level"));
    assert_null(strstr(log.ptr, CANARY));
    assert_null(strstr(log.ptr, "OTHER"));
    buf_finish(&log);
}

static void variables_of_other_programs_cause_no_warning(void **state)
{
    (void)state;
    struct buf log = read_with_log(&(struct config_input){
        .environment = { "RUNCAST_PROJECT_REF=a", "RUNCAST_DEV_SECRET_KEY=a",
                         "RUNCAST_STAGING_SECRET_KEY=a", "RUNCAST_PROD_SECRET_KEY=a",
                         "RUNCAST_PREVIEW_SECRET_KEY=a", "RUNCAST_PERSONAL_ACCESS_TOKEN=a",
                         "RUNCAST_PROD_SECRET_KEY_FILE=a", "RUNCAST_DATA=/x" } });
    assert_string_equal(log.ptr, "");
    buf_finish(&log);
}

/* ---- secrets ---- */

static void a_secret_is_never_printed(void **state)
{
    (void)state;
    static const struct config_input inputs[] = {
        { .environment = { "RUNCAST_METRICS_TOKEN=" CANARY,
                           "RUNCAST_ENCRYPTION_KEY=" HEX_KEY } },
        { .file = "metrics-token = " CANARY "\nencryption-key = " HEX_KEY "\n" },
    };
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        struct config config = config_input_right(&inputs[i]);
        assert_string_equal(config.metrics_token, CANARY);
        assert_string_equal(config.encryption_key, HEX_KEY);
        struct buf out = print(&config);
        assert_null(strstr(out.ptr, CANARY));
        assert_null(strstr(out.ptr, "0001020304"));
        assert_non_null(strstr(out.ptr, "***"));
        buf_finish(&out);
        config_finish(&config);
    }
}

static void invalid_secret_is_rejected_without_being_shown(void **state)
{
    (void)state;
    static const struct config_input inputs[] = {
        { .environment = { "RUNCAST_ENCRYPTION_KEY=" CANARY } },
        { .file = "encryption-key = " CANARY "\n" },
    };
    static const char *const origins[] = { "RUNCAST_ENCRYPTION_KEY", ":1:" };
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        struct failure why = config_input_wrong(&inputs[i]);
        assert_null(strstr(why.text, CANARY));
        assert_non_null(strstr(why.text, origins[i]));
        assert_non_null(strstr(why.text, "64 hex digits"));
    }
}

static void secret_may_be_read_from_a_file(void **state)
{
    (void)state;
    char variable[128];
    snprintf(variable, sizeof(variable), "RUNCAST_METRICS_TOKEN_FILE=%s",
             config_input_path);
    config_input_write(CANARY "\n");
    struct config config =
        config_input_right(&(struct config_input){ .environment = { variable } });
    assert_string_equal(config.metrics_token, CANARY);
    assert_string_equal(config.origins[SETTING_metrics_token],
                        "RUNCAST_METRICS_TOKEN_FILE");
    struct buf out = print(&config);
    assert_null(strstr(out.ptr, CANARY));
    buf_finish(&out);
    config_finish(&config);

    struct failure why = config_input_wrong(
        &(struct config_input){ .environment = { variable, "RUNCAST_METRICS_TOKEN=x" } });
    assert_non_null(strstr(why.text, "both set"));
    why = config_input_wrong(&(struct config_input){
        .environment = { "RUNCAST_ENCRYPTION_KEY_FILE=/no/such/file" } });
    assert_non_null(strstr(why.text, "/no/such/file"));
}

/* ---- showing ---- */

static void every_setting_is_in_the_help_and_in_the_print(void **state)
{
    (void)state;
    struct config config = config_input_right(&(struct config_input){ 0 });
    struct buf help = { 0 }, out = print(&config);
    config_print_help(subcommands, NULL, &help);
    buf_add_char(&help, '\0');
    for (int i = 0; i < SETTING_COUNT; i++) {
        char flag[64], line[64];
        if (config_settings[i].type == SETTING_IS_SECRET)
            snprintf(flag, sizeof(flag), "  RUNCAST_"); /* a secret has no flag */
        else
            snprintf(flag, sizeof(flag), "  --%s ", config_settings[i].name);
        snprintf(line, sizeof(line), "%s ", config_settings[i].name);
        assert_non_null(strstr(help.ptr, flag));
        assert_non_null(strstr(out.ptr, line));
    }
    buf_finish(&help);
    buf_finish(&out);
    config_finish(&config);
}

static void the_help_shows_only_options_that_are_accepted(void **state)
{
    (void)state;
    struct buf help = { 0 };
    config_print_help(subcommands, NULL, &help);
    buf_add_char(&help, '\0');
    for (char *at = help.ptr; (at = strstr(at, "  --")); at++) {
        char option[64] = { 0 };
        strncpy(option, at + 2, strcspn(at + 2, " \n,"));
        struct config config = { 0 };
        struct failure why = { 0 };
        struct config_input input = { .arguments = { option } };
        enum err err = config_input_read(&config, &input, &why);
        if (err)
            assert_non_null(strstr(why.text, "needs a value"));
        config_finish(&config);
    }
    buf_finish(&help);
}

/* A printed configuration is a file with the same settings. */
static void printed_configuration_can_be_read_back(void **state)
{
    (void)state;
    struct config first = config_input_right(&(struct config_input){
        .arguments = { "--retain", "1h1m1s", "--memory", "1025k", "--data", "/a b/c",
                       "--insecure", "--listen", "[::1]:4000" } });
    struct buf printed = print(&first);
    struct config second =
        config_input_right(&(struct config_input){ .file = printed.ptr });
    assert_int_equal(second.retain_ms, first.retain_ms);
    assert_int_equal(second.memory, first.memory);
    assert_string_equal(second.data, "/a b/c");
    assert_string_equal(second.listen, "[::1]:4000");
    assert_true(second.insecure);
    for (int i = 0; i < SETTING_COUNT; i++) {
        struct buf a = { 0 }, b = { 0 };
        config_print_value(&first, (enum config_setting)i, &a);
        config_print_value(&second, (enum config_setting)i, &b);
        assert_true(slice_equal(buf_slice(&a), buf_slice(&b)));
        buf_finish(&a);
        buf_finish(&b);
    }
    buf_finish(&printed);
    config_finish(&first);
    config_finish(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_apply_without_settings),
        cmocka_unit_test(price_list_replaces_prices_of_its_machines),
        cmocka_unit_test(flags_override_variables_override_file_override_defaults),
        cmocka_unit_test(values_of_every_type_are_read),
        cmocka_unit_test(a_flag_may_be_set_to_false_again),
        cmocka_unit_test(commands_and_actions_are_distinguished),
        cmocka_unit_test(invalid_price_error_names_source_value_and_remedy),
        cmocka_unit_test(option_or_quotes_are_rejected_as_a_value),
        cmocka_unit_test(a_public_url_needs_a_host_and_a_port_that_exist),
        cmocka_unit_test(invalid_setting_error_names_source_value_and_remedy),
        cmocka_unit_test(too_long_line_is_an_error),
        cmocka_unit_test(last_line_may_lack_its_newline),
        cmocka_unit_test(indented_line_is_not_a_continuation),
        cmocka_unit_test(unknown_variable_causes_only_a_warning),
        cmocka_unit_test(variables_of_other_programs_cause_no_warning),
        cmocka_unit_test(a_secret_is_never_printed),
        cmocka_unit_test(invalid_secret_is_rejected_without_being_shown),
        cmocka_unit_test(secret_may_be_read_from_a_file),
        cmocka_unit_test(every_setting_is_in_the_help_and_in_the_print),
        cmocka_unit_test(the_help_shows_only_options_that_are_accepted),
        cmocka_unit_test(printed_configuration_can_be_read_back),
    };
    return cmocka_run_group_tests_name("config", tests, config_input_setup,
                                       config_input_teardown);
}
