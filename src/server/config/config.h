/* config.h - settings: one table row each.
 *
 * config.def is the table. Precedence: flags > RUNCAST_* environment > --config FILE (name
 * = value lines) > defaults. Each name has three forms: --env-concurrency,
 * RUNCAST_ENV_CONCURRENCY, env-concurrency. A list is given by repeating its flag or its
 * line of the file, or with spaces; it replaces the list from another source. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/usage.h"
#include "core/model/price.h"
#include "server/config/subcommand.h"

/* Actions that replace the command, such as --help. */
enum config_action {
    ACTION_NONE,
    ACTION_CHECK_CONFIG,
    ACTION_PRINT_CONFIG,
    ACTION_VERSION,
    ACTION_HELP,
};

enum config_setting {
#define CONFIG_TEXT(name, field, def, help) SETTING_##field,
#define CONFIG_CHOICE(name, field, def, words, help) SETTING_##field,
#define CONFIG_LIST(name, field, def, help) SETTING_##field,
#define CONFIG_SECRET(name, field, help) SETTING_##field,
#define CONFIG_NUMBER(name, field, def, min, max, help) SETTING_##field,
#define CONFIG_BYTES(name, field, def, min, max, help) SETTING_##field,
#define CONFIG_DURATION(name, field, def, min_ms, help) SETTING_##field,
#define CONFIG_FLAG(name, field, help) SETTING_##field,
#include "server/config/config.def"
#undef CONFIG_TEXT
#undef CONFIG_CHOICE
#undef CONFIG_LIST
#undef CONFIG_SECRET
#undef CONFIG_NUMBER
#undef CONFIG_BYTES
#undef CONFIG_DURATION
#undef CONFIG_FLAG
    SETTING_COUNT
};

/* Texts and secrets are never NULL. Durations are in milliseconds; their help says what 0
 * means. An origin is "default", "--data", "RUNCAST_DATA" or "runcast.conf:3". */
struct config {
    enum config_action action;
    /* The row that the words select; for an action, the first row of that command. Never
     * NULL. */
    const struct subcommand *command;
    const struct subcommand *commands; /* the table passed to config_read */
    /* The command's words and options, as given (borrowed from the arguments) and as parsed
     * by its usage. */
    const char *words[USAGE_WORDS_MAX];
    size_t word_count;
    struct said said;
    /* Borrowed; a reload reads them again, and a supervise role is started with them. */
    int argc;
    char **argv;
    char *file; /* --config; NULL: none */
    char *origins[SETTING_COUNT];
#define CONFIG_TEXT(name, field, def, help) char *field;
#define CONFIG_CHOICE(name, field, def, words, help) char *field;
#define CONFIG_LIST(name, field, def, help) char *field; /* words, separated by spaces */
#define CONFIG_SECRET(name, field, help) char *field;
#define CONFIG_NUMBER(name, field, def, min, max, help) int64_t field;
#define CONFIG_BYTES(name, field, def, min, max, help) int64_t field;
#define CONFIG_DURATION(name, field, def, min_ms, help) int64_t field;
#define CONFIG_FLAG(name, field, help) bool field;
#include "server/config/config.def"
#undef CONFIG_TEXT
#undef CONFIG_CHOICE
#undef CONFIG_LIST
#undef CONFIG_SECRET
#undef CONFIG_NUMBER
#undef CONFIG_BYTES
#undef CONFIG_DURATION
#undef CONFIG_FLAG
};

/* ERR_INVALID with a sentence that names the setting, its origin (flag, variable, file and
 * line), and a valid value. ERR_USAGE with a sentence about the words of a command. Warns
 * about unknown RUNCAST_* variables; empty ones count as not set. After --help or
 * --version, the rest is ignored. Borrows the table of commands. */
enum err config_read(struct config *config, const struct subcommand *commands, int argc,
                     char **argv, char **environment, struct failure *why);

/* Returns true if the process becomes a gateway. */
bool config_serves(const struct config *config);

/* Copies reloadable settings from fresh, a newly read config: limits that are read when
 * needed, origins, the log. fresh gets the old values; keep it until nothing uses them.
 * ERR_INVALID: another setting has changed, and nothing was copied. */
enum err config_take(struct config *config, struct config *fresh, struct failure *why);

/* Wipes the secrets and frees everything. */
void config_finish(struct config *config);

/* Appends name = value lines with their origins; secrets as ***. */
void config_print(const struct config *config, struct buf *out);

/* Returns the prices; machines that the setting does not name have their default price. */
struct prices config_prices(const struct config *config);

/* Returns an enum request_log_mode. */
int config_log_requests(const struct config *config);

enum log_level config_log_level(const struct config *config);
enum log_format config_log_format(const struct config *config);
