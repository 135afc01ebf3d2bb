/* config.c - reads settings from their sources.
 *
 *   defaults ─► --config FILE ─► RUNCAST_* ─► flags        later ones win
 *
 * Flags are read first, because they may name the file, and applied last. */
#include "server/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>

#include "accounts/bootstrap.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/vault/secret.h"
#include "base/vault/secret_file.h"
#include "base/vault/vault.h"
#include "server/config/closest.h"
#include "server/config/config_listen.h"
#include "server/config/config_tls.h"
#include "server/config/config_value.h"

struct config_reading {
    struct config config;
    const char *flags[SETTING_COUNT]; /* borrowed from the arguments; NULL: not given */
    struct buf lists[SETTING_COUNT];  /* values of list flags, separated by spaces */
    bool in_file[SETTING_COUNT];      /* set by a line of the file */
    struct failure *why;
};

/* ---- names ---- */

/* Returns -1 if there is none. */
static int find_setting(struct slice name)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        if (slice_is(name, config_settings[i].name))
            return i;
    }
    return -1;
}

/* Returns the closest setting, or NULL. */
static const char *closest(struct slice name)
{
    struct closest closest = { .given = name };
    for (int i = 0; i < SETTING_COUNT; i++)
        closest_offer(&closest, slice_of(config_settings[i].name));
    return closest.found.ptr;
}

static enum err unknown(struct slice name, const char *origin, const char *dashes,
                        struct failure *why)
{
    const char *meant = closest(name);
    if (meant)
        return explain(why, ERR_INVALID, "%s: unknown; did you mean %s%s?", origin, dashes,
                       meant);
    return explain(why, ERR_INVALID, "%s: unknown; runcast --help lists all settings",
                   origin);
}

/* ---- arguments ---- */

static enum err add_word(struct config_reading *reading, const char *word)
{
    struct config *config = &reading->config;
    if (config->word_count == USAGE_WORDS_MAX)
        return explain(reading->why, ERR_USAGE, "%.60s: too many words", word);
    config->words[config->word_count++] = word;
    return OK;
}

static enum err read_word(struct config_reading *reading, const char *word)
{
    struct config *config = &reading->config;
    enum err err = OK;
    if (!config->word_count && config->action != ACTION_HELP && !strcmp(word, "help")) {
        config->action = ACTION_HELP;
        return OK;
    }
    if (!config->word_count)
        err = subcommand_check_name(config->commands, word, reading->why);
    return err ? err : add_word(reading, word);
}

/* If a flag is repeated, the last one wins; a list takes all. */
static void take_flag(struct config_reading *reading, int which, const char *value)
{
    struct buf *list = &reading->lists[which];
    reading->flags[which] = value;
    if (config_settings[which].type != SETTING_IS_LIST)
        return;
    if (list->len)
        list->ptr[list->len - 1] = ' ';
    buf_add_text(list, value);
    buf_add_char(list, '\0');
    reading->flags[which] = list->ptr;
}

static enum err refuse_secret(enum config_setting which, struct failure *why)
{
    char variable[CONFIG_NAME_MAX];
    config_variable_of(which, variable);
    return explain(why, ERR_INVALID,
                   "--%s: every user of this machine can read the arguments of a process; "
                   "set %s, or %s_FILE to the path of a file with the value, or write it "
                   "into the file of --config",
                   config_settings[which].name, variable, variable);
}

/* Reads "on" or "off" after a flag; without it the flag is on. */
static const char *read_switch(char **argv, int argc, int *at)
{
    bool follows = *at + 1 < argc &&
                   (strcmp(argv[*at + 1], "on") == 0 || strcmp(argv[*at + 1], "off") == 0);
    return follows ? argv[++*at] : "true";
}

/* Reads --name=value or --name value; a flag without a value is true. */
static enum err read_option(struct config_reading *reading, char **argv, int argc, int *at)
{
    const char *argument = argv[*at];
    struct slice rest = slice_of(argument + 2), name;
    char shown[64];
    slice_split(&rest, '=', &name);
    snprintf(shown, sizeof(shown), "--%.*s", SLICE_ARG(name));

    int which = find_setting(name);
    enum option_kind kind = reading->config.word_count
                                ? subcommand_option(reading->config.commands, name)
                                : OPTION_UNKNOWN;
    bool is_file = slice_is(name, "config"), is_word = kind == OPTION_WITH_VALUE;
    if (kind == OPTION_SWITCH && !rest.ptr)
        return add_word(reading, argument);
    if (which < 0 && !is_file && !is_word)
        return unknown(name, shown, "--", reading->why);
    if (which >= 0 && config_settings[which].type == SETTING_IS_SECRET)
        return refuse_secret((enum config_setting)which, reading->why);

