/* accounts.c - organizations, projects, environments, users and secrets in memory, linked.
 *
 * There are few accounts: an installation has some dozens, and one per open branch. They
 * stay in memory for as long as the process runs. Keys, tokens, branches and environment
 * ids are looked up on every request and are in hash tables; the others are in lists. */
#include "accounts/accounts_state.h"

#include <assert.h>
#include <openssl/crypto.h>

#include "accounts/variables.h"
#include "base/mem.h"
#include "base/vault/secret.h"

static struct slice account_key(const void *value)
{
    return slice_of(((const struct account *)value)->id);
}

static struct slice branch_key(const void *value)
{
    return slice_of(((const struct account *)value)->branch_key);
}

static struct slice secret_key(const void *value)
{
    const struct secret *secret = value;
    return (struct slice){ (const char *)secret->hash, HASH_LEN };
}

struct accounts *accounts_create(struct vault *vault)
{
    struct accounts *accounts = mem_new(struct accounts);
    accounts->vault = vault;
    list_init(&accounts->organizations);
    list_init(&accounts->projects);
    list_init(&accounts->users);
    list_init(&accounts->ended);
    list_init(&accounts->gone);
    list_init(&accounts->deleted);
    list_init(&accounts->closed);
    accounts->none.name = accounts->none.slug = "";
    table_init(&accounts->by_id, account_key);
    table_init(&accounts->branches, branch_key);
    table_init(&accounts->secrets, secret_key);
    return accounts;
}

/* ---- freeing ---- */

struct secret *secret_ref(struct secret *secret)
{
    if (secret)
        secret->refs++;
    return secret;
}

void secret_unref(struct secret *secret)
{
    if (!secret)
        return;
    assert(secret->refs > 0);
    if (--secret->refs > 0)
        return;
    secret_forget(secret->key);
    if (secret->lasting)
        secret_forget(secret->lasting->next);
    free(secret->lasting);
    free(secret->document);
    free(secret->name);
    free(secret->by);
    free(secret);
}

static void destroy_secrets(struct accounts *accounts)
{
    size_t at = 0;
    struct secret *secret;
    while ((secret = table_next(&accounts->secrets, &at)))
        secret_unref(secret);
    table_finish(&accounts->secrets);
    list_each (link, &accounts->ended)
        secret_unref(container_of(link, struct secret, of_owner));
}

static void destroy_environments(struct accounts *accounts)
{
    uint32_t at = 0;
    for (struct account *account; (account = slots_next(&accounts->by_number, &at));) {
        variables_destroy(account->variables);
        free(account->branch);
        free(account->branch_key);
        free(account);
    }
    slots_finish(&accounts->by_number);
    table_finish(&accounts->by_id);
    table_finish(&accounts->branches);
}

void accounts_destroy(struct accounts *accounts)
{
    if (!accounts)
        return;
    destroy_secrets(accounts);
    list_move_all(&accounts->users, &accounts->gone);
    list_each (link, &accounts->users) {
        struct user *user = container_of(link, struct user, link);
        free(user->name);
        free(user->email);
        free(user);
    }
    destroy_environments(accounts);
    list_move_all(&accounts->projects, &accounts->deleted);
    list_each (link, &accounts->projects) {
        struct project *project = container_of(link, struct project, link);
        free(project->name);
        free(project->slug);
        free(project);
    }
    list_move_all(&accounts->organizations, &accounts->closed);
    list_each (link, &accounts->organizations) {
        struct organization *organization = container_of(link, struct organization, link);
        free(organization->name);
        free(organization->slug);
        free(organization);
    }
    free(accounts);
}

void accounts_end_secret(struct accounts *accounts, struct secret *secret)
{
    table_remove(&accounts->secrets, secret_key(secret));
    list_remove(&secret->of_owner);
    secret_forget(secret->key);
    secret->key = NULL;
    secret->ended = true;
    accounts->endings++;
    if (secret->project)
        list_append(&accounts->ended, &secret->of_owner);
    else
        secret_unref(secret);
}

/* ---- references ---- */

