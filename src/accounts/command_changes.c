/* command_changes.c - subcommands that rename or delete organizations, projects and users.
 *
 * A deletion that also removes other things must be confirmed: --confirm repeats the
 * name. */
#include "accounts/command_words.h"

static enum err read_name(struct account_command *command)
{
    command->name = command_option(command, "--name");
    if (!command_is_name(command->name))
        return command_misuse(command, "invalid --name: a name has 1 to 100 bytes and no "
                                       "control or invisible characters");
    return OK;
}

static enum err find_organization(struct account_command *command,
                                  const struct organization **found)
{
    struct slice slug = slice_of(command->said.argument);
    *found = accounts_organization(command->accounts, slug);
    return *found ? OK
                  : command_refuse(command,
                                   "organization not found; runcast org list shows them");
}

static enum err find_project(struct account_command *command, const struct project **found)
{
    struct slice ref = slice_of(command->said.argument);
    *found = accounts_project(command->accounts, ref);
    return *found ? OK
                  : command_refuse(command,
                                   "project not found; runcast project list shows them");
}

enum err command_rename_organization(struct account_command *command, struct draft *draft)
{
    enum err refused = read_name(command);
    if (refused)
        return refused;
    const struct organization *found;
    refused = find_organization(command, &found);
    if (refused)
        return refused;
    draft_rename_organization(draft, found, slice_of(command->name));
    fprintf(command->out, "organization %s is now %s\n", found->slug, command->name);
    return OK;
}

enum err command_rename_project(struct account_command *command, struct draft *draft)
{
    enum err refused = read_name(command);
    if (refused)
        return refused;
    const struct project *found;
    refused = find_project(command, &found);
    if (refused)
        return refused;
    draft_rename_project(draft, found, slice_of(command->name));
    fprintf(command->out, "project %s is now %s\n", found->ref, command->name);
    return OK;
}

/* Finds the only user of that address, or the one in --org. */
static enum err find_user(struct account_command *command, const struct user **found)
{
    const char *email = command->said.argument, *org = command_option(command, "--org");
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
    return command_refuse(
        command,
        count
            ? "this address is a user of several organizations; choose one with --org SLUG"
            : "user not found; runcast user list shows them");
}

enum err command_rename_user(struct account_command *command, struct draft *draft)
{
    const struct user *user = NULL;
    enum err refused = read_name(command);
    if (!refused)
        refused = find_user(command, &user);
    if (refused)
        return refused;
    draft_rename_user(draft, user, slice_of(command->name));
    fprintf(command->out, "user %s in %s is now %s\n", user->email,
            user->organization->slug, command->name);
    return OK;
}

/* Checks --confirm if it was given; each command decides whether it must be. */
static enum err check_confirmation(struct account_command *command, const char *name)
{
    const char *confirmed = command_option(command, "--confirm");
    if (!confirmed || strcmp(confirmed, name) == 0)
        return OK;
    return explain(&command->write.why, ERR_INVALID,
                   "--confirm names \"%.100s\" instead of %s; nothing was deleted",
                   confirmed, name);
}

/* A token belongs to one user, even if the person has users in several organizations.
 * Tokens of the deleted user are revoked with it: before it, if there are too many. */
enum err command_delete_user(struct account_command *command, struct draft *draft)
{
    const struct user *user = NULL;
    unsigned tokens = 0;
    enum err refused = find_user(command, &user);
    if (refused)
        return refused;
    list_each (link, &user->secrets)
        tokens++;
    if ((refused = check_confirmation(command, user->email)))
        return refused;
    if (tokens && !command_option(command, "--confirm"))
        return explain(&command->write.why, ERR_INVALID,
                       "this revokes %u token%s of %s; confirm with --confirm %s", tokens,
                       tokens == 1 ? "" : "s", user->email, user->email);
    list_each (link, &user->secrets)
        if (draft->count < DRAFT_MAX - 1)
            draft_end(draft, container_of(link, const struct secret, of_owner));
    command->tokens += (unsigned)draft->count;
    command->goes_on = tokens > draft->count;
    if (command->goes_on)
        return OK;
    draft_delete_user(draft, user);
    fprintf(command->out, "removed %s from %s; tokens revoked: %u\n", user->email,
            user->organization->slug, command->tokens);
    return OK;
}

