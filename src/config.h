/* config.h - settings: one table row each.
 *
 * config.def is the table: CONFIG(name, type, field, default, help). Precedence: flags >
 * RUNCAST_* environment > --config FILE (name = value lines) > defaults. Names are those of
 * the flags without dashes: --env-concurrency, RUNCAST_ENV_CONCURRENCY, env-concurrency. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

enum config_command { COMMAND_SERVE, COMMAND_KEYS, COMMAND_HELP, COMMAND_VERSION,
                      COMMAND_CHECK_CONFIG, COMMAND_PRINT_CONFIG };

struct config {
    enum config_command command;
    const char *file; /* --config */
#define CONFIG_TEXT(name, field, def, help) char *field;
#define CONFIG_SECRET(name, field, help) char *field;
#define CONFIG_NUMBER(name, field, def, min, max, help) int64_t field;
#define CONFIG_BYTES(name, field, def, min, max, help) int64_t field;
#define CONFIG_DURATION(name, field, def, help) int64_t field; /* ms; 0: see help */
#define CONFIG_FLAG(name, field, help) bool field;
#include "config.def"
#undef CONFIG_TEXT
#undef CONFIG_SECRET
#undef CONFIG_NUMBER
#undef CONFIG_BYTES
#undef CONFIG_DURATION
#undef CONFIG_FLAG
};

/* ERR_INVALID with a sentence that names the setting, where it came from (flag, variable,
 * file and line), and what would be right. Unknown RUNCAST_* variables are warned about. */
enum err config_read(struct config *config, int argc, char **argv, char **environment,
                     struct failure *why);
void config_finish(struct config *config);

void config_print_help(struct buf *out);

/* name = value lines with where each came from; secrets as ***. */
void config_print(const struct config *config, struct buf *out);

/* listen split: "127.0.0.1:3030", "[::1]:3030", ":3030", "3030". */
enum err config_listen(const struct config *config, char host[64], int *port,
                       struct failure *why);
bool config_listens_on_loopback(const struct config *config);
