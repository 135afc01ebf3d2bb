/* account_command.c - subcommands on organizations, projects, users and keys.
 *
 * It also executes the commands of command_changes.c and command_tokens.c: each is one
 * write of account_writer.h. */
#include "accounts/command_words.h"

#include <ctype.h>
#include <jansson.h>
#include <openssl/crypto.h>

#include "base/json/json_tree.h"
#include "base/log.h"

enum {
    EMAIL_MAX = 254,
    GRACE_DAYS_MAX = 365,
    DAY_MS = 24 * 60 * 60 * 1000,
};

static bool is_email(const char *text)
{
    const char *at = strchr(text, '@');
    const char *dot = at ? strrchr(at, '.') : NULL;
    size_t len = strlen(text);
    if (!at || at == text || strchr(at + 1, '@') || !dot || dot == at + 1 ||
        strlen(dot) < 3 || len > EMAIL_MAX || strstr(text, "..") || text[0] == '.')
        return false;
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_'+-.@", *c))
            return false;
    for (const char *c = dot + 1; *c; c++)
        if (!isalpha((unsigned char)*c))
            return false;
    return true;
}

static enum err find_organization(struct account_command *command)
{
    const struct list *all = accounts_organizations(command->accounts);
    const char *given = command_option(command, "--org");
    if (given)
        command->organization = accounts_organization(command->accounts, slice_of(given));
    else if (!list_empty(all) && all->next == all->prev)
        command->organization = container_of(all->next, struct organization, link);
    if (command->organization)
        return OK;
    return command_refuse(
        command, given ? "organization not found; runcast org list shows them"
                       : "there are several organizations; choose one with --org SLUG");
}

/* ---- organizations ---- */

enum err command_create_organization(struct account_command *command, struct draft *draft)
{
    char slug[ACCOUNT_NAME_MAX + 1], id[ID_MAX];
    const char *given = command_option(command, "--slug");
    command->name = command->said.argument;
    if (!command_is_name(command->name) || (given && !command_is_name(given)))
        return command_misuse(command, "invalid name: a name has 1 to 100 bytes and no "
                                       "control or invisible characters");
    account_make_slug(slice_of(given ? given : command->name), slug);
    if (accounts_organization(command->accounts, slice_of(slug)))
        return explain(&command->write.why, ERR_INVALID,
                       "the organization %s already exists; choose another --slug", slug);
    draft_organization(draft, slice_of(command->name), slice_of(slug), id);
    fprintf(command->out, "created organization %s%s\n", slug,
            given && strcmp(given, slug) != 0
                ? ": a slug has lower-case letters, digits and dashes between them"
                : "");
    return OK;
}

enum err command_list_organizations(struct account_command *command, struct draft *draft)
{
    (void)draft;
    const struct list *all = accounts_organizations(command->accounts);
    list_each (link, all) {
        const struct organization *one = container_of(link, struct organization, link);
        fprintf(command->out, "%-24s  %s\n", one->slug, one->name);
    }
    return OK;
}

/* ---- projects ---- */

enum err command_create_project(struct account_command *command, struct draft *draft)
{
    uint32_t number = accounts_free_number(command->accounts);
    enum err refused = find_organization(command);
    if (refused)
        return refused;
    const char *ref = command_option(command, "--ref");
    command->name = command->said.argument;
    if (!command_is_name(command->name))
        return command_misuse(command, "invalid name: a name has 1 to 100 bytes and no "
                                       "control or invisible characters");
    if (ref && !bootstrap_ref_is_right(slice_of(ref)))
        return command_misuse(
            command,
            "invalid --ref: a ref is proj_ and 8 to 40 lower-case letters and digits");
    if (ref && accounts_project(command->accounts, slice_of(ref)))
        return command_refuse(command, "a project with this ref already exists");
    if (!number)
        return command_refuse(command, "too many environments");
    if (ref)
        snprintf(command->ref, sizeof(command->ref), "%s", ref);
    else
        bootstrap_generate_ref(command->ref);
    draft_whole_project(draft, command->organization->id, command->ref,
                        slice_of(command->name), number, command->keys);
    fprintf(command->out, "created project %s\n", command->ref);
    for (int i = 0; i < ENVIRONMENT_TYPES; i++)
        fprintf(command->out, "  %-8s %s\n",
                environment_path_slug((enum environment_type)i), command->keys[i]);
    return OK;
}

enum err command_list_projects(struct account_command *command, struct draft *draft)
{
    (void)draft;
    const struct list *all = accounts_projects(command->accounts);
    list_each (link, all) {
        const struct project *one = container_of(link, struct project, link);
        fprintf(command->out, "%-26s  %-24s  %s\n", one->ref, one->organization->slug,
                one->name);
    }
    return OK;
}

/* ---- users ---- */

enum err command_create_user(struct account_command *command, struct draft *draft)
{
    char id[ID_MAX];
    enum err refused = find_organization(command);
    if (refused)
        return refused;
    const char *email = command_option(command, "--email");
    command->name = command->said.argument;
    if (!command_is_name(command->name))
        return command_misuse(command, "invalid name: a name has 1 to 100 bytes and no "
                                       "control or invisible characters");
    if (!is_email(email))
        return explain(&command->write.why, ERR_USAGE,
                       "%.60s: not an email address; give --email one @ and a domain that "
                       "ends in a dot and two or more letters, as in ada@example.com",
                       email);
    const struct user *user = accounts_user(command->accounts, slice_of(email));
    if (user && user_is_in(user, command->organization))
        return command_refuse(command, "a user with this address already exists");
    draft_user(draft, command->organization->id, slice_of(command->name), slice_of(email),
               id);
    fprintf(command->out, "created user %s in %s\n", email, command->organization->slug);
    return OK;
}