/* ---- projects and organizations ---- */

enum err command_delete_project(struct account_command *command, struct draft *draft)
{
    const struct project *found = NULL;
    enum err refused = find_project(command, &found);
    if (!refused)
        refused = check_confirmation(command, found->ref);
    if (refused)
        return refused;
    if (!command_option(command, "--confirm"))
        return explain(
            &command->write.why, ERR_INVALID,
            "this deletes the project %s (%s), its runs, schedules, variables, branches, "
            "keys and worker tokens for good; confirm with --confirm %s",
            found->ref, found->name, found->ref);
    draft_delete_project(draft, found);
    fprintf(command->out,
            "deleted project %s: its keys and tokens are revoked; the running gateway "
            "removes its data\n",
            found->ref);
    return OK;
}

/* Rejects with at most three project refs, so that the message stays one line. */
static enum err refuse_with_projects(struct account_command *command,
                                     const struct organization *organization)
{
    char refs[3 * (PROJECT_REF_MAX + 2) + 8] = "";
    unsigned count = 0;
    const struct list *all = accounts_projects(command->accounts);
    list_each (link, all) {
        const struct project *one = container_of(link, struct project, link);
        size_t len = strlen(refs);
        if (one->organization != organization)
            continue;
        if (count++ < 3)
            snprintf(refs + len, sizeof(refs) - len, "%s%s", len ? ", " : "", one->ref);
    }
    if (!count)
        return OK;
    return explain(&command->write.why, ERR_INVALID,
                   "%s still has %u project%s (%s%s); delete them first with runcast "
                   "project delete REF --confirm REF",
                   organization->slug, count, count == 1 ? "" : "s", refs,
                   count > 3 ? ", …" : "");
}

static unsigned count_members(const struct account_command *command,
                              const struct organization *organization, unsigned *tokens)
{
    unsigned users = 0;
    const struct list *all = accounts_users(command->accounts);
    list_each (link, all) {
        const struct user *user = container_of(link, struct user, link);
        if (user->organization != organization)
            continue;
        users++;
        list_each (at, &user->secrets)
            *tokens += 1;
    }
    return users;
}

static void draft_delete_members(struct account_command *command, struct draft *draft,
                                 const struct organization *organization)
{
    const struct list *all = accounts_users(command->accounts);
    list_each (link, all) {
        const struct user *user = container_of(link, struct user, link);
        if (user->organization != organization)
            continue;
        list_each (at, &user->secrets)
            draft_end(draft, container_of(at, const struct secret, of_owner));
        draft_delete_user(draft, user);
    }
}

/* The last organization cannot be deleted.
 *
 * A start without any would make a first one, with new keys. */
enum err command_delete_organization(struct account_command *command, struct draft *draft)
{
    const struct organization *found = NULL;
    const struct list *all = accounts_organizations(command->accounts);
    unsigned tokens = 0;
    enum err refused = find_organization(command, &found);
    if (!refused)
        refused = refuse_with_projects(command, found);
    if (refused)
        return refused;
    if (all->next == all->prev)
        return command_refuse(command, "the last organization cannot be deleted; create "
                                       "another one first with runcast org create");
    unsigned users = count_members(command, found, &tokens);
    if (users + tokens >= DRAFT_MAX)
        return explain(&command->write.why, ERR_INVALID,
                       "%s has too many users (%u) and tokens (%u) to be deleted; remove "
                       "users with runcast user delete EMAIL --org %s until fewer than %d "
                       "users and tokens are left",
                       found->slug, users, tokens, found->slug, DRAFT_MAX);
    if ((refused = check_confirmation(command, found->slug)))
        return refused;
    if (!command_option(command, "--confirm"))
        return explain(
            &command->write.why, ERR_INVALID,
            "this deletes %s (%s) with %u user%s and %u token%s; confirm with --confirm %s",
            found->slug, found->name, users, users == 1 ? "" : "s", tokens,
            tokens == 1 ? "" : "s", found->slug);
    draft_delete_members(command, draft, found);
    draft_delete_organization(draft, found);
    fprintf(command->out, "deleted organization %s; users: %u, tokens revoked: %u\n",
            found->slug, users, tokens);
    return OK;
}
