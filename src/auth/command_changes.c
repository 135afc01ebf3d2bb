/* command_changes.c - other names for organizations, projects and users; and users that leave
 * their organization. */
#include "auth/command_words.h"

static enum err read_name(struct account_command *command, const char *argument,
                          const char *options)
{
    enum err refused = command_check_words(command, argument, options);
    if (refused)
        return refused;
    command->name = command_option(command, "--name");
    if (!command->name || !command_is_name(command->name))
        return command_refuse(command, "say --name NAME: 1 to 100 bytes and no control "
                                       "characters");
    return OK;
}

enum err command_rename_organization(struct account_command *command, struct draft *draft)
{
    enum err refused = read_name(command, "SLUG", " --name ");
    if (refused)
        return refused;
    struct slice slug = slice_of(command_argument(command));
    const struct organization *found = accounts_organization(command->accounts, slug);
    if (!found)
        return command_refuse(command, "there is no such organization; runcast org list "
                                       "shows them");
    draft_rename_organization(draft, found, slice_of(command->name));
    fprintf(command->out, "organization %s is %s now\n", found->slug, command->name);
    return OK;
}

enum err command_rename_project(struct account_command *command, struct draft *draft)
{
    enum err refused = read_name(command, "REF", " --name ");
    if (refused)
        return refused;
    struct slice ref = slice_of(command_argument(command));
    const struct project *found = accounts_project(command->accounts, ref);
    if (!found)
        return command_refuse(command, "there is no such project; runcast project list "
                                       "shows them");
    draft_rename_project(draft, found, slice_of(command->name));
    fprintf(command->out, "project %s is %s now\n", found->ref, command->name);
    return OK;
}

/* The one user of that address, or that of --org. */
static enum err find_user(struct account_command *command, const struct user **found)
{
    const char *email = command_argument(command), *org = command_option(command, "--org");
    const struct list *all = accounts_users(command->accounts);
    unsigned count = 0;
    list_each (link, all) {
        const struct user *user = container_of(link, const struct user, link);
        if (strcmp(user->email, email) || (org && strcmp(user->organization->slug, org)))
            continue;
        *found = user;
        count++;
    }
    if (count == 1)
        return OK;
    return command_refuse(command, count ? "who is in several organizations has a user in "
                                           "each: say --org SLUG"
                                         : "there is no such user; runcast user list shows "
                                           "them");
}

enum err command_rename_user(struct account_command *command, struct draft *draft)
{
    const struct user *user = NULL;
    enum err refused = read_name(command, "EMAIL", " --name --org ");
    if (!refused)
        refused = find_user(command, &user);
    if (refused)
        return refused;
    draft_rename_user(draft, user, slice_of(command->name));
    fprintf(command->out, "user %s in %s is %s now\n", user->email,
            user->organization->slug, command->name);
    return OK;
}

/* Tokens hang on one user, also of somebody who is in several organizations: they end with it. */
enum err command_delete_user(struct account_command *command, struct draft *draft)
{
    const struct user *user = NULL;
    unsigned tokens = 0;
    enum err refused = command_check_words(command, "EMAIL", " --org --confirm ");
    if (!refused)
        refused = find_user(command, &user);
    if (refused)
        return refused;
    const char *confirmed = command_option(command, "--confirm");
    list_each (link, &user->secrets)
        tokens++;
    if (tokens >= DRAFT_MAX)
        return explain(&command->write.why, ERR_INVALID,
                       "%s has %u tokens: revoke some first, so that less than %d are left",
                       user->email, tokens, DRAFT_MAX);
    if (tokens && (!confirmed || strcmp(confirmed, user->email)))
        return explain(&command->write.why, ERR_INVALID,
                       "%u token%s of %s would end: say --confirm %s", tokens,
                       tokens == 1 ? "" : "s", user->email, user->email);
    list_each (link, &user->secrets)
        draft_end(draft, container_of(link, const struct secret, of_owner));
    draft_delete_user(draft, user);
    fprintf(command->out, "removed %s from %s; tokens revoked: %u\n", user->email,
            user->organization->slug, tokens);
    return OK;
}
