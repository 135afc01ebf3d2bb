/* config_help.c - what runcast says of itself: everything, or of one command. */
#include "server/config/config_help.h"

#include <string.h>

#include "server/cli/remote_command.h"
#include "server/config/config_value.h"
#include "server/config/config_words.h"

const struct help_command config_commands[] = {
    { "serve", "  runcast [serve] [options]    starts the gateway\n", "" },
    { "supervise",
      "  runcast supervise [options]  executes runs of deployed versions for a gateway\n",
      "With --execute a gateway starts it by itself. On another machine it needs --url and "
      "a\n"
      "token (runcast worker-token create) in RUNCAST_WORKER_TOKEN. As root it executes "
      "tasks\n"
      "as --runner-user; without root it needs --execute-unsafe.\n" },
    { "deploy",
      "  runcast deploy DIR [--env ENV] [--branch NAME] [--skip-promotion] [--external-id "
      "ID]\n"
      "                               deploys a bundle, and waits until it is built\n",
      "DIR is the folder that npx trigger.dev deploy --dry-run leaves "
      "(.trigger/tmp/build-…).\n"
      "Variables that build extensions sync or need to build are not in it. Which gateway "
      "and\n"
      "which environment TRIGGER_API_URL (or --url) and TRIGGER_SECRET_KEY say; --env is\n"
      "prod, staging or preview, and refused when the key is that of another one.\n" },
    { "versions",
      "  runcast versions [--env ENV] [--branch NAME]\n"
      "                               lists what was deployed; * is the current one\n",
      "The newest hundred, of the environment whose key is in TRIGGER_SECRET_KEY, at the\n"
      "gateway of TRIGGER_API_URL (or --url).\n" },
    { "promote",
      "  runcast promote VERSION [--env ENV] [--branch NAME]\n"
      "                               makes a version the current one that is newer\n",
      "Runs that are queued, and those that are triggered from then on, execute it; those\n"
      "that have begun finish on theirs. The gateway is that of TRIGGER_API_URL (or "
      "--url),\n"
      "the environment that of TRIGGER_SECRET_KEY.\n" },
    { "rollback",
      "  runcast rollback VERSION [--env ENV] [--branch NAME]\n"
      "                               the same, of one that is older\n",
      "As promote, with the schedules and limits of queues of the version that is gone "
      "back\n"
      "to. Of older ones the gateway keeps the newest ten (keep-versions).\n" },
    { "keys",
      "  runcast keys [--project REF] [options]\n"
      "                               prints the secret keys\n"
      "  runcast keys --new-personal-token [--user EMAIL]\n"
      "                               and makes and prints a personal access token\n"
      "  runcast keys rotate ENV [--project REF] [--grace 24h]\n",
      "ENV is dev, staging, prod or preview. The key that is replaced, and the public "
      "tokens\n"
      "that it signed, work for --grace more; with --grace 0 they end at once. Keys that "
      "were\n"
      "replaced before end by then, too. --project is needed where there are several.\n" },
    { "vault",
      "  runcast vault rotate         has the running gateway seal all secrets anew\n",
      "A drawn key is replaced by another one that is drawn, and kept as\n"
      "encryption.key.<id> for older backups. A key from RUNCAST_ENCRYPTION_KEY is "
      "replaced by\n"
      "RUNCAST_NEXT_ENCRYPTION_KEY, which the next start needs.\n" },
    { "backup",
      "  runcast backup DIR           copies the data directory while its gateway serves\n",
      "DIR is made, and appears when it is whole. In it are the database with all that "
      "was\n"
      "acknowledged before the command was started, its encryption key unless that came "
      "from\n"
      "RUNCAST_ENCRYPTION_KEY, and the archives of deployed versions; and a manifest with "
      "the\n"
      "hash of each file. The copy has an epoch of its own. Best on another disk.\n" },
    { "restore",
      "  runcast restore DIR          puts a backup into an empty data directory\n",
      "On this machine or another one, for a gateway that is not started yet. All hashes "
      "are\n"
      "compared first, and the encryption key is tried: the one in the backup, or that of\n"
      "RUNCAST_ENCRYPTION_KEY. The data get a new epoch: clients with a position begin "
      "anew\n"
      "with a snapshot. As root it gives the files to the owner of the data directory.\n" },
    { "db",
      "  runcast db check             looks for damage, and says what to do\n"
      "  runcast db stats [--json]    says how large the data are, and what of\n",
      "check reads all of the database, opens what is sealed in it, and compares the files "
      "of\n"
      "deployments with what it says of them: a line for each finding, and exit status 1.\n"
      "stats counts runs by environment and status, tables by rows and size, and what\n"
      "retention (retain) removes. Neither changes anything, nor needs the gateway to "
      "stop.\n"
      "While they read, the log of a database that is written to does not start again.\n" },
    { "restored",
      "  runcast restored             says that a copy made by hand was put back\n",
      "The database gets a new epoch: clients with a position of its other life (from,\n"
      "Last-Event-ID, an offset) begin anew with a snapshot, instead of going on in a "
      "history\n"
      "that is no longer theirs. Before the gateway is started on them.\n" },
    { "copy", "  runcast copy [--to URL]      copies the data into an empty PostgreSQL\n",
      "URL is what gateways are then given as database; the tables go into "
      "database-schema.\n"
      "One with a password is not said here, but as RUNCAST_DATABASE, or in the file of\n"
      "RUNCAST_DATABASE_FILE. All that was acknowledged is copied in one transaction, "
      "with\n"
      "its epoch and versions, so that clients go on from their positions; and the "
      "archives\n"
      "of deployed versions. The key has to open it, and stays where it is. Whoever goes\n"
      "back to SQLite says runcast restored first, for positions of the database mean "
      "nothing\n"
      "there.\n" },
    { "health",
      "  runcast health               says whether the gateway is ready; else 1\n",
      "It asks at admin-listen, which is metrics.sock in the data directory, and waits "
      "five\n"
      "seconds: for containers and supervisors that have no HTTP client at hand.\n" },
    { "org",
      "  runcast org create NAME [--slug SLUG] | list | rename SLUG --name NAME\n"
      "                       | delete SLUG --confirm SLUG\n",
      "An organization has projects and users. SLUG is its name for commands, lower-case\n"
      "letters, digits and dashes; it is made of NAME where it is not given. delete takes "
      "its\n"
      "users along and revokes their tokens; it refuses while the organization has "
      "projects,\n"
      "and leaves the last one.\n" },
    { "project",
      "  runcast project create NAME [--org SLUG] [--ref REF] | list\n"
      "                       | rename REF --name NAME | delete REF --confirm REF\n",
      "A new project prints the keys of its four environments. --org is needed where "
      "there\n"
      "are several. REF is proj_ and 8 to 40 lower-case letters and digits. delete ends "
      "its "
      "keys,\n"
      "tokens and connections at once and cancels its runs; the running gateway then "
      "removes\n"
      "all that it has stored. Nothing brings it back but a backup.\n" },
    { "user",
      "  runcast user create NAME --email EMAIL [--org SLUG] | list\n"
      "                       | rename EMAIL --name NAME [--org SLUG]\n"
      "                       | delete EMAIL [--org SLUG] [--confirm EMAIL]\n",
      "Who is in several organizations is made in each, with the same address. A user gets "
      "in\n"
      "with a token: runcast help token. delete takes a user out of its organization and\n"
      "revokes the tokens that were made for it, which --confirm agrees to.\n" },
    { "token", "  runcast token create --user EMAIL [--name NAME] | list | revoke ID\n",
      "Personal access tokens, shown once. A token sees the projects of its user's\n"
      "organizations. ID is what list shows first.\n" },
    { "dashboard", "  runcast dashboard [--user EMAIL]\n",
      "Prints a link that signs its reader in to the dashboard of the running gateway: "
      "once, "
      "within\n"
      "5 minutes, for 12 hours. On a desktop it is opened, too. Without --user it is the "
      "first "
      "user's.\n" },
    { "worker-token",
      "  runcast worker-token create [--project REF] [--env ENV] [--name NAME]\n"
      "                       | list | revoke ID\n",
      "For workers outside a session of trigger dev, shown once. They serve staging, prod "
      "and\n"
      "the branches of preview, or with --env one of these kinds alone.\n" },
};

