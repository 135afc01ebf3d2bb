/* remote_command.c - connects to the gateway and lets one subcommand make its calls. */
#include "server/cli/remote_command.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "net/client/url.h"
#include "server/cli/remote_session.h"
#include "server/config/config.h"

/* Reads URL and key from the same variables as the SDK and the CLI. */
static enum err read_settings(const struct config *config, struct remote_options *options,
                              struct failure *why)
{
    *options = (struct remote_options){
        .url = *config->url ? config->url : getenv("TRIGGER_API_URL"),
        .key = getenv("TRIGGER_SECRET_KEY"),
        .ca_file = config->ca_file,
        .branch = said_option(&config->said, "--branch"),
    };
    if (!options->url || !*options->url)
        return explain(why, ERR_USAGE,
                       "TRIGGER_API_URL is missing; set it to the address of the gateway, "
                       "or use --url");
    if (!options->key || !*options->key)
        return explain(why, ERR_USAGE,
                       "TRIGGER_SECRET_KEY is missing; set it to the secret key of the "
                       "environment (runcast keys lists them on the gateway's machine)");
    struct url url;
    const char *origin = *config->url ? config->origins[SETTING_url] : "TRIGGER_API_URL";
    return url_read_named(origin, options->url, &url, why) ? ERR_USAGE : OK;
}

enum err remote_command(const struct config *config, FILE *out, struct failure *why)
{
    struct remote_options options;
    struct remote_session session = {
        .said = &config->said,
        .limits = { .files_max = (uint32_t)config->deploy_files,
                    .unpacked_max = (uint64_t)config->deploy_unpacked,
                    .ratio_max = bundle_limits_default.ratio_max },
        .out = out,
        .err = stderr,
    };
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_DUMPABLE, 0); /* no secrets in core files */
    enum err refused = read_settings(config, &options, why);
    if (!refused)
        refused =
            remote_words_check_key(&config->said, options.key, &session.environment, why);
    if (!refused && remote_open(&options, &session.remote, why))
        refused = ERR_USAGE;
    if (refused)
        return refused;
    bool done = config->command->ask(&session);
    remote_close(session.remote);
    return done ? OK : ERR_INVALID;
}
