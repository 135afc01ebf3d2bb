/* config.h - settings: one table row each.
 *
 * config.def is the table. Precedence: flags > RUNCAST_* environment > --config FILE
 * (name = value lines) > defaults. Names are those of the flags without dashes:
 * --env-concurrency, RUNCAST_ENV_CONCURRENCY, env-concurrency. A list is given by repeating
 * its flag, or its line of the file, or with spaces; it replaces the one from elsewhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "core/model/price.h"

enum config_command {
    COMMAND_SERVE,
    COMMAND_SUPERVISE,
    COMMAND_KEYS,
    COMMAND_ACCOUNTS, /* words */
    COMMAND_REMOTE,   /* words, of a command that asks a gateway by its API */
    COMMAND_VAULT,    /* not whole without its second word */
    COMMAND_VAULT_ROTATE,
    COMMAND_RESTORED,
    COMMAND_HEALTH,
    COMMAND_DATA, /* words, of a command on the data directory as a whole */
    COMMAND_HELP,
    COMMAND_VERSION,
    COMMAND_CHECK_CONFIG,
    COMMAND_PRINT_CONFIG
};

enum { CONFIG_WORDS_MAX = 16 };

enum config_setting {
#define CONFIG_TEXT(name, field, def, help) SETTING_##field,
#define CONFIG_LIST(name, field, def, help) SETTING_##field,
#define CONFIG_SECRET(name, field, help) SETTING_##field,
#define CONFIG_NUMBER(name, field, def, min, max, help) SETTING_##field,
#define CONFIG_BYTES(name, field, def, min, max, help) SETTING_##field,
#define CONFIG_DURATION(name, field, def, min_ms, help) SETTING_##field,
#define CONFIG_FLAG(name, field, help) SETTING_##field,
#include "server/config/config.def"
#undef CONFIG_TEXT
#undef CONFIG_LIST
#undef CONFIG_SECRET
#undef CONFIG_NUMBER
#undef CONFIG_BYTES
#undef CONFIG_DURATION
#undef CONFIG_FLAG
    SETTING_COUNT
};

/* Texts and secrets are never NULL. Durations are milliseconds; 0: see the help. An origin
 * is "default", "--data", "RUNCAST_DATA" or "runcast.conf:3". */
struct config {
    enum config_command command;
    /* Of a command on accounts or the data directory, or one of remote_command.h: its words and options, borrowed
     * from the arguments, with "--name" and its value as words of their own. */
    const char *words[CONFIG_WORDS_MAX];
    size_t word_count;
    const char *topic; /* the command that help is asked for; NULL: all */
    char *file;        /* --config; NULL: none */
    char *origins[SETTING_COUNT];
#define CONFIG_TEXT(name, field, def, help) char *field;
#define CONFIG_LIST(name, field, def, help) char *field; /* words with a space between */
#define CONFIG_SECRET(name, field, help) char *field;
#define CONFIG_NUMBER(name, field, def, min, max, help) int64_t field;
#define CONFIG_BYTES(name, field, def, min, max, help) int64_t field;
#define CONFIG_DURATION(name, field, def, min_ms, help) int64_t field;
#define CONFIG_FLAG(name, field, help) bool field;
#include "server/config/config.def"
#undef CONFIG_TEXT
#undef CONFIG_LIST
#undef CONFIG_SECRET
#undef CONFIG_NUMBER
#undef CONFIG_BYTES
#undef CONFIG_DURATION
#undef CONFIG_FLAG
};

/* ERR_INVALID with a sentence that names the setting, where it came from (flag, variable,
 * file and line), and what would be right. Unknown RUNCAST_* variables are warned about;
 * empty ones count as not set. After --help or --version the rest is not looked at. */
enum err config_read(struct config *config, int argc, char **argv, char **environment,
                     struct failure *why);

/* Takes over from fresh, which config_read has read again, what may change while the gateway runs:
 * limits that are looked at when they are needed, origins, the log. fresh gets what was there
 * before, which may be in use until the caller has told everybody. ERR_INVALID: something else has
 * changed, and nothing was taken. */
enum err config_take(struct config *config, struct config *fresh, struct failure *why);

/* Wipes the secrets. */
void config_finish(struct config *config);

/* name = value lines with where each came from; secrets as ***. */
void config_print(const struct config *config, struct buf *out);

/* Machines that are not named cost what they do by default. */
struct prices config_prices(const struct config *config);

/* Of enum request_log_mode. */
int config_log_requests(const struct config *config);

enum log_level config_log_level(const struct config *config);
enum log_format config_log_format(const struct config *config);
