/* accounts.c - the documents of DOC_ORGANIZATION … DOC_TOKEN, in memory and linked.
 *
 *   DOC_ORGANIZATION  <id>        {id, name, slug}
 *   DOC_PROJECT       <id>        {id, ref, name, slug, organization}
 *   DOC_USER          <id>        {id, name, email, organization}
 *   DOC_ENVIRONMENT   <id>        {number, id, type, project}
 *   DOC_KEY           <id>:root   {environment, sealed}       sealed under its own name
 *   DOC_TOKEN         <hash>      {hash, user}
 *
 * They are few (an installation has some dozens) and are never dropped while it runs. What
 * is looked up on every request, keys, tokens and environment ids, is in tables. */
#include "auth/accounts.h"

#include <assert.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdio.h>

#include "auth/variables.h"
#include "base/mem.h"
#include "base/table.h"

enum { ENVIRONMENT_NUMBER_MAX = 1000000 };

/* A secret key (account) or a personal access token (user), found by its hash. */
struct credential_entry {
    unsigned char hash[HASH_LEN];
    char owner_id[ID_MAX];   /* environment or user */
    char *secret_key;        /* NULL: of a token only the hash is known */
    struct account *account; /* since accounts_link */
    struct user *user;       /* since accounts_link */
};

struct accounts {
    struct vault *vault;
    struct list organizations, projects, users;
    struct account **by_number; /* NULL where no environment has the number */
    size_t number_count;
    struct table by_id;       /* struct account */
    struct table credentials; /* struct credential_entry */
};

static struct slice account_key(const void *value)
{
    return slice_of(((const struct account *)value)->id);
}

static struct slice credential_key(const void *value)
{
    const struct credential_entry *entry = value;
    return (struct slice){ (const char *)entry->hash, HASH_LEN };
}

struct accounts *accounts_create(struct vault *vault)
{
    struct accounts *accounts = mem_new(struct accounts);
    accounts->vault = vault;
    list_init(&accounts->organizations);
    list_init(&accounts->projects);
    list_init(&accounts->users);
    table_init(&accounts->by_id, account_key);
    table_init(&accounts->credentials, credential_key);
    return accounts;
}

static void destroy_credentials(struct accounts *accounts)
{
    size_t at = 0;
    struct credential_entry *entry;
    while ((entry = table_next(&accounts->credentials, &at))) {
        vault_forget(entry->secret_key);
        free(entry);
    }
    table_finish(&accounts->credentials);
}

void accounts_destroy(struct accounts *accounts)
{
    if (!accounts)
        return;
    destroy_credentials(accounts);
    list_each (link, &accounts->users) {
        struct user *user = container_of(link, struct user, link);
        free(user->name);
        free(user->email);
        free(user);
    }
    for (size_t i = 0; i < accounts->number_count; i++) {
        if (accounts->by_number[i])
            variables_destroy(accounts->by_number[i]->variables);
        free(accounts->by_number[i]);
    }
    free(accounts->by_number);
    table_finish(&accounts->by_id);
    list_each (link, &accounts->projects) {
        struct project *project = container_of(link, struct project, link);
        free(project->name);
        free(project->slug);
        free(project);
    }
    list_each (link, &accounts->organizations) {
        struct organization *organization = container_of(link, struct organization, link);
        free(organization->name);
        free(organization->slug);
        free(organization);
    }
    free(accounts);
}

/* ---- documents in ---- */

/* A member that is a text shorter than size, copied. */
static bool take_text(const json_t *body, const char *name, char *out, size_t size)
{
    const json_t *value = json_object_get(body, name);
    size_t len = json_string_length(value);
    if (!len || len >= size)
        return false;
    memcpy(out, json_string_value(value), len + 1);
    return true;
}

static char *copy_text(const json_t *body, const char *name)
{
    const char *value = json_string_value(json_object_get(body, name));
    return mem_text(slice_of(value ? value : ""));
}

static enum err damaged(const struct document *document, struct failure *why)
{
    return explain(why, ERR_INVALID, "account document '%.*s' is damaged",
                   SLICE_ARG(bytes_slice(document->name)));
}

