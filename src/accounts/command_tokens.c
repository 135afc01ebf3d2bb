/* command_tokens.c - subcommands on personal access tokens and worker tokens. */
#include "accounts/command_words.h"

/* ---- personal access tokens ---- */

void command_generate_token(struct account_command *command, struct draft *draft,
                            const char *name)
{
    bootstrap_generate_token(command->token);
    draft_token(draft, command->user->id, NULL, slice_of(name), command->token, 0);
    fprintf(command->out, "%s\n", command->token);
}

enum err command_create_token(struct account_command *command, struct draft *draft)
{
    const char *email = command_option(command, "--user"),
               *name = command_option(command, "--name");
    command->user = accounts_user(command->accounts, slice_of(email));
    if (!command->user)
        return command_refuse(command, "user not found; runcast user list shows them");
    if (name && !command_is_name(name))
        return command_misuse(command, "invalid --name: a name has 1 to 100 bytes and no "
                                       "control or invisible characters");
    command_generate_token(command, draft, name ? name : "token");
    return OK;
}

/* Prints a link to the dashboard that signs its reader in, once.
 *
 * The token is in the fragment (after "#"), which browsers do not send to servers. */
enum err command_create_link(struct account_command *command, struct draft *draft)
{
    const struct list *all = accounts_users(command->accounts);
    const char *email = command_option(command, "--user");
    if (!command->url)
        return command_refuse(command, "no gateway serves this data; start it first");
    if (!*command->url)
        return command_refuse(
            command,
            "the dashboard is off; start the gateway with --dashboard on, or admin");
    if (strncmp(command->url, "http", 4) != 0)
        return command_refuse(
            command,
            "no browser can reach the dashboard; start the gateway with --public-url, or "
            "with --admin-listen 127.0.0.1:PORT for --dashboard admin");
    if (email)
        command->user = accounts_user(command->accounts, slice_of(email));
    else if (!list_empty(all))
        command->user = container_of(all->next, struct user, link);
    if (!command->user)
        return command_refuse(
            command, email ? "user not found; runcast user list shows them"
                           : "there are no users; runcast user create creates one");
    bootstrap_generate_link(command->token);
    draft_link(draft, command->user->id, command->token);
    fprintf(command->out, "%s/#signin=%s\n", command->url, command->token);
    return OK;
}

enum err command_list_tokens(struct account_command *command, struct draft *draft)
{
    (void)draft;
    const struct list *all = accounts_users(command->accounts);
    list_each (link, all) {
        const struct user *user = container_of(link, struct user, link);
        list_each (at, &user->secrets) {
            const struct secret *secret = container_of(at, struct secret, of_owner);
            char id[SECRET_ID_LEN + 1];
            secret_show_id(secret, id);
            fprintf(command->out, "%s  ", id);
            command_print_time(command->out, secret->created_at);
            fprintf(command->out, "  %-32s  %s\n", user->email, secret->name);
        }
    }
    return OK;
}

static struct secret *find_token(struct accounts *accounts, const char *id)
{
    struct secret *found = NULL;
    const struct list *all = accounts_users(accounts);
    list_each (link, all) {
        const struct user *user = container_of(link, struct user, link);
        found = found ? found : secret_find(&user->secrets, id);
    }
    return found;
}

enum err command_revoke_token(struct account_command *command, struct draft *draft)
{
    const char *id = command->said.argument;
    struct secret *secret = find_token(command->accounts, id);
    if (!secret)
        secret = accounts_secret(command->accounts, slice_of(id), draft->now_ms);
    if (!secret || !secret->user)
        return command_refuse(command, "token not found; runcast token list shows them");
    fprintf(command->out, "revoked %s of %s\n", secret->name, secret->user->email);
    draft_revoke_token(draft, secret);
    return OK;
}

/* ---- worker tokens ---- */

static enum err read_environments(struct account_command *command, unsigned *serves)
{
    enum environment_type type;
    const char *given = command_option(command, "--env");
    *serves = ENVIRONMENTS_DEPLOYED;
    if (!given)
        return OK;
    if (environment_type_from_slug(slice_of(given), &type) || type == ENVIRONMENT_DEV)
        return command_misuse(
            command,
            "unknown --env; use staging, prod or preview, or omit it to serve all three");
    *serves = 1u << type;
    return OK;
}

enum err command_create_worker_token(struct account_command *command, struct draft *draft)
{
    unsigned serves;
    const char *name = command_option(command, "--name");
    enum err refused = command_find_project(command);
    if (!refused)
        refused = read_environments(command, &serves);
    if (refused)
        return refused;
    if (name && !command_is_name(name))
        return command_misuse(command, "invalid --name: a name has 1 to 100 bytes and no "
                                       "control or invisible characters");
    bootstrap_generate_worker_token(command->token);
    draft_worker_token(draft, command->project->id, serves,
                       slice_of(name ? name : "worker"), command->token);
    fprintf(command->out, "%s\n", command->token);
    return OK;
}

static void print_worker_token(const struct secret *secret, FILE *out)
{
    char id[SECRET_ID_LEN + 1];
    const char *comma = "";
    secret_show_id(secret, id);
    fprintf(out, "%s  ", id);
    command_print_time(out, secret->created_at);
    fprintf(out, "  %-26s  ", secret->project->ref);
    for (int type = 0; type < ENVIRONMENT_TYPES; type++) {
        if (!(secret->serves & 1u << type))
            continue;
        fprintf(out, "%s%s", comma, environment_path_slug((enum environment_type)type));
        comma = ",";
    }
    fprintf(out, "  %s\n", secret->name);
}

enum err command_list_worker_tokens(struct account_command *command, struct draft *draft)
{
    (void)draft;
    const struct list *all = accounts_projects(command->accounts);
    list_each (link, all) {
        const struct project *project = container_of(link, struct project, link);
        list_each (at, &project->secrets)
            print_worker_token(container_of(at, struct secret, of_owner), command->out);
    }
    return OK;
}

static struct secret *find_worker_token(struct accounts *accounts, const char *id)
{
    struct secret *found = NULL;
    const struct list *all = accounts_projects(accounts);
    list_each (link, all) {
        const struct project *project = container_of(link, struct project, link);
        found = found ? found : secret_find(&project->secrets, id);
    }
    return found;
}

enum err command_revoke_worker_token(struct account_command *command, struct draft *draft)
{
    const char *id = command->said.argument;
    struct secret *secret = find_worker_token(command->accounts, id);
    if (!secret)
        secret = accounts_secret(command->accounts, slice_of(id), draft->now_ms);
    if (!secret || !secret->project)
        return command_refuse(command,
                              "token not found; runcast worker-token list shows them");
    fprintf(command->out, "revoked %s of %s\n", secret->name, secret->project->ref);
    draft_end(draft, secret);
    return OK;
}