    const char *value = rest.ptr;
    if (!value && which >= 0 && config_settings[which].type == SETTING_IS_FLAG)
        value = read_switch(argv, argc, at);
    else if (!value && *at + 1 < argc && strncmp(argv[*at + 1], "--", 2) != 0)
        value = argv[++*at];
    if (!value &&
        *at + 1 < argc) /* not the value: it would be a folder called --insecure */
        return explain(reading->why, ERR_INVALID,
                       "%s: needs a value, and \"%.60s\" looks like the next option; write "
                       "a value that begins with -- as %s=VALUE",
                       shown, argv[*at + 1], shown);
    if (!value)
        return explain(reading->why, ERR_INVALID, "%s: needs a value", shown);
    if (is_word) {
        enum err err = add_word(reading, argument);
        return err || rest.ptr ? err : add_word(reading, value);
    }
    if (is_file) {
        free(reading->config.file);
        reading->config.file = mem_text(slice_of(value));
    } else {
        take_flag(reading, which, value);
    }
    return OK;
}

/* Returns ACTION_NONE if the argument is not one of them. */
static enum config_action find_action(const char *argument)
{
    static const struct {
        const char *option;
        enum config_action action;
    } actions[] = {
#define HELP_ACTION(option, action, help) { option, action },
#define HELP_NOTE(...)
#include "server/config/help.def"
#undef HELP_ACTION
#undef HELP_NOTE
        { "-h", ACTION_HELP },
    };
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(argument, actions[i].option) == 0)
            return actions[i].action;
    return ACTION_NONE;
}

/* Finds the row of the table, once all words were read. */
static enum err find_command(struct config_reading *reading)
{
    struct config *config = &reading->config;
    const char *const *words = config->words;
    size_t count = config->word_count;
    config->command = config->commands;
    if (!count)
        return OK;
    config->command = subcommand_first(config->commands, words[0]);
    if (config->action == ACTION_NONE)
        return subcommand_read(config->commands, words, count, &config->command,
                               &config->said, reading->why);
    return OK;
}

/* An action (--help …) wins over the command. --help and --version stop reading. */
static enum err read_arguments(struct config_reading *reading, int argc, char **argv)
{
    struct config *config = &reading->config;
    enum err err = OK;
    for (int at = 1; !err && at < argc; at++) {
        enum config_action action = find_action(argv[at]);
        if (action != ACTION_NONE)
            config->action = action;
        else if (strncmp(argv[at], "--", 2) == 0)
            err = read_option(reading, argv, argc, &at);
        else
            err = read_word(reading, argv[at]);
        if (action == ACTION_HELP || action == ACTION_VERSION)
            return find_command(reading);
    }
    if (!err && config->action == ACTION_HELP && config->word_count)
        err = subcommand_check_topic(config->commands, config->words, config->word_count,
                                     reading->why);
    return err ? err : find_command(reading);
}

static enum err apply_flags(struct config_reading *reading)
{
    enum err err = OK;
    for (int i = 0; !err && i < SETTING_COUNT; i++) {
        char origin[CONFIG_NAME_MAX];
        snprintf(origin, sizeof(origin), "--%s", config_settings[i].name);
        if (reading->flags[i])
            err = config_set(&reading->config, (enum config_setting)i, reading->flags[i],
                             origin, reading->why);
    }
    return err;
}

/* ---- the file ---- */

struct config_file {
    FILE *stream;
    const char *path;
    unsigned line;
    struct config_reading *reading;
    enum err err;
};

/* Reads a line for inih, which would append an indented line to the previous one, and
 * silently accept a section without a name. */
static char *read_line(char *text, int size, void *stream)
{
    struct config_file *file = stream;
    if (file->err || !fgets(text, size, file->stream))
        return NULL;
    file->line++;
    size_t len = strlen(text), indent = strspn(text, " \t");
    bool whole = (len && text[len - 1] == '\n') || feof(file->stream);
    if (!whole)
        file->err = explain(file->reading->why, ERR_INVALID,
                            "%s:%u: line too long (max %d characters)", file->path,
                            file->line, size - 2);
    else if (text[indent] == '[')
        file->err = explain(file->reading->why, ERR_INVALID,
                            "%s:%u: sections are not supported; write name = value",
                            file->path, file->line);
    memmove(text, text + indent, len - indent + 1);
    return file->err ? NULL : text;
}

