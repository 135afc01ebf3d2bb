/* account_command.c - one function a command: it reads its words and drafts; what it made
 * is printed when it is written. */
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
    return command_refuse(command,
                          given ? "there is no such organization; runcast org list shows "
                                  "them"
                                : "there are several organizations: say --org SLUG");
}

/* ---- organizations ---- */

static enum err create_organization(struct account_command *command, struct draft *draft)
{
    char slug[ACCOUNT_NAME_MAX + 1], id[ID_MAX];
    const char *given = command_option(command, "--slug");
    command->name = command_argument(command);
    if (!command_is_name(command->name) || (given && !command_is_name(given)))
        return command_misuse(command,
                              "a name has 1 to 100 bytes and no control characters");
    account_make_slug(slice_of(given ? given : command->name), slug);
    if (accounts_organization(command->accounts, slice_of(slug)))
        return explain(&command->write.why, ERR_INVALID,
                       "there is an organization %s already: say another --slug", slug);
    draft_organization(draft, slice_of(command->name), slice_of(slug), id);
    fprintf(command->out, "made organization %s%s\n", slug,
            given && strcmp(given, slug) != 0
                ? ": a slug has lower-case letters, digits and dashes between them"
                : "");
    return OK;
}

static enum err list_organizations(struct account_command *command, struct draft *draft)
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

static enum err create_project(struct account_command *command, struct draft *draft)
{
    uint32_t number = accounts_free_number(command->accounts);
    enum err refused = find_organization(command);
    if (refused)
        return refused;
    const char *ref = command_option(command, "--ref");
    command->name = command_argument(command);
    if (!command_is_name(command->name))
        return command_misuse(command,
                              "a name has 1 to 100 bytes and no control characters");
    if (ref && !bootstrap_ref_is_right(slice_of(ref)))
        return command_misuse(command,
                              "a ref is proj_ and 8 to 40 lower-case letters and digits");
    if (ref && accounts_project(command->accounts, slice_of(ref)))
        return command_refuse(command, "there is a project of that ref already");
    if (!number)
        return command_refuse(command, "there are too many environments");
    if (ref)
        snprintf(command->ref, sizeof(command->ref), "%s", ref);
    else
        bootstrap_draw_ref(command->ref);
    draft_whole_project(draft, command->organization->id, command->ref,
                        slice_of(command->name), number, command->keys);
    fprintf(command->out, "made project %s\n", command->ref);
    for (int i = 0; i < ENVIRONMENT_TYPES; i++)
        fprintf(command->out, "  %-8s %s\n",
                environment_path_slug((enum environment_type)i), command->keys[i]);
    return OK;
}

static enum err list_projects(struct account_command *command, struct draft *draft)
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

static enum err create_user(struct account_command *command, struct draft *draft)
{
    char id[ID_MAX];
    enum err refused = find_organization(command);
    if (refused)
        return refused;
    const char *email = command_option(command, "--email");
    command->name = command_argument(command);
    if (!command_is_name(command->name))
        return command_misuse(command,
                              "a name has 1 to 100 bytes and no control characters");
    if (!is_email(email))
        return explain(&command->write.why, ERR_USAGE,
                       "%.60s: say --email ADDRESS, with one @ and a domain that ends in a "
                       "dot and two or more letters, as in ada@example.com",
                       email);
    const struct user *user = accounts_user(command->accounts, slice_of(email));
    if (user && user_is_in(user, command->organization))
        return command_refuse(command, "there is a user of that address already");
    draft_user(draft, command->organization->id, slice_of(command->name), slice_of(email),
               id);
    fprintf(command->out, "made user %s in %s\n", email, command->organization->slug);
    return OK;
}

static enum err list_users(struct account_command *command, struct draft *draft)
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

/* Prints the keys of a project; NULL: of all. */
static void print_keys(struct account_command *command, const struct project *project)
{
    for (struct account *a = NULL; (a = accounts_next(command->accounts, a));)
        if (!a->parent && !a->archived && (!project || a->project == project))
            fprintf(command->out, "%-8s %s  %s\n", environment_path_slug(a->type),
                    a->project->ref, a->secret_key);
}

static enum err list_keys(struct account_command *command, struct draft *draft)
{
    (void)draft;
    print_keys(command, NULL);
    return OK;
}

static enum err list_keys_of_project(struct account_command *command, struct draft *draft)
{
    (void)draft;
    const struct project *project =
        accounts_project(command->accounts, slice_of(command->words[2]));
    if (!project)
        return command_refuse(command,
                              "there is no such project; runcast project list shows "
                              "them");
    print_keys(command, project);
    return OK;
}

