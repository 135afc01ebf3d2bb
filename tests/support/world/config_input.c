/* config_input.c - writes the file of settings, and reads settings as the program does. */
#include "tests/support/world/config_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/subcommands.h"
#include "tests/support/world/unit.h"

char config_input_path[] = "/tmp/runcast-config-XXXXXX";

int config_input_setup(void **state)
{
    (void)state;
    int file = mkstemp(config_input_path);
    assert_true(file >= 0);
    close(file);
    return 0;
}

int config_input_teardown(void **state)
{
    (void)state;
    return unlink(config_input_path);
}

void config_input_write(const char *content)
{
    FILE *file = fopen(config_input_path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

enum err config_input_read(struct config *config, const struct config_input *input,
                           struct failure *why)
{
    char *arguments[CONFIG_INPUT_WORDS + 3] = { (char *)"runcast" };
    char *environment[CONFIG_INPUT_WORDS + 1] = { NULL };
    int count = 1;
    for (int i = 0; input->arguments[i]; i++)
        arguments[count++] = (char *)input->arguments[i];
    for (int i = 0; input->environment[i]; i++)
        environment[i] = (char *)input->environment[i];
    if (input->file) {
        config_input_write(input->file);
        arguments[count++] = (char *)"--config";
        arguments[count++] = config_input_path;
    }
    return config_read(config, subcommands, count, arguments, environment, why);
}

struct config config_input_right(const struct config_input *input)
{
    struct config config = { 0 };
    struct failure why = { 0 };
    if (config_input_read(&config, input, &why))
        fail_msg("%s", why.text);
    return config;
}

struct failure config_input_wrong(const struct config_input *input)
{
    struct config config = { 0 };
    struct failure why = { 0 };
    enum err err = config_input_read(&config, input, &why);
    if (err != ERR_INVALID && err != ERR_USAGE)
        fail_msg("%s was accepted",
                 input->arguments[0] ? input->arguments[0] : input->file);
    assert_null(config.listen); /* unchanged */
    return why;
}