/* Sets a setting from a line. A list may have several lines; any other repetition is an
 * error. */
static enum err set_from_line(struct config_reading *reading, enum config_setting which,
                              const char *value, const char *origin)
{
    char *const *field =
        (char **)((char *)&reading->config + config_settings[which].offset);
    struct buf list = { 0 };
    if (config_settings[which].type != SETTING_IS_LIST && reading->in_file[which])
        return explain(reading->why, ERR_INVALID,
                       "%s: %s is already set in %s; write it once", origin,
                       config_settings[which].name, reading->config.origins[which]);
    if (config_settings[which].type == SETTING_IS_LIST && reading->in_file[which])
        buf_print(&list, "%s ", *field);
    buf_add_text(&list, value);
    buf_add_char(&list, '\0');
    reading->in_file[which] = true;
    enum err err = config_set(&reading->config, which, list.ptr, origin, reading->why);
    buf_finish(&list);
    return err;
}

static bool is_quoted(const char *value)
{
    size_t len = strlen(value);
    return len > 1 && (*value == '"' || *value == '\'') && value[len - 1] == *value;
}

static int take_line(void *user, const char *section, const char *name, const char *value)
{
    struct config_file *file = user;
    char origin[256], shown[320];
    (void)section;
    snprintf(origin, sizeof(origin), "%.200s:%u", file->path, file->line);
    snprintf(shown, sizeof(shown), "%s: %.40s", origin, name);

    int which = find_setting(slice_of(name));
    if (which < 0)
        file->err = unknown(slice_of(name), shown, "", file->reading->why);
    else if (is_quoted(value))
        file->err =
            explain(file->reading->why, ERR_INVALID,
                    "%s: quotes would be part of the value; write it without them", shown);
    else
        file->err = set_from_line(file->reading, (enum config_setting)which, value, origin);
    return !file->err;
}

static enum err read_file(struct config_reading *reading)
{
    struct config_file file = { .path = reading->config.file, .reading = reading };
    if (!file.path)
        return OK;
    file.stream = fopen(file.path, "re");
    if (!file.stream)
        return explain(reading->why, ERR_INVALID, "%s: %s", file.path, strerror(errno));
    int bad_line = ini_parse_stream(read_line, &file, take_line, &file);
    if (!file.err && ferror(file.stream))
        file.err = explain(reading->why, ERR_INVALID, "%s: cannot be read", file.path);
    else if (!file.err && bad_line)
        file.err = explain(reading->why, ERR_INVALID, "%s:%d: write name = value",
                           file.path, bad_line);
    fclose(file.stream);
    return file.err;
}

/* ---- the environment ---- */

static const char variable_prefix[] = "RUNCAST_";
static const char file_suffix[] = "-file";

/* Reads RUNCAST_LOG_LEVEL as log-level; returns false if it has another prefix, or is
 * empty. */
static bool read_variable_name(const char *entry, char name[CONFIG_NAME_MAX],
                               const char **value)
{
    const char *equals = strchr(entry, '=');
    size_t prefix = sizeof(variable_prefix) - 1;
    if (!equals || !equals[1] || strncmp(entry, variable_prefix, prefix) != 0)
        return false;
    size_t len = (size_t)(equals - entry) - prefix;
    len = len < CONFIG_NAME_MAX ? len : CONFIG_NAME_MAX - 1;
    for (size_t i = 0; i < len; i++) {
        char c = entry[prefix + i];
        name[i] = c == '_' ? '-' : (char)tolower((unsigned char)c);
    }
    name[len] = '\0';
    *value = equals + 1;
    return true;
}

static void warn_unknown(struct slice variable, const char *name)
{
    const char *meant = closest(slice_of(name));
    log_warn("unknown environment variable", "name", log_slice(variable),
             meant ? "similar_setting" : NULL, meant, NULL);
}

/* Returns the setting whose secret the file holds, or -1. */
static int find_secret_of_file(struct slice name)
{
    size_t suffix = sizeof(file_suffix) - 1;
    if (name.len <= suffix || !slice_is(slice_from(name, name.len - suffix), file_suffix))
        return -1;
    name.len -= suffix;
    int which = find_setting(name);
    return which >= 0 && config_may_be_secret((enum config_setting)which) ? which : -1;
}

