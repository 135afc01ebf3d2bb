/* remote_command.c - the table of the commands, and what each has to be told. */
#include "server/cli/remote_command.h"

#include <string.h>

#include "server/cli/remote_session.h"

static const struct {
    const char *noun, *argument, *options;
    bool (*run)(struct remote_session *session);
} commands[] = {
    { "deploy", "DIR", " --env --branch --skip-promotion --external-id ", remote_deploy },
    { "versions", NULL, " --env --branch ", remote_versions },
    { "promote", "VERSION", " --env --branch ", remote_promote },
    { "rollback", "VERSION", " --env --branch ", remote_rollback },
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static size_t find(const char *noun)
{
    size_t which = 0;
    while (which < COMMANDS && strcmp(noun, commands[which].noun) != 0)
        which++;
    return which;
}

bool remote_command_knows(const char *noun)
{
    return find(noun) < COMMANDS;
}

static enum err check(const struct remote_settings *settings, size_t which,
                      struct remote_session *session, struct failure *why)
{
    enum err refused =
        remote_words_read(settings->words, settings->word_count, commands[which].argument,
                          commands[which].options, &session->words, why);
    if (refused)
        return refused;
    if (!settings->url || !*settings->url)
        return explain(why, ERR_USAGE,
                       "which gateway? Set TRIGGER_API_URL to its address, or say --url");
    if (!settings->key || !*settings->key)
        return explain(
            why, ERR_USAGE,
            "set TRIGGER_SECRET_KEY to the secret key of the environment that is "
            "meant: runcast keys shows them where the gateway's data are");
    return remote_words_check_key(&session->words, settings->key, &session->environment,
                                  why);
}

int remote_command_run(const struct remote_settings *settings, FILE *out, FILE *err)
{
    size_t which = find(settings->words[0]);
    struct remote_session session = { .limits = settings->limits, .out = out, .err = err };
    struct failure why = { 0 };
    enum err refused = check(settings, which, &session, &why);
    struct remote_options options = { .url = settings->url,
                                      .ca_file = settings->ca_file,
                                      .key = settings->key,
                                      .branch = session.words.branch };
    if (!refused)
        refused = remote_open(&options, &session.remote, &why);
    if (refused) {
        fprintf(err, "runcast: %s\n", why.text);
        return 2;
    }
    bool done = commands[which].run(&session);
    remote_close(session.remote);
    return done ? 0 : 1;
}