enum { COMMAND_COUNT = sizeof(config_commands) / sizeof(config_commands[0]) };

const size_t config_command_count = COMMAND_COUNT;

const struct help_row config_actions[] = {
    { "--config FILE", "settings from a file: name = value lines" },
    { "--check-config", "judges the settings, and ends" },
    { "--print-config", "shows the settings and where each came from" },
    { "--version", "says which version this is" },
    { "--help", "shows this; help COMMAND says more of a command" },
};

enum { ACTION_COUNT = sizeof(config_actions) / sizeof(config_actions[0]) };

const size_t config_action_count = ACTION_COUNT;

const char config_help_of_commands[] =
    "deploy, versions, promote and rollback speak to the gateway at TRIGGER_API_URL,\n"
    "wherever it is. backup, restore, db, restored and copy read and write files "
    "themselves.\n"
    "Of the others all but serve and supervise speak to the gateway that runs on --data; "
    "all\n"
    "but vault rotate and health work without one too.\n";

const char config_help_of_options[] =
    "Every option is also a variable (RUNCAST_LOG_LEVEL=debug) and a line of the\n"
    "file (log-level = debug). Flags win over variables, variables over the file.\n"
    "A secret is no flag; it may lie in a file: RUNCAST_METRICS_TOKEN_FILE=/path.\n";

