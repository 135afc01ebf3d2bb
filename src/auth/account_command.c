/* account_command.c - one function a command: it reads its words and drafts; what it made
 * is printed when it is written. */
#include "auth/account_command.h"

#include <ctype.h>
#include <jansson.h>
#include <openssl/crypto.h>

#include "base/buf.h"
#include "base/mem.h"

enum {
    NAME_MAX_BYTES = 100,
    EMAIL_MAX = 254,
    TOKEN_ID_LEN = 12, /* hex digits of the hash */
    GRACE_DAYS_MAX = 365,
    DAY_MS = 24 * 60 * 60 * 1000,
};

typedef enum err command_fn(struct account_command *command, struct draft *draft);

static enum err refuse(struct account_command *command, const char *text)
{
    return explain(&command->write.why, ERR_INVALID, "%s", text);
}

/* ---- words ---- */

/* The value behind "--name"; NULL: not given. The last one counts. */
static const char *option(const struct account_command *command, const char *name)
{
    const char *value = NULL;
    for (size_t i = 2; i + 1 < command->word_count; i++)
        if (strcmp(command->words[i], name) == 0)
            value = command->words[i + 1];
    return value;
}

static const char *argument(const struct account_command *command)
{
    bool given = command->word_count > 2 && strncmp(command->words[2], "--", 2) != 0;
    return given ? command->words[2] : NULL;
}

/* Everything behind the second word: an argument when one is wanted, then known options. */
static enum err check_words(struct account_command *command, bool takes_argument,
                            const char *options)
{
    size_t i = 2;
    if (takes_argument && !argument(command))
        return refuse(command, "something to name is missing; runcast --help shows the "
                               "commands");
    for (i += takes_argument; i < command->word_count; i += 2) {
        char wanted[32];
        snprintf(wanted, sizeof(wanted), " %s ", command->words[i]);
        if (!strstr(options, wanted))
            return explain(&command->write.why, ERR_INVALID,
                           "%.60s: not an option of this command; runcast --help shows the "
                           "commands",
                           command->words[i]);
        if (i + 1 == command->word_count)
            return explain(&command->write.why, ERR_INVALID, "%.60s: needs a value",
                           command->words[i]);
    }
    return OK;
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return len && len <= NAME_MAX_BYTES && text_is_utf8(slice_of(text));
}

/* local@domain.tld, of what the official CLI takes for an address. */
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

/* "My Shop!" becomes my-shop. */
static void make_slug(const char *name, char out[NAME_MAX_BYTES + 1])
{
    size_t len = 0;
    for (const char *c = name; *c && len < NAME_MAX_BYTES; c++) {
        if (isascii((unsigned char)*c) && isalnum((unsigned char)*c))
            out[len++] = (char)tolower((unsigned char)*c);
        else if (len && out[len - 1] != '-')
            out[len++] = '-';
    }
    while (len && out[len - 1] == '-')
        len--;
    if (!len)
        out[len++] = 'x';
    out[len] = '\0';
}

static enum err find_organization(struct account_command *command)
{
    const struct list *all = accounts_organizations(command->accounts);
    const char *given = option(command, "--org");
    if (given)
        command->organization = accounts_organization(command->accounts, slice_of(given));
    else if (!list_empty(all) && all->next == all->prev)
        command->organization = container_of(all->next, struct organization, link);
    if (command->organization)
        return OK;
    return refuse(command, given ? "there is no such organization; runcast org list shows "
                                   "them"
                                 : "there are several organizations: say --org SLUG");
}

static enum err find_project(struct account_command *command)
{
    const struct list *all = accounts_projects(command->accounts);
    const char *given = option(command, "--project");
    if (given)
        command->project = accounts_project(command->accounts, slice_of(given));
    else if (!list_empty(all) && all->next == all->prev)
        command->project = container_of(all->next, struct project, link);
    if (command->project)
        return OK;
    return refuse(command, given ? "there is no such project; runcast project list shows "
                                   "them"
                                 : "there are several projects: say --project REF");
}

static void print_time(FILE *out, int64_t unix_ms)
{
    char text[TIME_TEXT_LEN + 1];
    text_from_time(unix_ms, text);
    fprintf(out, "%.10s", unix_ms ? text : "-");
}

/* ---- organizations ---- */

static enum err create_organization(struct account_command *command, struct draft *draft)
{
    char slug[NAME_MAX_BYTES + 1], id[ID_MAX];
    enum err refused = check_words(command, true, " --slug ");
    if (refused)
        return refused;
    const char *given = option(command, "--slug");
    command->name = argument(command);
    if (!is_name(command->name) || (given && !is_name(given)))
        return refuse(command, "a name has 1 to 100 bytes and no control characters");
    make_slug(given ? given : command->name, slug);
    if (accounts_organization(command->accounts, slice_of(slug)))
        return explain(&command->write.why, ERR_INVALID,
                       "there is an organization %s already: say another --slug", slug);
    draft_organization(draft, slice_of(command->name), slice_of(slug), id);
    fprintf(command->out, "made organization %s\n", slug);
    return OK;
}