static struct organization *find_organization(struct accounts *accounts, const char *id)
{
    list_each (link, &accounts->organizations) {
        struct organization *one = container_of(link, struct organization, link);
        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

static struct project *find_project(struct accounts *accounts, const char *id)
{
    list_each (link, &accounts->projects) {
        struct project *one = container_of(link, struct project, link);
        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

static struct user *find_user(struct accounts *accounts, const char *id)
{
    list_each (link, &accounts->users) {
        struct user *one = container_of(link, struct user, link);
        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

static bool add_organization(struct accounts *accounts, const json_t *body)
{
    struct organization read = { 0 };
    if (!take_text(body, "id", read.id, sizeof(read.id)) ||
        find_organization(accounts, read.id))
        return false;
    struct organization *organization = mem_new(struct organization);
    *organization = read;
    organization->name = copy_text(body, "name");
    organization->slug = copy_text(body, "slug");
    list_append(&accounts->organizations, &organization->link);
    return true;
}

static bool add_project(struct accounts *accounts, const json_t *body)
{
    struct project read = { 0 };
    if (!take_text(body, "id", read.id, sizeof(read.id)) ||
        !take_text(body, "ref", read.ref, sizeof(read.ref)) ||
        !take_text(body, "organization", read.organization_id, ID_MAX) ||
        find_project(accounts, read.id) || accounts_project(accounts, slice_of(read.ref)))
        return false;
    struct project *project = mem_new(struct project);
    *project = read;
    project->name = copy_text(body, "name");
    project->slug = copy_text(body, "slug");
    list_append(&accounts->projects, &project->link);
    return true;
}

static bool add_user(struct accounts *accounts, const json_t *body)
{
    struct user read = { 0 };
    if (!take_text(body, "id", read.id, sizeof(read.id)) ||
        !take_text(body, "organization", read.organization_id, ID_MAX) ||
        find_user(accounts, read.id))
        return false;
    struct user *user = mem_new(struct user);
    *user = read;
    user->name = copy_text(body, "name");
    user->email = copy_text(body, "email");
    list_append(&accounts->users, &user->link);
    return true;
}

static void make_room(struct accounts *accounts, uint32_t number)
{
    if (number < accounts->number_count)
        return;
    size_t count = number + 1;
    accounts->by_number = mem_resize(accounts->by_number, count * sizeof(struct account *));
    for (size_t i = accounts->number_count; i < count; i++)
        accounts->by_number[i] = NULL;
    accounts->number_count = count;
}

static bool add_environment(struct accounts *accounts, const json_t *body)
{
    struct account read = { 0 };
    char type[16];
    json_int_t number = json_integer_value(json_object_get(body, "number"));
    if (number < 1 || number > ENVIRONMENT_NUMBER_MAX ||
        !take_text(body, "id", read.id, sizeof(read.id)) ||
        !take_text(body, "type", type, sizeof(type)) ||
        environment_type_from_slug(slice_of(type), &read.type) ||
        !take_text(body, "project", read.project_id, ID_MAX) ||
        accounts_by_id(accounts, slice_of(read.id)) ||
        accounts_by_number(accounts, (uint32_t)number))
        return false;
    struct account *account = mem_new(struct account);
    *account = read;
    account->number = (uint32_t)number;
    make_room(accounts, account->number);
    accounts->by_number[account->number] = account;
    table_insert(&accounts->by_id, account);
    return true;
}

static struct credential_entry *find_credential(const struct accounts *accounts,
                                                const unsigned char hash[HASH_LEN])
{
    struct slice key = { (const char *)hash, HASH_LEN };
    struct credential_entry *entry = table_find(&accounts->credentials, key);
    return entry && CRYPTO_memcmp(entry->hash, hash, HASH_LEN) == 0 ? entry : NULL;
}

/* Takes over secret. */
static bool add_credential(struct accounts *accounts, const unsigned char hash[HASH_LEN],
                           const char *owner_id, char *secret)
{
    if (find_credential(accounts, hash)) {
        vault_forget(secret);
        return false;
    }
    struct credential_entry *entry = mem_new(struct credential_entry);
    memcpy(entry->hash, hash, HASH_LEN);
    snprintf(entry->owner_id, sizeof(entry->owner_id), "%s", owner_id);
    entry->secret_key = secret;
    table_insert(&accounts->credentials, entry);
    return true;
}

static enum err add_key(struct accounts *accounts, const json_t *body,
                        const struct document *document, struct failure *why)
{
    char owner_id[ID_MAX];
    unsigned char hash[HASH_LEN];
    struct buf secret = { 0 };
    const char *sealed = json_string_value(json_object_get(body, "sealed"));
    if (!sealed || !take_text(body, "environment", owner_id, sizeof(owner_id)))
        return damaged(document, why);
    if (vault_unseal(accounts->vault, bytes_slice(document->name), slice_of(sealed),
                     &secret)) {
        buf_finish(&secret);
        return explain(why, ERR_INVALID,
                       "the secret key of environment %s does not open: this is not the "
                       "encryption key that sealed it",
                       owner_id);
    }
    vault_hash(buf_slice(&secret), hash);
    char *text = mem_text(buf_slice(&secret));
    OPENSSL_cleanse(secret.ptr, secret.len);
    buf_finish(&secret);
    return add_credential(accounts, hash, owner_id, text) ? OK : damaged(document, why);
}

static bool read_hash(const char *text, unsigned char hash[HASH_LEN])
{
    long len = 0;
    unsigned char *bytes = OPENSSL_hexstr2buf(text, &len);
    bool read = bytes && len == HASH_LEN;
    if (read)
        memcpy(hash, bytes, HASH_LEN);
    OPENSSL_free(bytes);
    return read;
}

static bool add_token(struct accounts *accounts, const json_t *body)
{
    char owner_id[ID_MAX], text[2 * HASH_LEN + 1];
    unsigned char hash[HASH_LEN];
    return take_text(body, "hash", text, sizeof(text)) &&
           take_text(body, "user", owner_id, sizeof(owner_id)) && read_hash(text, hash) &&
           add_credential(accounts, hash, owner_id, NULL);
}

static enum err add_body(struct accounts *accounts, const struct document *document,
                         const json_t *body, struct failure *why)
{
    bool added = false;
    switch (document->kind) {
    case DOC_ORGANIZATION: added = add_organization(accounts, body); break;
    case DOC_PROJECT: added = add_project(accounts, body); break;
    case DOC_USER: added = add_user(accounts, body); break;
    case DOC_ENVIRONMENT: added = add_environment(accounts, body); break;
    case DOC_TOKEN: added = add_token(accounts, body); break;
    case DOC_KEY: return add_key(accounts, body, document, why);
    default: break;
    }
    return added ? OK : damaged(document, why);
}

enum err accounts_add(struct accounts *accounts, const struct document *document,
                      struct failure *why)
{
    struct slice text = bytes_slice(document->body);
    json_t *body =
        json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES, NULL);
    enum err err = body ? add_body(accounts, document, body, why) : damaged(document, why);
    json_decref(body);
    return err;
}

static enum err unresolved(const char *id, const char *missing, struct failure *why)
{
    return explain(why, ERR_INVALID, "account %s refers to %s, which does not exist", id,
                   missing);
}

static enum err link_credentials(struct accounts *accounts, struct failure *why)
{
    size_t at = 0;
    struct credential_entry *entry;
    while ((entry = table_next(&accounts->credentials, &at))) {
        if (entry->secret_key)
            entry->account = accounts_by_id(accounts, slice_of(entry->owner_id));
        else
            entry->user = find_user(accounts, entry->owner_id);
        if (!entry->account && !entry->user)
            return unresolved(entry->secret_key ? "key" : "token", entry->owner_id, why);
        if (entry->account)
            entry->account->secret_key = entry->secret_key;
    }
    return OK;
}

static enum err link_organizations(struct accounts *accounts, struct failure *why)
{
    list_each (link, &accounts->projects) {
        struct project *project = container_of(link, struct project, link);
        project->organization = find_organization(accounts, project->organization_id);
        if (!project->organization)
            return unresolved(project->id, project->organization_id, why);
    }
    list_each (link, &accounts->users) {
        struct user *user = container_of(link, struct user, link);
        user->organization = find_organization(accounts, user->organization_id);
        if (!user->organization)
            return unresolved(user->id, user->organization_id, why);
    }
    return OK;
}

enum err accounts_link(struct accounts *accounts, struct failure *why)
{
    enum err err = link_organizations(accounts, why);
    if (!err)
        err = link_credentials(accounts, why);

    struct account *account = NULL;
    while (!err && (account = accounts_next(accounts, account))) {
        account->project = find_project(accounts, account->project_id);
        if (!account->project)
            err = unresolved(account->id, account->project_id, why);
        else if (!account->secret_key)
            err =
                explain(why, ERR_INVALID, "environment %s has no secret key", account->id);
    }
    return err;
}

/* ---- looking up ---- */

const struct vault *accounts_vault(const struct accounts *accounts)
{
    return accounts->vault;
}

bool accounts_empty(const struct accounts *accounts)
{
    return list_empty(&accounts->organizations) && accounts->by_id.count == 0;
}

struct account *accounts_by_secret_key(struct accounts *accounts, struct slice key)
{
    unsigned char hash[HASH_LEN];
    vault_hash(key, hash);
    struct credential_entry *entry = find_credential(accounts, hash);
    return entry ? entry->account : NULL;
}

struct user *accounts_by_personal_token(struct accounts *accounts, struct slice token)
{
    unsigned char hash[HASH_LEN];
    vault_hash(token, hash);
    struct credential_entry *entry = find_credential(accounts, hash);
    return entry ? entry->user : NULL;
}

struct account *accounts_by_id(struct accounts *accounts, struct slice id)
{
    return table_find(&accounts->by_id, id);
}

struct account *accounts_by_number(struct accounts *accounts, uint32_t number)
{
    return number < accounts->number_count ? accounts->by_number[number] : NULL;
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
        if (account->project == project && account->type == type)
            return account;
    }
    return NULL;
}

bool user_sees(const struct user *user, const struct project *project)
{
    return user->organization == project->organization;
}

struct account *accounts_next(struct accounts *accounts, const struct account *previous)
{
    for (size_t i = previous ? previous->number + 1 : 1; i < accounts->number_count; i++) {
        if (accounts->by_number[i])
            return accounts->by_number[i];
    }
    return NULL;
}

struct user *accounts_first_user(struct accounts *accounts)
{
    return list_empty(&accounts->users)
               ? NULL
               : container_of(accounts->users.next, struct user, link);
}