/* Lists the keys, and makes a token for who has not, or not any more, that of the first start. */
static enum err list_keys_and_token(struct account_command *command, struct draft *draft)
{
    const struct list *all = accounts_users(command->accounts);
    const char *email = command_option(command, "--user");
    if (email)
        command->user = accounts_user(command->accounts, slice_of(email));
    else if (!list_empty(all) && all->next == all->prev)
        command->user = container_of(all->next, struct user, link);
    if (!command->user)
        return command_refuse(
            command, email ? "there is no such user; runcast user list shows them"
                     : list_empty(all) ? "there are no users: runcast user create makes one"
                                       : "there are several users: say --user EMAIL");
    list_keys(command, draft);
    command_draw_token(command, draft, "keys");
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
        return command_misuse(command,
                              "--grace is a time like 30m, 24h or 7d, 365d at most, or 0");
    return OK;
}

static enum err rotate_key(struct account_command *command, struct draft *draft)
{
    enum environment_type type;
    if (environment_type_from_slug(slice_of(command_argument(command)), &type))
        return command_misuse(command, "an environment is dev, staging, prod or preview");
    enum err refused = command_find_project(command);
    if (!refused)
        refused = read_grace(command);
    if (refused)
        return refused;
    command->account = accounts_environment(command->accounts, command->project, type);
    if (!command->account)
        return command_refuse(command, "the project has no such environment");
    bootstrap_draw_key(type, command->keys[0]);
    draft_rotate(draft, command->account, command->keys[0], command->grace_ms);
    fprintf(command->out, "%s\n", command->keys[0]);
    return OK;
}

/* ---- which ---- */

/* clang-format off */
static const struct command_form {
    const char *noun, *verb; /* verb NULL: no other word */
    const char *argument;    /* by the name that help has for it; NULL: none */
    const char *options;     /* each between spaces */
    const char *needed;      /* one of them, with its value; NULL: none has to be there */
    command_fn *fn;
} forms[] = {
    { "org", "create", "NAME", " --slug ", NULL, create_organization },
    { "org", "list", NULL, "", NULL, list_organizations },
    { "org", "rename", "SLUG", " --name ", "--name NAME", command_rename_organization },
    { "org", "delete", "SLUG", " --confirm ", NULL, command_delete_organization },
    { "project", "create", "NAME", " --org --ref ", NULL, create_project },
    { "project", "list", NULL, "", NULL, list_projects },
    { "project", "rename", "REF", " --name ", "--name NAME", command_rename_project },
    { "project", "delete", "REF", " --confirm ", NULL, command_delete_project },
    { "user", "create", "NAME", " --email --org ", "--email EMAIL", create_user },
    { "user", "list", NULL, "", NULL, list_users },
    { "user", "rename", "EMAIL", " --name --org ", "--name NAME", command_rename_user },
    { "user", "delete", "EMAIL", " --org --confirm ", NULL, command_delete_user },
    { "token", "create", NULL, " --user --name ", "--user EMAIL", command_create_token },
    { "token", "list", NULL, "", NULL, command_list_tokens },
    { "token", "revoke", "ID", "", NULL, command_revoke_token },
    { "worker-token", "create", NULL, " --project --env --name ", NULL, command_create_worker_token },
    { "worker-token", "list", NULL, "", NULL, command_list_worker_tokens },
    { "worker-token", "revoke", "ID", "", NULL, command_revoke_worker_token },
    { "dashboard", "--user", "EMAIL", "", NULL, command_create_link },
    { "dashboard", NULL, NULL, "", NULL, command_create_link },
    { "keys", "rotate", "ENV", " --project --grace ", NULL, rotate_key },
    { "keys", "--new-personal-token", NULL, " --user ", NULL, list_keys_and_token },
    { "keys", "--project", "REF", "", NULL, list_keys_of_project },
    { "keys", NULL, NULL, "", NULL, list_keys },
};
/* clang-format on */

enum { FORM_COUNT = sizeof(forms) / sizeof(forms[0]) };

static const struct command_form *find_form(const char *noun, const char *verb)
{
    for (size_t i = 0; i < FORM_COUNT; i++) {
        bool same_verb = verb && forms[i].verb ? strcmp(verb, forms[i].verb) == 0
                                               : verb == forms[i].verb;
        if (strcmp(noun, forms[i].noun) == 0 && same_verb)
            return &forms[i];
    }
    return NULL;
}

bool account_command_knows(const char *noun, const char *verb)
{
    return find_form(noun, verb) != NULL;
}

