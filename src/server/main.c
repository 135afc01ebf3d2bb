/* main.c - reads the arguments, carries them out and returns an exit status.
 *
 *   0: served and drained, or the command succeeded   1: failed
 *   2: the settings or the words of the command are invalid */
#include <stdio.h>
#include <sys/prctl.h>
#include <uv.h>

#include "base/bytes.h"
#include "base/last_words.h"
#include "base/log.h"
#include "base/terminal.h"
#include "base/vault/crypto_memory.h"
#include "os/process/launch.h"
#include "server/config/config.h"
#include "server/config/config_help.h"
#include "server/gateway/gateway.h"
#include "server/role/execute.h"
#include "server/subcommands.h"
#include "supervisor/versions/unpacker.h"

extern char **environ;

static int print(struct buf *text)
{
    fwrite(text->ptr, 1, text->len, stdout);
    buf_finish(text);
    return 0;
}

/* Checks the settings together; config_read has checked each. */
static int check(const struct config *config)
{
    struct failure why = { 0 };
    if (gateway_check(config, &why) || (config->execute && execute_check(config, &why))) {
        fprintf(stderr, "runcast: %s\n", why.text);
        return 2;
    }
    printf("runcast: the settings are fine\n");
    return 0;
}

static int run_command(struct config *config)
{
    struct failure why = { 0 };
    if (config->command->stay)
        return config->command->stay(config);
    enum err refused = config->command->run(config, stdout, &why);
    bytes_forget_shared();
    uv_library_shutdown();
    if (refused && why.text[0]) /* if not, it was printed */
        terminal_print_failure(why.text);
    return refused == ERR_USAGE ? 2 : refused ? 1 : 0;
}

static int run(struct config *config)
{
    struct buf text = { 0 };
    switch (config->action) {
    case ACTION_HELP: config_print_help(config->commands, config->command, &text); break;
    case ACTION_PRINT_CONFIG: config_print(config, &text); break;
    case ACTION_VERSION: buf_print(&text, "runcast %s\n", RUNCAST_VERSION); break;
    case ACTION_CHECK_CONFIG: return check(config);
    case ACTION_NONE: return run_command(config);
    }
    return print(&text);
}

int main(int argc, char **argv)
{
    struct config config;
    struct failure why = { 0 };

    last_words_init();
    crypto_memory_init();
    if (launch_is_asked_for(argc, argv))
        return launch_run();
    if (unpacker_is_asked_for(argc, argv))
        return unpacker_run(argv[2]);
    if (config_read(&config, subcommands, argc, argv, environ, &why)) {
        terminal_print_failure(why.text);
        return 2;
    }
    log_configure(config_log_level(&config), config_log_format(&config));
    int status = run(&config);
    config_finish(&config);
    return status;
}