enum err command_list_users(struct account_command *command, struct draft *draft)
{
    (void)draft;
    const struct list *all = accounts_users(command->accounts);
    list_each (link, all) {
        const struct user *one = container_of(link, struct user, link);
        fprintf(command->out, "%-32s  %-24s  %s\n", one->email, one->organization->slug,
                one->name);
    }
    return OK;
}

/* ---- keys ---- */

enum err command_list_keys(struct account_command *command, struct draft *draft)
{
    const char *ref = command_option(command, "--project");
    const struct project *project =
        ref ? accounts_project(command->accounts, slice_of(ref)) : NULL;
    (void)draft;
    if (ref && !project)
        return command_refuse(command,
                              "project not found; runcast project list shows them");
    for (struct account *a = NULL; (a = accounts_next(command->accounts, a));)
        if (!a->parent && !a->archived && (!project || a->project == project))
            fprintf(command->out, "%-8s %s  %s\n", environment_path_slug(a->type),
                    a->project->ref, a->secret_key);
    return OK;
}

/* Lists the keys and makes a new token, for operators without that of the first start. */
enum err command_list_keys_and_token(struct account_command *command, struct draft *draft)
{
    const struct list *all = accounts_users(command->accounts);
    const char *email = command_option(command, "--user");
    if (email)
        command->user = accounts_user(command->accounts, slice_of(email));
    else if (!list_empty(all) && all->next == all->prev)
        command->user = container_of(all->next, struct user, link);
    if (!command->user)
        return command_refuse(
            command, email ? "user not found; runcast user list shows them"
                     : list_empty(all)
                         ? "there are no users; runcast user create creates one"
                         : "there are several users; choose one with --user EMAIL");
    command_list_keys(command, draft);
    command_generate_token(command, draft, "keys");
    return OK;
}

static enum err read_grace(struct account_command *command)
{
    const char *text = command_option(command, "--grace");
    command->grace_ms = DAY_MS;
    if (text && strcmp(text, "0") == 0)
        command->grace_ms = 0;
    else if (text && (text_to_duration_ms(slice_of(text), &command->grace_ms) ||
                      command->grace_ms > (int64_t)GRACE_DAYS_MAX * DAY_MS))
        return command_misuse(
            command, "invalid --grace: give a time like 30m, 24h or 7d (max 365d), or 0");
    return OK;
}

enum err command_rotate_key(struct account_command *command, struct draft *draft)
{
    enum environment_type type;
    if (environment_type_from_slug(slice_of(command->said.argument), &type))
        return command_misuse(command,
                              "unknown environment; use dev, staging, prod or preview");
    enum err refused = command_find_project(command);
    if (!refused)
        refused = read_grace(command);
    if (refused)
        return refused;
    command->account = accounts_environment(command->accounts, command->project, type);
    if (!command->account)
        return command_refuse(command, "the project does not have this environment");
    bootstrap_generate_key(type, command->keys[0]);
    draft_rotate(draft, command->account, command->keys[0], command->grace_ms);
    fprintf(command->out, "%s\n", command->keys[0]);
    return OK;
}

/* ---- running a command ---- */

static enum err decide(struct account_write *write, struct accounts *accounts,
                       struct draft *draft)
{
    struct account_command *command = container_of(write, struct account_command, write);
    command->accounts = accounts;
    command->goes_on = false;
    return command->change(command, draft);
}

/* Logs the words of the command as given; a word that is itself a secret becomes "tr_…". */
static void audit(const struct account_command *command, enum err status)
{
    struct buf words = { 0 };
    for (size_t i = 0; i < command->word_count; i++) {
        bool secret = strncmp(command->words[i], "tr_", 3) == 0;
        buf_print(&words, "%s%s", i ? " " : "", secret ? "tr_…" : command->words[i]);
    }
    buf_add_char(&words, '\0');
    log_audit(words.ptr, "by", command->actor, "result",
              status ? command->write.why.text : "ok", NULL);
    buf_finish(&words);
}

static bool only_looks(const struct account_command *command)
{
    return command->word_count > 1 && strcmp(command->words[1], "list") == 0;
}

void account_command_forget(struct account_command *command)
{
    json_decref(command->request);
    command->request = NULL;
}

static void on_written(struct account_write *write, enum err status);

void account_command_begin(struct account_command *command)
{
    command->write.decide = decide;
    command->write.done = on_written;
    account_write_begin(command->writer, &command->write);
}

static void on_written(struct account_write *write, enum err status)
{
    struct account_command *command = container_of(write, struct account_command, write);
    if (!status && command->goes_on) {
        account_command_begin(command);
        return;
    }
    if (command->actor && !only_looks(command))
        audit(command, status);
    OPENSSL_cleanse(command->keys, sizeof(command->keys));
    OPENSSL_cleanse(command->token, sizeof(command->token));
    account_command_forget(command);
    command->done(command, status);
}

enum err account_command_read(struct account_command *command, struct slice line)
{
    size_t i;
    json_t *word, *all = json_tree_read(line, TREE_ONE_OF_EACH | TREE_NO_ZERO, NULL);
    bool right = json_is_array(all) && json_array_size(all) <= USAGE_WORDS_MAX;
    json_array_foreach(all, i, word)
    {
        right = right && json_is_string(word);
        if (right)
            command->words[command->word_count++] = json_string_value(word);
    }
    if (!right) {
        json_decref(all);
        return command_refuse(command, "invalid request");
    }
    command->request = all;
    return OK;
}
