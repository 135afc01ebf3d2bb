/* config_input.h - settings for a test: arguments, variables, a file. */
#pragma once

#include "server/config/config.h"

enum { CONFIG_INPUT_WORDS = 16 };

/* The words of one case; NULL at the end of each list. */
struct config_input {
    const char *arguments[CONFIG_INPUT_WORDS];
    const char *environment[CONFIG_INPUT_WORDS];
    const char *file; /* content of the file that --config names; NULL: none */
};

extern char config_input_path[]; /* of the file */
void config_input_write(const char *content);

/* The file exists between these two calls, for a group of tests. */
int config_input_setup(void **state);
int config_input_teardown(void **state);

enum err config_input_read(struct config *config, const struct config_input *input,
                           struct failure *why);

/* Reads valid settings, and settings that fail with ERR_INVALID or ERR_USAGE: the
 * reason. */
struct config config_input_right(const struct config_input *input);
struct failure config_input_wrong(const struct config_input *input);