static enum err list_organizations(struct account_command *command, struct draft *draft)
{
    enum err refused = check_words(command, false, "");
    (void)draft;
    if (refused)
        return refused;
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
    char slug[NAME_MAX_BYTES + 1], id[ID_MAX];
    uint32_t number = accounts_free_number(command->accounts);
    enum err refused = check_words(command, true, " --org --ref ");
    if (!refused)
        refused = find_organization(command);
    if (refused)
        return refused;
    const char *ref = option(command, "--ref");
    command->name = argument(command);
    if (!is_name(command->name))
        return refuse(command, "a name has 1 to 100 bytes and no control characters");
    if (ref && !bootstrap_ref_is_right(slice_of(ref)))
        return refuse(command, "a ref is proj_ and 8 to 40 lower-case letters and digits");
    if (ref && accounts_project(command->accounts, slice_of(ref)))
        return refuse(command, "there is a project of that ref already");
    if (!number)
        return refuse(command, "there are too many environments");
    if (ref)
        snprintf(command->ref, sizeof(command->ref), "%s", ref);
    else
        bootstrap_draw_ref(command->ref);
    make_slug(command->name, slug);
    draft_project(draft, command->organization->id, command->ref, slice_of(command->name),
                  slice_of(slug), id);
    fprintf(command->out, "made project %s\n", command->ref);
    for (int i = 0; i < ENVIRONMENT_TYPES; i++) {
        enum environment_type type = (enum environment_type)i;
        bootstrap_draw_key(type, command->keys[i]);
        draft_environment(draft, number + (uint32_t)i, id, type, command->keys[i]);
        fprintf(command->out, "  %-8s %s\n", environment_path_slug(type), command->keys[i]);
    }
    return OK;
}

static enum err list_projects(struct account_command *command, struct draft *draft)
{
    enum err refused = check_words(command, false, "");
    (void)draft;
    if (refused)
        return refused;
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
    enum err refused = check_words(command, true, " --org --email ");
    if (!refused)
        refused = find_organization(command);
    if (refused)
        return refused;
    const char *email = option(command, "--email");
    command->name = argument(command);
    if (!is_name(command->name))
        return refuse(command, "a name has 1 to 100 bytes and no control characters");
    if (!email || !is_email(email))
        return refuse(command, "say --email ADDRESS, as in ada@example.com");
    if (accounts_user(command->accounts, slice_of(email)))
        return refuse(command, "there is a user of that address already");
    draft_user(draft, command->organization->id, slice_of(command->name), slice_of(email),
               id);
    fprintf(command->out, "made user %s in %s\n", email, command->organization->slug);
    return OK;
}

static enum err list_users(struct account_command *command, struct draft *draft)
{
    enum err refused = check_words(command, false, "");
    (void)draft;
    if (refused)
        return refused;
    const struct list *all = accounts_users(command->accounts);
    list_each (link, all) {
        const struct user *one = container_of(link, struct user, link);
        fprintf(command->out, "%-32s  %-24s  %s\n", one->email, one->organization->slug,
                one->name);
    }
    return OK;
}

/* ---- tokens ---- */

static enum err create_token(struct account_command *command, struct draft *draft)
{
    enum err refused = check_words(command, false, " --user --name ");
    const char *email = option(command, "--user"), *name = option(command, "--name");
    if (refused)
        return refused;
    command->user = email ? accounts_user(command->accounts, slice_of(email)) : NULL;
    if (!command->user)
        return refuse(command, "say --user EMAIL; runcast user list shows them");
    if (name && !is_name(name))
        return refuse(command, "a name has 1 to 100 bytes and no control characters");
    bootstrap_draw_token(command->token);
    draft_token(draft, command->user->id, slice_of(name ? name : "token"), command->token);
    fprintf(command->out, "%s\n", command->token);
    return OK;
}

static void token_id(const struct secret *secret, char out[2 * HASH_LEN + 1])
{
    text_to_hex(secret->hash, HASH_LEN, out);
    out[TOKEN_ID_LEN] = '\0';
}

static enum err list_tokens(struct account_command *command, struct draft *draft)
{
    enum err refused = check_words(command, false, "");
    (void)draft;
    if (refused)
        return refused;
    const struct list *all = accounts_users(command->accounts);
    list_each (link, all) {
        const struct user *user = container_of(link, struct user, link);
        list_each (at, &user->secrets) {
            const struct secret *secret = container_of(at, struct secret, of_owner);
            char id[2 * HASH_LEN + 1];
            token_id(secret, id);
            fprintf(command->out, "%s  ", id);
            print_time(command->out, secret->created_at);
            fprintf(command->out, "  %-32s  %s\n", user->email, secret->name);
        }
    }
    return OK;
}