struct organization *accounts_find_organization(struct accounts *accounts, const char *id)
{
    list_each (link, &accounts->organizations) {
        struct organization *one = container_of(link, struct organization, link);
        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

static struct project *find_among(const struct list *projects, const char *id)
{
    list_each (link, projects) {
        struct project *one = container_of(link, struct project, link);
        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

struct project *accounts_find_project(struct accounts *accounts, const char *id)
{
    struct project *found = find_among(&accounts->projects, id);
    return found ? found : find_among(&accounts->deleted, id);
}

struct user *accounts_find_user(struct accounts *accounts, const char *id)
{
    list_each (link, &accounts->users) {
        struct user *one = container_of(link, struct user, link);
        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

static enum err unresolved(const char *id, const char *missing, struct failure *why)
{
    return explain(why, ERR_INVALID, "account %s refers to %s, which does not exist", id,
                   missing);
}

static enum err link_secret(struct accounts *accounts, struct secret *secret,
                            struct failure *why)
{
    struct list *of_owner = NULL;
    if (secret->serves_all)
        return OK;
    if (secret->key &&
        (secret->account = accounts_by_id(accounts, slice_of(secret->owner_id))))
        of_owner = &secret->account->secrets;
    else if (secret->serves &&
             (secret->project = accounts_find_project(accounts, secret->owner_id)))
        of_owner = &secret->project->secrets;
    else if (!secret->key && !secret->serves &&
             (secret->user = accounts_find_user(accounts, secret->owner_id)))
        of_owner = &secret->user->secrets;
    if (!of_owner)
        return unresolved(secret->key ? "key" : "token", secret->owner_id, why);
    if (list_empty(&secret->of_owner))
        list_append(of_owner, &secret->of_owner);
    if (secret->account && !secret->name && !secret->ends_at)
        secret->account->secret_key = secret->key;
    return OK;
}

static enum err link_organizations(struct accounts *accounts, struct failure *why)
{
    list_each (link, &accounts->deleted) {
        struct project *project = container_of(link, struct project, link);
        project->organization =
            accounts_find_organization(accounts, project->organization_id);
        if (!project->organization)
            project->organization = &accounts->none;
    }
    list_each (link, &accounts->projects) {
        struct project *project = container_of(link, struct project, link);
        project->organization =
            accounts_find_organization(accounts, project->organization_id);
        if (!project->organization)
            return unresolved(project->id, project->organization_id, why);
    }
    list_each (link, &accounts->users) {
        struct user *user = container_of(link, struct user, link);
        user->organization = accounts_find_organization(accounts, user->organization_id);
        if (!user->organization)
            return unresolved(user->id, user->organization_id, why);
        struct user *first =
            user->email ? accounts_user(accounts, slice_of(user->email)) : user;
        if (first != user && list_empty(&user->others))
            list_append(&first->others, &user->others);
    }
    return OK;
}

static enum err link_branch(struct accounts *accounts, struct account *account,
                            struct failure *why)
{
    struct account *parent = accounts_by_id(accounts, slice_of(account->parent_id));
    if (!parent || parent->parent_id[0] || parent->type != ENVIRONMENT_PREVIEW ||
        strcmp(parent->project_id, account->project_id))
        return unresolved(account->id, account->parent_id, why);
    account->parent = parent;
    account->secret_key = parent->secret_key;
    parent->branch_count += !account->archived;
    parent->archived_count += account->archived && !account->forgotten;
    return OK;
}

static enum err link_environments(struct accounts *accounts, struct failure *why)
{
    struct account *account = NULL;
    enum err err = OK;
    while ((account = accounts_next(accounts, account)))
        account->branch_count = account->archived_count = 0;
    while (!err && (account = accounts_next(accounts, account))) {
        if (!account->project) /* it stays the same, even when it is deleted */
            account->project = accounts_find_project(accounts, account->project_id);
        if (!account->project)
            err = unresolved(account->id, account->project_id, why);
        else if (account->parent_id[0])
            err = link_branch(accounts, account, why);
        else if (!account->secret_key && !account->project->deleted_at)
            err =
                explain(why, ERR_INVALID, "environment %s has no secret key", account->id);
    }
    return err;
}

static void end_secrets(struct list *secrets)
{
    list_each (link, secrets)
        container_of(link, struct secret, of_owner)->ended = true;
}

/* Ends the credentials and environments of deleted projects.
 *
 * They stay in memory until the store has nothing of them any more. */
static void end_deleted(struct accounts *accounts)
{
    list_each (link, &accounts->deleted)
        end_secrets(&container_of(link, struct project, link)->secrets);
    for (struct account *a = NULL; (a = accounts_next(accounts, a));) {
        if (!a->project->deleted_at)
            continue;
        end_secrets(&a->secrets);
        if (a->branch && !a->archived)
            table_remove(&accounts->branches, slice_of(a->branch_key));
        a->archived_at = a->archived ? a->archived_at : a->project->deleted_at;
        a->archived = true;
    }
}

/* Ends the tokens whose makers have ended. They stay in memory until the store has nothing
 * of them any more. */
static void end_made(struct accounts *accounts)
{
    struct secret *secret;
    bool more = true;
    while (more) {
        size_t at = 0;
        more = false;
        while ((secret = table_next(&accounts->secrets, &at))) {
            const struct secret *maker = secret->user && secret->by && !secret->ended
                                             ? accounts_find_token(accounts, secret->by)
                                             : secret;
            if (maker == secret || (maker && !maker->ended))
                continue;
            secret->ended = more = true;
            accounts->endings++;
        }
    }
}

enum err accounts_link(struct accounts *accounts, struct failure *why)
{
    size_t at = 0;
    struct secret *secret;
    enum err err = link_organizations(accounts, why);
    for (struct account *a = NULL; (a = accounts_next(accounts, a));)
        a->secret_key = NULL;
    while (!err && (secret = table_next(&accounts->secrets, &at)))
        err = link_secret(accounts, secret, why);
    if (!err)
        err = link_environments(accounts, why);
    if (!err) {
        end_deleted(accounts);
        end_made(accounts);
    }
    return err;
}

/* ---- looking up ---- */

struct vault *accounts_vault(const struct accounts *accounts)
{
    return accounts->vault;
}

bool accounts_empty(const struct accounts *accounts)
{
    return list_empty(&accounts->organizations) && accounts->by_id.count == 0;
}

struct secret *accounts_find_secret(const struct accounts *accounts,
                                    const unsigned char hash[HASH_LEN])
{
    struct slice key = { (const char *)hash, HASH_LEN };
    struct secret *secret = table_find(&accounts->secrets, key);
    return secret && CRYPTO_memcmp(secret->hash, hash, HASH_LEN) == 0 ? secret : NULL;
}

bool accounts_read_hash(const char *text, unsigned char hash[HASH_LEN])
{
    long len = 0;
    unsigned char *bytes = OPENSSL_hexstr2buf(text, &len);
    bool read = bytes && len == HASH_LEN;
    if (read)
        memcpy(hash, bytes, HASH_LEN);
    OPENSSL_free(bytes);
    return read;
}

struct secret *accounts_find_token(const struct accounts *accounts, const char *document)
{
    unsigned char hash[HASH_LEN];
    return accounts_read_hash(document, hash) ? accounts_find_secret(accounts, hash) : NULL;
}

struct secret *accounts_secret(struct accounts *accounts, struct slice text, int64_t now_ms)
{
    unsigned char hash[HASH_LEN];
    vault_hash(text, hash);
    struct secret *secret = accounts_find_secret(accounts, hash);
    return secret && secret_is_valid(secret, now_ms) ? secret : NULL;
}

bool secret_is_valid(const struct secret *secret, int64_t now_ms)
{
    return !secret->ended && (!secret->ends_at || now_ms < secret->ends_at);
}

/* A lasting sign-in has its last use with its code; a token of all projects is not stored. */
bool secret_has_unstored_use(const struct secret *secret, int64_t now_ms)
{
    return secret->used_at > secret->stored_use && !secret->lasting &&
           !secret->serves_all && secret_is_valid(secret, now_ms);
}

/* The clock of the other gateway may be ahead of ours. */
void accounts_note_use(struct accounts *accounts, const unsigned char hash[HASH_LEN],
                       int64_t used_at, int64_t now_ms)
{
    struct secret *secret = accounts_find_secret(accounts, hash);
    if (used_at > now_ms)
        used_at = now_ms;
    if (secret && used_at > secret->used_at)
        secret->used_at = used_at;
}

size_t secrets_count(const struct list *of_owner, int64_t now_ms)
{
    size_t count = 0;
    list_each (link, of_owner)
        count += secret_is_valid(container_of(link, struct secret, of_owner), now_ms);
    return count;
}

void secret_prove(struct secret *secret, int64_t now_ms, int64_t wall_ms)
{
    secret->fresh_at = now_ms;
    secret->fresh_wall_ms = wall_ms;
}

bool secret_is_fresh(const struct secret *secret, int64_t now_ms, int64_t wall_ms)
{
    return secret->fresh_wall_ms && now_ms - secret->fresh_at < SECRET_FRESH_MS &&
           wall_ms - secret->fresh_wall_ms < SECRET_FRESH_MS;
}

void secret_show_id(const struct secret *secret, char id[SECRET_ID_LEN + 1])
{
    text_to_hex(secret->hash, SECRET_ID_LEN / 2, id);
}

struct secret *accounts_next_secret(const struct accounts *accounts, size_t *at)
{
    return table_next(&accounts->secrets, at);
}

struct secret *secret_find(const struct list *of_owner, const char *id)
{
    list_each (link, of_owner) {
        struct secret *secret = container_of(link, struct secret, of_owner);
        char shown[SECRET_ID_LEN + 1];
        secret_show_id(secret, shown);
        if (strcmp(shown, id) == 0)
            return secret;
    }
    return NULL;
}

struct account *account_of_keys(struct account *account)
{
    return account->parent ? account->parent : account;
}

bool accounts_are_branches(const struct account *one, const struct account *two)
{
    return one->type == ENVIRONMENT_PREVIEW && two->type == ENVIRONMENT_PREVIEW &&
           one->project == two->project;
}

struct shared_quotas *account_shared_quotas(const struct account *account)
{
    struct project *project = account->project;
    return account->type == ENVIRONMENT_PREVIEW ? &project->branches : &project->shared;
}

struct account *accounts_by_id(struct accounts *accounts, struct slice id)
{
    return table_find(&accounts->by_id, id);
}

struct account *accounts_by_number(struct accounts *accounts, uint32_t number)
{
    return slots_get(&accounts->by_number, number);
}

struct project *accounts_project(struct accounts *accounts, struct slice ref)
{
    list_each (link, &accounts->projects) {
        struct project *project = container_of(link, struct project, link);
        if (slice_is(ref, project->ref))
            return project;
    }
    return NULL;
}

struct account *accounts_environment(struct accounts *accounts,
                                     const struct project *project,
                                     enum environment_type type)
{
    struct account *account = NULL;
    while ((account = accounts_next(accounts, account))) {
        if (account->project == project && account->type == type && !account->parent)
            return account->archived ? NULL : account;
    }
    return NULL;
}

struct account *accounts_branch(struct accounts *accounts, const struct account *preview,
                                struct slice name)
{
    char key[ID_MAX + 1 + BRANCH_NAME_MAX + 1];
    if (!name.len || name.len > BRANCH_NAME_MAX)
        return NULL;
    int len = snprintf(key, sizeof(key), "%s:%.*s", preview->id, SLICE_ARG(name));
    return table_find(&accounts->branches, (struct slice){ key, (size_t)len });
}

void accounts_shrink(struct account *account)
{
    variables_destroy(account->variables);
    free(account->branch);
    free(account->branch_key);
    account->variables = NULL;
    account->branch = account->branch_key = NULL;
}

void accounts_forget(struct account *account)
{
    account->forgotten = true;
    account->parent->archived_count--;
}

bool secret_serves(const struct secret *secret, const struct account *account)
{
    bool has_runs = account->type != ENVIRONMENT_PREVIEW || account->parent;
    bool is_ours =
        secret->serves_all
            ? !secret->only[0] || !strcmp(secret->only, account->project->organization->id)
            : secret->project == account->project;
    return is_ours && secret->serves & 1u << account->type && has_runs &&
           !account->archived;
}

bool secret_is_of_worker(const struct secret *secret)
{
    return secret->project || secret->serves_all;
}

enum err accounts_serve_all(struct accounts *accounts, struct slice token,
                            const struct organization *only)
{
    unsigned char hash[HASH_LEN];
    vault_hash(token, hash);
    if (!slice_starts(token, "tr_wgt_") || accounts_find_secret(accounts, hash))
        return ERR_INVALID;
    struct secret *secret = mem_new(struct secret);
    secret->refs = 1;
    memcpy(secret->hash, hash, HASH_LEN);
    secret->name = mem_text(SLICE("supervise role"));
    secret->document = mem_text(SLICE(""));
    secret->serves = ENVIRONMENTS_DEPLOYED;
    secret->serves_all = true;
    if (only)
        snprintf(secret->only, sizeof(secret->only), "%s", only->id);
    list_init(&secret->of_owner);
    table_insert(&accounts->secrets, secret);
    return OK;
}

bool user_is_in(const struct user *user, const struct organization *organization)
{
    if (user->organization == organization)
        return true;
    list_each (link, &user->others)
        if (container_of(link, const struct user, others)->organization == organization)
            return true;
    return false;
}

bool user_sees(const struct user *user, const struct project *project)
{
    return user_is_in(user, project->organization);
}

struct account *accounts_next(struct accounts *accounts, const struct account *previous)
{
    uint32_t at = previous ? previous->number + 1 : 1;
    return slots_next(&accounts->by_number, &at);
}

uint32_t accounts_free_number(const struct accounts *accounts)
{
    uint32_t count = accounts->by_number.count;
    if (count < accounts->noted_number)
        count = accounts->noted_number;
    if (count > ENVIRONMENT_NUMBER_MAX)
        return 0;
    return count ? count : 1;
}

void accounts_note_number(struct accounts *accounts, uint32_t free_number)
{
    accounts->noted_number = free_number;
}

struct user *accounts_first_user(struct accounts *accounts,
                                 const struct organization *organization)
{
    list_each (link, &accounts->users) {
        struct user *user = container_of(link, struct user, link);
        if (user->organization == organization)
            return user;
    }
    return NULL;
}

struct user *accounts_user(struct accounts *accounts, struct slice email_or_id)
{
    list_each (link, &accounts->users) {
        struct user *user = container_of(link, struct user, link);
        if (slice_is(email_or_id, user->id) || slice_is(email_or_id, user->email))
            return user;
    }
    return NULL;
}

struct organization *accounts_organization(struct accounts *accounts,
                                           struct slice slug_or_id)
{
    list_each (link, &accounts->organizations) {
        struct organization *one = container_of(link, struct organization, link);
        if (slice_is(slug_or_id, one->id) || slice_is(slug_or_id, one->slug))
            return one;
    }
    return NULL;
}

const struct list *accounts_organizations(const struct accounts *accounts)
{
    return &accounts->organizations;
}

const struct list *accounts_projects(const struct accounts *accounts)
{
    return &accounts->projects;
}

const struct list *accounts_deleted_projects(const struct accounts *accounts)
{
    return &accounts->deleted;
}

const struct list *accounts_users(const struct accounts *accounts)
{
    return &accounts->users;
}

/* ---- endings ---- */

uint64_t accounts_endings(const struct accounts *accounts)
{
    return accounts->endings;
}

int64_t accounts_next_end(struct accounts *accounts, int64_t now_ms)
{
    int64_t next = 0;
    size_t at = 0;
    struct secret *secret;
    while ((secret = table_next(&accounts->secrets, &at)))
        if (secret->ends_at > now_ms && (!next || secret->ends_at < next))
            next = secret->ends_at;
    return next;
}