/* Says what may stand behind the noun. */
static enum err refuse_verb(const char *noun, struct failure *why)
{
    char verbs[64] = "";
    for (size_t i = 0; i < FORM_COUNT; i++) {
        size_t len = strlen(verbs);
        if (forms[i].verb && strcmp(noun, forms[i].noun) == 0)
            snprintf(verbs + len, sizeof(verbs) - len, "%s%s", len ? ", " : "",
                     forms[i].verb);
    }
    return explain(why, ERR_USAGE,
                   "not a command: behind %.20s comes %s; runcast help %.20s says more",
                   noun, verbs[0] ? verbs : "nothing", noun);
}

static enum err refuse_missing(const struct command_form *form, const char *missing,
                               struct failure *why)
{
    const char *options = form->options;
    int len = (int)strlen(options);
    return explain(why, ERR_USAGE,
                   "%s is missing: say runcast %s %s%s%s%s%s%s%.*s; runcast help %s says "
                   "more",
                   missing, form->noun, form->verb, form->argument ? " " : "",
                   form->argument ? form->argument : "", form->needed ? " " : "",
                   form->needed ? form->needed : "",
                   len ? ", and behind it its options:" : "", len ? len - 1 : 0, options,
                   form->noun);
}

static enum err check_options(const struct command_form *form, const char *const *words,
                              size_t count, struct failure *why)
{
    for (size_t i = 0; i < count; i += 2) {
        char wanted[32];
        snprintf(wanted, sizeof(wanted), " %s ", words[i]);
        if (!strstr(form->options, wanted))
            return explain(why, ERR_USAGE,
                           "%.60s: not an option of runcast %s%s%s; runcast help %s shows "
                           "them",
                           words[i], form->noun, form->verb ? " " : "",
                           form->verb ? form->verb : "", form->noun);
        if (i + 1 == count)
            return explain(why, ERR_USAGE, "%.60s: needs a value", words[i]);
    }
    return OK;
}

static bool has_needed(const struct command_form *form, const char *const *words,
                       size_t count)
{
    size_t len = form->needed ? strcspn(form->needed, " ") : 0;
    for (size_t i = 0; i < count; i += 2)
        if (len && strlen(words[i]) == len && strncmp(words[i], form->needed, len) == 0)
            return true;
    return !form->needed;
}

enum err account_command_check(const char *const *words, size_t count, struct failure *why)
{
    const char *noun = count ? words[0] : "";
    const struct command_form *form = find_form(noun, count > 1 ? words[1] : NULL);
    size_t at = 2;
    if (!form)
        return refuse_verb(noun, why);
    if (form->argument && (count < 3 || strncmp(words[2], "--", 2) == 0))
        return refuse_missing(form, form->argument, why);
    at += form->argument != NULL;
    if (count < at)
        return OK;
    enum err refused = check_options(form, words + at, count - at, why);
    if (!refused && !has_needed(form, words + at, count - at))
        refused = refuse_missing(form, form->needed, why);
    return refused;
}

static enum err decide(struct account_write *write, struct accounts *accounts,
                       struct draft *draft)
{
    struct account_command *command = container_of(write, struct account_command, write);
    const char *const *words = command->words;
    enum err refused = account_command_check(words, command->word_count, &write->why);
    command->accounts = accounts;
    if (refused)
        return refused;
    return find_form(words[0], command->word_count > 1 ? words[1] : NULL)
        ->fn(command, draft);
}

/* The log gets the words of the command as they were said; of a token that was named by
 * itself only that it was. */
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

static void on_written(struct account_write *write, enum err status)
{
    struct account_command *command = container_of(write, struct account_command, write);
    if (command->actor && !only_looks(command))
        audit(command, status);
    OPENSSL_cleanse(command->keys, sizeof(command->keys));
    OPENSSL_cleanse(command->token, sizeof(command->token));
    json_decref(command->request);
    command->request = NULL;
    command->done(command, status);
}

enum err account_command_read(struct account_command *command, struct slice line)
{
    size_t i;
    json_t *word, *all = json_tree_read(line, TREE_ONE_OF_EACH | TREE_NO_ZERO, NULL);
    bool right = json_is_array(all) && json_array_size(all) <= COMMAND_WORDS_MAX;
    json_array_foreach(all, i, word)
    {
        right = right && json_is_string(word);
        if (right)
            command->words[command->word_count++] = json_string_value(word);
    }
    if (!right) {
        json_decref(all);
        return command_refuse(command, "not a request");
    }
    command->request = all;
    return OK;
}

void account_command_begin(struct account_command *command)
{
    command->write.decide = decide;
    command->write.done = on_written;
    account_write_begin(command->writer, &command->write);
}