static struct secret *find_token(struct accounts *accounts, const char *id)
{
    const struct list *all = accounts_users(accounts);
    list_each (link, all) {
        const struct user *user = container_of(link, struct user, link);
        list_each (at, &user->secrets) {
            struct secret *secret = container_of(at, struct secret, of_owner);
            char shown[2 * HASH_LEN + 1];
            token_id(secret, shown);
            if (strcmp(shown, id) == 0)
                return secret;
        }
    }
    return NULL;
}

static enum err revoke_token(struct account_command *command, struct draft *draft)
{
    enum err refused = check_words(command, true, "");
    if (refused)
        return refused;
    const char *id = argument(command);
    struct secret *secret = find_token(command->accounts, id);
    if (!secret)
        secret = accounts_secret(command->accounts, slice_of(id), draft->now_ms);
    if (!secret || !secret->user)
        return refuse(command, "there is no such token; runcast token list shows them");
    fprintf(command->out, "revoked %s of %s\n", secret->name, secret->user->email);
    draft_end(draft, secret);
    return OK;
}

/* ---- keys ---- */

static enum err list_keys(struct account_command *command, struct draft *draft)
{
    (void)draft;
    for (struct account *a = NULL; (a = accounts_next(command->accounts, a));)
        if (!a->parent)
            fprintf(command->out, "%-8s %s  %s\n", environment_path_slug(a->type),
                    a->project->ref, a->secret_key);
    return OK;
}

static enum err read_grace(struct account_command *command)
{
    const char *text = option(command, "--grace");
    command->grace_ms = DAY_MS;
    if (text && strcmp(text, "0") == 0)
        command->grace_ms = 0;
    else if (text && (text_to_duration_ms(slice_of(text), &command->grace_ms) ||
                      command->grace_ms > (int64_t)GRACE_DAYS_MAX * DAY_MS))
        return refuse(command, "--grace is a time like 30m, 24h or 7d, 365d at most, or 0");
    return OK;
}

static enum err rotate_key(struct account_command *command, struct draft *draft)
{
    enum environment_type type = ENVIRONMENT_DEV;
    enum err refused = check_words(command, true, " --project --grace ");
    if (!refused && environment_type_from_slug(slice_of(argument(command)), &type))
        refused = refuse(command, "an environment is dev, staging, prod or preview");
    if (!refused)
        refused = find_project(command);
    if (!refused)
        refused = read_grace(command);
    if (refused)
        return refused;
    command->account = accounts_environment(command->accounts, command->project, type);
    if (!command->account)
        return refuse(command, "the project has no such environment");
    bootstrap_draw_key(type, command->keys[0]);
    draft_rotate(draft, command->account, command->keys[0], command->grace_ms);
    fprintf(command->out, "%s\n", command->keys[0]);
    return OK;
}

/* ---- which ---- */

static const struct {
    const char *noun, *verb; /* verb NULL: no other word */
    command_fn *fn;
} commands[] = {
    { "org", "create", create_organization },
    { "org", "list", list_organizations },
    { "project", "create", create_project },
    { "project", "list", list_projects },
    { "user", "create", create_user },
    { "user", "list", list_users },
    { "token", "create", create_token },
    { "token", "list", list_tokens },
    { "token", "revoke", revoke_token },
    { "keys", "rotate", rotate_key },
    { "keys", NULL, list_keys },
};

static enum err decide(struct account_write *write, struct accounts *accounts,
                       struct draft *draft)
{
    struct account_command *command = container_of(write, struct account_command, write);
    const char *noun = command->word_count ? command->words[0] : "";
    const char *verb = command->word_count > 1 ? command->words[1] : NULL;
    (void)accounts;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        bool same_verb = verb && commands[i].verb ? strcmp(verb, commands[i].verb) == 0
                                                  : verb == commands[i].verb;
        if (strcmp(noun, commands[i].noun) == 0 && same_verb)
            return commands[i].fn(command, draft);
    }
    return refuse(command, "not a command; runcast --help shows them");
}

static void on_written(struct account_write *write, enum err status)
{
    struct account_command *command = container_of(write, struct account_command, write);
    OPENSSL_cleanse(command->keys, sizeof(command->keys));
    OPENSSL_cleanse(command->token, sizeof(command->token));
    json_decref(command->request);
    command->request = NULL;
    command->done(command, status);
}

enum err account_command_read(struct account_command *command, struct slice line)
{
    size_t i;
    json_t *word, *all = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, NULL);
    bool right = json_is_array(all) && json_array_size(all) <= COMMAND_WORDS_MAX;
    json_array_foreach(all, i, word)
    {
        right = right && json_is_string(word);
        if (right)
            command->words[command->word_count++] = json_string_value(word);
    }
    if (!right) {
        json_decref(all);
        return refuse(command, "not a request");
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
