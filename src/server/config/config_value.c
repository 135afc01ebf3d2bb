/* config_value.c - parses, checks and prints the values of settings. */
#include "server/config/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stddef.h>
#include <strings.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/vault/secret.h"
#include "base/vault/vault.h"
#include "net/address.h"

enum { DEPLOY_HOLD_MAX_MS = 280 * 1000 };

/* clang-format off */
const struct setting config_settings[SETTING_COUNT] = {
#define ROW(name, type, field, def, min, max, choices, help) \
    [SETTING_##field] = { name, type, offsetof(struct config, field), def, min, max, choices, help },
#define CONFIG_TEXT(name, field, def, help) \
    ROW(name, SETTING_IS_TEXT, field, def, 0, 0, NULL, help)
#define CONFIG_CHOICE(name, field, def, words, help) \
    ROW(name, SETTING_IS_TEXT, field, def, 0, 0, words, help)
#define CONFIG_LIST(name, field, def, help) \
    ROW(name, SETTING_IS_LIST, field, def, 0, 0, NULL, help)
#define CONFIG_SECRET(name, field, help) \
    ROW(name, SETTING_IS_SECRET, field, "", 0, 0, NULL, help)
#define CONFIG_NUMBER(name, field, def, min, max, help) \
    ROW(name, SETTING_IS_NUMBER, field, #def, min, max, NULL, help)
#define CONFIG_BYTES(name, field, def, min, max, help) \
    ROW(name, SETTING_IS_BYTES, field, def, min, max, NULL, help)
#define CONFIG_DURATION(name, field, def, min_ms, help) \
    ROW(name, SETTING_IS_DURATION, field, def, min_ms, INT64_MAX, NULL, help)
#define CONFIG_FLAG(name, field, help) \
    ROW(name, SETTING_IS_FLAG, field, "false", 0, 0, NULL, help)
#include "server/config/config.def"
#undef ROW
#undef CONFIG_TEXT
#undef CONFIG_CHOICE
#undef CONFIG_LIST
#undef CONFIG_SECRET
#undef CONFIG_NUMBER
#undef CONFIG_BYTES
#undef CONFIG_DURATION
#undef CONFIG_FLAG
};
/* clang-format on */

static void *field_of(const struct config *config, enum config_setting which)
{
    return (char *)config + config_settings[which].offset;
}

/* ---- reading ---- */

static bool read_bytes(struct slice text, int64_t *bytes)
{
    static const char units[] = "kmg";
    int64_t factor = 1;
    const char *unit = text.len ? strchr(units, text.ptr[text.len - 1] | 0x20) : NULL;
    if (unit && *unit) {
        factor = INT64_C(1) << 10 * (unit - units + 1);
        text.len--;
    }
    return text_to_i64(text, bytes) == OK && !__builtin_mul_overflow(*bytes, factor, bytes);
}

static bool read_flag(const char *value, bool *flag)
{
    static const char *const names[] = {
        "false", "true", "no", "yes", "off", "on", "0", "1"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcasecmp(value, names[i]) == 0) {
            *flag = i % 2;
            return true;
        }
    }
    return false;
}

/* Reads "200ms". Durations of the API have no unit below a second. */
static bool read_milliseconds(struct slice text, int64_t *ms)
{
    size_t digits = text.len > 2 ? text.len - 2 : 0;
    return digits && slice_is(slice_from(text, digits), "ms") &&
           text_to_i64((struct slice){ text.ptr, digits }, ms) == OK &&
           *ms <= text_time_max_ms;
}

static bool read_number(const struct setting *setting, struct slice text, int64_t *number)
{
    int64_t read = 0;
    bool well_formed = false;
    switch (setting->type) {
    case SETTING_IS_NUMBER: well_formed = text_to_i64(text, &read) == OK; break;
    case SETTING_IS_BYTES: well_formed = read_bytes(text, &read); break;
    case SETTING_IS_DURATION:
        well_formed = slice_is(text, "0") || read_milliseconds(text, &read) ||
                      text_to_duration_ms(text, &read) == OK;
        break;
    default: break;
    }
    if (!well_formed || read < setting->min || read > setting->max)
        return false;
    *number = read;
    return true;
}

/* Sets a list to the words of a value, with one space between them. */
static void set_list(char **field, struct slice value)
{
    struct buf words = { 0 };
    struct slice word;
    for (size_t i = 0; i < value.len; i += word.len + 1) {
        struct slice rest = slice_from(value, i);
        word = (struct slice){ rest.ptr, 0 };
        while (word.len < rest.len && !strchr(" \t", rest.ptr[word.len]))
            word.len++;
        if (words.len && word.len)
            buf_add_char(&words, ' ');
        buf_add(&words, word);
    }
    free(*field);
    *field = mem_text(buf_slice(&words));
    buf_finish(&words);
}

static void print_bytes(int64_t bytes, struct buf *out)
{
    static const char units[] = " kmg";
    int unit = 0;
    for (; unit < 3 && bytes && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    buf_add_number(out, bytes);
    if (unit)
        buf_add_char(out, units[unit]);
}

/* Prints a duration as people write it: 30d, not 4w2d. */
static void print_duration(int64_t ms, struct buf *out)
{
    static const struct {
        int64_t seconds;
        char letter;
    } units[] = { { 24 * 3600, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
    if (ms % 1000) {
        buf_add_number(out, ms);
        buf_add_text(out, "ms");
        return;
    }
    int64_t seconds = ms / 1000;
    size_t unit = seconds ? 0 : 3;
    while (seconds % units[unit].seconds)
        unit++;
    buf_add_number(out, seconds / units[unit].seconds);
    buf_add_char(out, units[unit].letter);
}

/* Appends which values are valid, as the end of a sentence: "a number from 1 to 9". */
static void describe_value(const struct setting *setting, struct buf *out)
{
    switch (setting->type) {
    case SETTING_IS_NUMBER:
        buf_print(out, "a number from %lld to %lld", (long long)setting->min,
                  (long long)setting->max);
        break;
    case SETTING_IS_BYTES:
        buf_add_text(out, "a size like 64k, 256m or 2g, at least ");
        print_bytes(setting->min, out);
        break;
    case SETTING_IS_DURATION:
        buf_add_text(out, "a time like 30s, 1h30m or 30d");
        if (setting->min) {
            buf_add_text(out, ", at least ");
            print_duration(setting->min, out);
        }
        break;
    default: buf_add_text(out, "true or false");
    }
}

static enum err config_value_refuse(const struct setting *setting, const char *value,
                                    const char *origin, struct failure *why)
{
    struct buf right = { 0 };
    describe_value(setting, &right);
    enum err err = explain(why, ERR_INVALID, "%s: %s cannot be \"%.60s\"; give %.*s",
                           origin, setting->name, value, SLICE_ARG(buf_slice(&right)));
    buf_finish(&right);
    return err;
}

enum err config_set(struct config *config, enum config_setting which, const char *value,
                    const char *origin, struct failure *why)
{
    const struct setting *setting = &config_settings[which];
    void *field = field_of(config, which);
    bool read = true;
    switch (setting->type) {
    case SETTING_IS_TEXT:
    case SETTING_IS_SECRET:
        secret_forget(*(char **)field);
        *(char **)field = mem_text(slice_trim(slice_of(value)));
        break;
    case SETTING_IS_LIST: set_list(field, slice_of(value)); break;
    case SETTING_IS_FLAG: read = read_flag(value, field); break;
    default: read = read_number(setting, slice_trim(slice_of(value)), field);
    }
    if (!read)
        return config_value_refuse(setting, value, origin, why);
    free(config->origins[which]);
    config->origins[which] = mem_text(slice_of(origin));
    return OK;
}

/* ---- printing ---- */

bool config_may_be_secret(enum config_setting which)
{
    return config_settings[which].type == SETTING_IS_SECRET || which == SETTING_database;
}

/* Finds postgresql://user:password@host/name, or password=… in parameters or keywords. */
bool config_has_password(const char *database)
{
    const char *user = strstr(database, "://");
    const char *at = user ? strchr(user, '@') : NULL;
    const char *colon = user ? strchr(user + 3, ':') : NULL;
    return strstr(database, "password") || (at && colon && colon < at);
}

void config_print_value(const struct config *config, enum config_setting which,
                        struct buf *out)
{
    const void *field = field_of(config, which);
    if (which == SETTING_database && config_has_password(config->database)) {
        buf_add_text(out, "***");
        return;
    }
    switch (config_settings[which].type) {
    case SETTING_IS_TEXT:
    case SETTING_IS_LIST: buf_add_text(out, *(char *const *)field); break;
    case SETTING_IS_SECRET: buf_add_text(out, **(char *const *)field ? "***" : ""); break;
    case SETTING_IS_NUMBER: buf_add_number(out, *(const int64_t *)field); break;
    case SETTING_IS_BYTES: print_bytes(*(const int64_t *)field, out); break;
    case SETTING_IS_DURATION: print_duration(*(const int64_t *)field, out); break;
    case SETTING_IS_FLAG: buf_add_text(out, *(const bool *)field ? "true" : "false"); break;
    }
}

void config_variable_of(enum config_setting which, char out[CONFIG_NAME_MAX])
{
    const char *name = config_settings[which].name;
    size_t len = (size_t)snprintf(out, CONFIG_NAME_MAX, "RUNCAST_");
    for (; *name && len < CONFIG_NAME_MAX - 1; name++)
        out[len++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    out[len] = '\0';
}

/* ---- texts with a syntax ---- */

/* Refuses a setting and shows its text. Never call it for a secret. */
static enum err refuse_text(const struct config *config, enum config_setting which,
                            const char *right, struct failure *why)
{
    return explain(why, ERR_INVALID, "%s: %s cannot be \"%.60s\"; give %s",
                   config->origins[which], config_settings[which].name,
                   *(char **)field_of(config, which), right);
}

/* Returns how many bytes come before the first c; all if it is missing. */
static size_t length_before(struct slice text, char c)
{
    const char *at = text.len ? memchr(text.ptr, c, text.len) : NULL;
    return at ? (size_t)(at - text.ptr) : text.len;
}

/* Accepts NAME, NUMBERS or [IPV6], and optionally a colon and a port from 1 to 65535. */
static bool is_authority(struct slice text)
{
    char ipv6[INET6_ADDRSTRLEN] = "";
    unsigned char binary[sizeof(struct in6_addr)];
    uint64_t port = 1;
    const char *bracket = slice_starts(text, "[") ? memchr(text.ptr, ']', text.len) : NULL;
    size_t host = bracket ? (size_t)(bracket + 1 - text.ptr) : length_before(text, ':');
    if (bracket && host - 2 < sizeof(ipv6))
        memcpy(ipv6, text.ptr + 1, host - 2);
    if (host < text.len &&
        (text.ptr[host] != ':' || text_to_u64(slice_from(text, host + 1), &port)))
        return false;
    bool named = host && !memchr(text.ptr, '[', host);
    return (bracket ? inet_pton(AF_INET6, ipv6, binary) == 1 : named) && port &&
           port <= UINT16_MAX;
}

/* Accepts segments of letters, digits and -._~, which no client, proxy or shell changes;
 * clients resolve "." and ".." before they send a path. */
static bool is_plain_path(struct slice path)
{
    struct slice segment;
    for (size_t i = 0; i < path.len; i++)
        if (!isalnum((unsigned char)path.ptr[i]) && !strchr("-._~/", path.ptr[i]))
            return false;
    while (slice_split(&path, '/', &segment))
        if (slice_is(segment, ".") || slice_is(segment, ".."))
            return false;
    return true;
}

/* Accepts an http or https URL without user, query and fragment; with a plain path if
 * with_path. */
static bool is_web_address(struct slice text, bool with_path)
{
    size_t scheme = slice_starts(text, "https://")  ? 8
                    : slice_starts(text, "http://") ? 7
                                                    : 0;
    for (size_t i = scheme; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c >= 0x7F || strchr("@?#&\"'<>\\", c) || (c == '/' && !with_path))
            return false;
    }
    struct slice authority = slice_from(text, scheme), path = authority;
    slice_split(&path, '/', &authority);
    return scheme && is_authority(authority) && is_plain_path(path);
}

static bool ranges_are_right(const char *list)
{
    struct ranges ranges;
    struct slice wrong;
    bool right = ranges_read(slice_of(list), &ranges, &wrong);
    if (right)
        ranges_finish(&ranges);
    return right;
}

static bool origins_are_right(const char *list)
{
    struct slice rest = slice_of(list), one;
    if (!rest.len)
        return true;
    while (slice_split(&rest, ',', &one)) {
        one = slice_trim(one);
        if (!slice_is(one, "*") && !is_web_address(one, false))
            return false;
    }
    return true;
}

/* Returns the index of the setting's text among its choices, or -1. */
static int find_choice(const struct config *config, enum config_setting which)
{
    struct slice rest = slice_of(config_settings[which].choices), word;
    for (int i = 0; slice_split(&rest, ' ', &word); i++)
        if (slice_is(word, *(char *const *)field_of(config, which)))
            return i;
    return -1;
}

/* Appends "off, errors or all". */
static void describe_choices(const char *choices, struct buf *out)
{
    struct slice rest = slice_of(choices), word;
    while (slice_split(&rest, ' ', &word)) {
        buf_add_text(out, !out->len ? "" : rest.ptr ? ", " : " or ");
        buf_add(out, word);
    }
    buf_add_char(out, '\0');
}

static enum err check_choices(const struct config *config, struct failure *why)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        enum config_setting which = (enum config_setting)i;
        struct buf right = { 0 };
        if (!config_settings[i].choices || find_choice(config, which) >= 0)
            continue;
        describe_choices(config_settings[i].choices, &right);
        enum err err = refuse_text(config, which, right.ptr, why);
        buf_finish(&right);
        return err;
    }
    return OK;
}

static bool is_key_or_empty(const char *text)
{
    return !*text || vault_key_is_right(slice_of(text));
}

static bool is_schema_name(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return len && !text[len] && len < 64 && !(text[0] >= '0' && text[0] <= '9');
}

static bool is_gateway_name(const char *text)
{
    size_t len = strlen(text);
    return len < 64 && len == strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-");
}

static bool is_default(const struct config *config, enum config_setting which)
{
    struct buf value = { 0 };
    config_print_value(config, which, &value);
    bool is_default = slice_is(buf_slice(&value), config_settings[which].def);
    buf_finish(&value);
    return is_default;
}

/* Refuses settings about a database if none is set. Otherwise a gateway whose operator has
 * forgotten the database would serve from its own, and be believed to stand by. */
static enum err check_without_database(const struct config *config, struct failure *why)
{
    static const enum config_setting list[] = {
        SETTING_database_schema,   SETTING_database_writers, SETTING_database_readers,
        SETTING_commit_durability, SETTING_failover,         SETTING_gateway_name,
        SETTING_beat_ms,           SETTING_dead_after_ms,    SETTING_peer_listen
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        if (!is_default(config, list[i]))
            return explain(why, ERR_INVALID,
                           "%s: needs PostgreSQL, but database is not set; set "
                           "RUNCAST_DATABASE to its address, or remove this setting",
                           config->origins[list[i]]);
    return OK;
}

/* With a database, the encryption key must be set. A key that a gateway generates in its
 * data directory would be unknown to the other gateways. The key is not in the database
 * either, so root of the database's machine cannot read secrets. */
static enum err check_database(const struct config *config, struct failure *why)
{
    const char *origin = config->origins[SETTING_database];
    if (!is_schema_name(config->database_schema))
        return refuse_text(config, SETTING_database_schema,
                           "up to 63 lower case letters, digits and _, no digit first",
                           why);
    if (!is_gateway_name(config->gateway_name))
        return refuse_text(config, SETTING_gateway_name,
                           "up to 63 letters, digits, and any of . : _ -", why);
    if (config->dead_after_ms < 5 * config->beat_ms)
        return explain(why, ERR_INVALID,
                       "%s: dead-after is less than five times beat (%s), so another "
                       "gateway would take over from one that is only busy; raise it",
                       config->origins[SETTING_dead_after_ms],
                       config->origins[SETTING_beat_ms]);
    bool serves = config_serves(config) || config->action == ACTION_CHECK_CONFIG;
    if (!*config->database)
        return serves ? check_without_database(config, why) : OK;
    if (strncmp(origin, "--", 2) == 0 && config_has_password(config->database))
        return explain(
            why, ERR_INVALID,
            "--database: every user of this machine can read the password among the "
            "arguments; set RUNCAST_DATABASE, or RUNCAST_DATABASE_FILE to the path of a "
            "file with the address, or database in the file of --config");
    if (serves && !*config->encryption_key)
        return explain(
            why, ERR_INVALID,
            "%s: a shared database needs an encryption key outside of it, the same for "
            "every gateway; set RUNCAST_ENCRYPTION_KEY to 64 hex digits (openssl rand -hex "
            "32 prints some), or after a copy from SQLite RUNCAST_ENCRYPTION_KEY_FILE to "
            "the encryption.key of its data directory",
            origin);
    return OK;
}

static enum err refuse_key(const struct config *config, enum config_setting which,
                           struct failure *why)
{
    return explain(why, ERR_INVALID,
                   "%s: the key is not 64 hex digits or 44 characters of base64",
                   config->origins[which]);
}

enum err config_check_texts(const struct config *config, struct failure *why)
{
    if (!*config->data)
        return refuse_text(config, SETTING_data, "the path of a directory", why);
    if (*config->public_url && !is_web_address(slice_of(config->public_url), true))
        return refuse_text(config, SETTING_public_url,
                           "an address like https://runs.example.com", why);
    if (!ranges_are_right(config->trusted_proxies))
        return refuse_text(config, SETTING_trusted_proxies,
                           "a list of addresses and ranges like 10.0.0.0/8 2001:db8::/32, "
                           "and unix for UNIX sockets",
                           why);
    if (!origins_are_right(config->allow_origin))
        return refuse_text(config, SETTING_allow_origin,
                           "a list of origins like https://app.example.com, or *", why);
    if (config->deploy_hold_ms > DEPLOY_HOLD_MAX_MS)
        return explain(
            why, ERR_INVALID,
            "%s: deploy-hold is too large (max 280s: clients give up after 300s)",
            config->origins[SETTING_deploy_hold_ms]);
    if (config->user_organizations && config->execute && !config->execute_tenants)
        return explain(why, ERR_INVALID,
                       "%s: user-organizations lets users create organizations, whose "
                       "tasks would share this machine's kernel, network and readable "
                       "files; isolate them with --execute-tenants, or set it to 0",
                       config->origins[SETTING_user_organizations]);
    struct prices prices = { 0 };
    if (!price_read(slice_of(config->run_price), &prices.run))
        return refuse_text(config, SETTING_run_price,
                           "a number of cents like 0.0025, up to 1000000", why);
    if (!prices_read_machines(slice_of(config->machine_prices), &prices))
        return refuse_text(config, SETTING_machine_prices,
                           "a list of machines, each once, and cents per second like "
                           "small-1x=0.0034,large-2x=0.068, or 0",
                           why);
    if (check_choices(config, why))
        return why->code;
    if (!is_key_or_empty(config->encryption_key))
        return refuse_key(config, SETTING_encryption_key, why);
    if (!is_key_or_empty(config->next_encryption_key))
        return refuse_key(config, SETTING_next_encryption_key, why);
    return check_database(config, why);
}

bool config_serves(const struct config *config)
{
    return config->action == ACTION_NONE && config->command == config->commands;
}

struct prices config_prices(const struct config *config)
{
    struct prices prices = { 0 };
    price_read(slice_of(config->run_price), &prices.run);
    prices_read_machines(slice_of(config_settings[SETTING_machine_prices].def), &prices);
    prices_read_machines(slice_of(config->machine_prices), &prices);
    return prices;
}

int config_log_requests(const struct config *config)
{
    enum { OFF, ERRORS, ALL };
    int which = find_choice(config, SETTING_log_requests);
    bool debugs = config_log_level(config) == LOG_DEBUG;
    return debugs && which == ERRORS ? ALL : which; /* a debug level shows all requests */
}

enum log_level config_log_level(const struct config *config)
{
    return (enum log_level)find_choice(config, SETTING_log_level);
}

enum log_format config_log_format(const struct config *config)
{
    return (enum log_format)find_choice(config, SETTING_log_format);
}