const char config_help_of_keys[] =
    "The first start on an empty data directory draws keys, or takes them from\n"
    "RUNCAST_PROJECT_REF, RUNCAST_DEV_SECRET_KEY, RUNCAST_STAGING_SECRET_KEY,\n"
    "RUNCAST_PROD_SECRET_KEY, RUNCAST_PREVIEW_SECRET_KEY and\n"
    "RUNCAST_PERSONAL_ACCESS_TOKEN (each may lie in a file, too: …_FILE).\n";

static int find(const char *command)
{
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(command, config_commands[i].name) == 0)
            return i;
    return -1;
}

bool config_help_knows(const char *command)
{
    return find(command) >= 0;
}

const char *config_help_value(const struct setting *setting)
{
    static const char *const values[] = {
        [SETTING_IS_TEXT] = "TEXT",     [SETTING_IS_LIST] = "TEXT",
        [SETTING_IS_NUMBER] = "NUMBER", [SETTING_IS_BYTES] = "SIZE",
        [SETTING_IS_DURATION] = "TIME", [SETTING_IS_FLAG] = "",
    };
    return values[setting->type];
}

static void print_option(const struct setting *setting, struct buf *out)
{
    char option[CONFIG_NAME_MAX];
    if (setting->type == SETTING_IS_SECRET)
        config_variable_of((enum config_setting)(setting - config_settings), option);
    else
        snprintf(option, sizeof(option), "--%s%s%s", setting->name,
                 *config_help_value(setting) ? " " : "", config_help_value(setting));
    buf_print(out, "  %-34s %s", option, setting->help);
    if (*setting->def && setting->type != SETTING_IS_FLAG)
        buf_print(out, " [%s]", setting->def);
    buf_add_char(out, '\n');
}

static void print_all(struct buf *out)
{
    buf_add_text(out,
                 "runcast - manages runs of background tasks and tells every change\n\n");
    for (int i = 0; i < COMMAND_COUNT; i++)
        buf_add_text(out, config_commands[i].usage);
    buf_print(out, "  runcast help COMMAND         says more of one of these\n\n%s\n",
              config_help_of_commands);
    buf_add_text(out, "options [default]\n");
    for (int i = 0; i < SETTING_COUNT; i++)
        print_option(&config_settings[i], out);
    for (int i = 0; i < ACTION_COUNT; i++)
        buf_print(out, "  %-34s %s\n", config_actions[i].name, config_actions[i].help);
    buf_print(out, "\n%s\n%s", config_help_of_options, config_help_of_keys);
}

static bool is_offline(const char *command)
{
    return strcmp(command, "restored") == 0 || strcmp(command, "restore") == 0 ||
           strcmp(command, "copy") == 0;
}

void config_print_help(const char *command, struct buf *out)
{
    int which = command ? find(command) : -1;
    if (which <= 0) { /* the options are those of serve */
        print_all(out);
        return;
    }
    buf_print(out, "%s\n%s\n", config_commands[which].usage, config_commands[which].about);
    if (remote_command_knows(command)) {
        buf_add_text(out, "  --ca-file FILE: certificates that are trusted, too.\n");
        return;
    }
    buf_print(out, "  --data DIR, or RUNCAST_DATA: the data directory. %s\n",
              is_offline(command)                 ? "No gateway runs on it."
              : config_words_are_of_data(command) ? "A gateway may run on it."
              : strcmp(command, "supervise") == 0 ? "That of the gateway on this machine."
              : strcmp(command, "vault") == 0 || strcmp(command, "health") == 0
                  ? "A gateway runs on it."
                  : "It speaks to the gateway that runs\n"
                    "  on it, if there is one.");
}