static enum err set_from_variable(struct config_reading *reading, int which,
                                  const char *value, const char *variable)
{
    if (slice_starts(slice_of(reading->config.origins[which]), variable_prefix))
        return explain(reading->why, ERR_INVALID, "%s and %s are both set; keep one",
                       reading->config.origins[which], variable);
    return config_set(&reading->config, (enum config_setting)which, value, variable,
                      reading->why);
}

static enum err set_from_secret_file(struct config_reading *reading, int which,
                                     const char *path, const char *variable)
{
    char *secret;
    enum err err = secret_file_read(path, SECRET_FILE_MOUNTED, &secret, reading->why);
    if (err)
        return err;
    err = set_from_variable(reading, which, secret, variable);
    secret_forget(secret);
    return err;
}

static enum err read_variable(struct config_reading *reading, const char *entry)
{
    char name[CONFIG_NAME_MAX], variable[64];
    const char *value;
    if (!read_variable_name(entry, name, &value))
        return OK;
    struct slice text = { entry, (size_t)(value - 1 - entry) };
    snprintf(variable, sizeof(variable), "%.*s", SLICE_ARG(text));

    int which = find_setting(slice_of(name)), secret = find_secret_of_file(slice_of(name));
    if (which >= 0)
        return set_from_variable(reading, which, value, variable);
    if (secret >= 0)
        return set_from_secret_file(reading, secret, value, variable);
    if (!bootstrap_reads(text) && strcmp(name, "config") != 0)
        warn_unknown(text, name);
    return OK;
}

static enum err read_environment(struct config_reading *reading, char **environment)
{
    enum err err = OK;
    for (char **entry = environment; !err && *entry; entry++)
        err = read_variable(reading, *entry);
    return err;
}

/* Uses RUNCAST_CONFIG, unless --config was given. */
static void find_file(struct config_reading *reading, char **environment)
{
    char name[CONFIG_NAME_MAX];
    const char *value;
    for (char **entry = environment; !reading->config.file && *entry; entry++) {
        if (read_variable_name(*entry, name, &value) && strcmp(name, "config") == 0)
            reading->config.file = mem_text(slice_of(value));
    }
}

/* ---- all together ---- */

static enum err read_all(struct config_reading *reading, int argc, char **argv,
                         char **environment)
{
    enum err err = OK;
    for (int i = 0; !err && i < SETTING_COUNT; i++)
        err = config_set(&reading->config, (enum config_setting)i, config_settings[i].def,
                         "default", reading->why);
    if (!err)
        err = read_arguments(reading, argc, argv);
    if (err || reading->config.action == ACTION_HELP ||
        reading->config.action == ACTION_VERSION)
        return err;

    find_file(reading, environment);
    err = read_file(reading);
    if (!err)
        err = read_environment(reading, environment);
    if (!err)
        err = config_read_credentials(&reading->config, environment, reading->why);
    if (!err)
        err = apply_flags(reading);
    if (!err)
        err = config_check_listeners(&reading->config, reading->why);
    if (!err)
        err = config_check_tls(&reading->config, reading->why);
    return err ? err : config_check_texts(&reading->config, reading->why);
}

enum err config_read(struct config *config, const struct subcommand *commands, int argc,
                     char **argv, char **environment, struct failure *why)
{
    struct config_reading reading = {
        .why = why, .config = { .commands = commands, .argc = argc, .argv = argv }
    };
    enum err err = read_all(&reading, argc, argv, environment);
    for (int i = 0; i < SETTING_COUNT; i++)
        buf_finish(&reading.lists[i]);
    if (err)
        config_finish(&reading.config);
    else
        *config = reading.config;
    return err;
}

void config_finish(struct config *config)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        char **text = (char **)((char *)config + config_settings[i].offset);
        if (config_settings[i].type == SETTING_IS_TEXT ||
            config_settings[i].type == SETTING_IS_LIST ||
            config_settings[i].type == SETTING_IS_SECRET)
            secret_forget(*text);
        free(config->origins[i]);
    }
    free(config->file);
    *config = (struct config){ 0 };
}

/* ---- showing ---- */

void config_print(const struct config *config, struct buf *out)
{
    for (int i = 0; i < SETTING_COUNT; i++) {
        struct buf value = { 0 };
        config_print_value(config, (enum config_setting)i, &value);
        buf_print(out, "%-23s = %-20.*s ; %s\n", config_settings[i].name,
                  SLICE_ARG(buf_slice(&value)), config->origins[i]);
        buf_finish(&value);
    }
}
