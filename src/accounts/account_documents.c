/* account_documents.c - reads the documents of accounts into memory.
 *
 *   DOC_ORGANIZATION  <id>        {id, name, slug}
 *   DOC_PROJECT       <id>        {id, ref, name, slug, organization}
 *                     when deleted {id, ref, organization, deletedAt}
 *   DOC_USER          <id>        {id, name, email, organization}
 *   DOC_ENVIRONMENT   <id>        {number, id, type, project}
 *                     of a branch {…, parent, branch, archivedAt?}
 *   DOC_KEY           <id>:root   {environment, sealed, name?, endsAt?, replaced?, by?}
 *                     <id>:<key>
 *   DOC_TOKEN         <hash>      {hash, user, name, endsAt?, signIn?, by?}
 *                     when lasting {…, usedAt, publicKey | code and codeBefore, proofEndsAt?}
 *   DOC_WORKER_TOKEN  <hash>      {hash, project, serves, name}
 *
 * The secret key in sealed can be unsealed only under the name of its document. All have
 * createdAt too, but for the oldest ones. When a document is written again, only the
 * members that can change are read: name, archivedAt, deletedAt, endsAt, replaced and by.
 * The name of a key is its label; the main key has none. */
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdio.h>

#include "accounts/accounts_state.h"
#include "accounts/branch.h"
#include "base/json/json_tree.h"
#include "base/mem.h"
#include "base/vault/secret.h"

/* Copies a string member that is not empty and shorter than size. */
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

static int64_t take_time(const json_t *body, const char *name)
{
    return json_integer_value(json_object_get(body, name));
}

/* A gateway that was away may find something removed that it knows as open: then the time when
 * it ended is unknown, but not 0. */
static int64_t take_end_time(const json_t *body, const char *name)
{
    int64_t time = take_time(body, name);
    return time ? time : 1;
}

static enum err damaged(const struct document *document, struct failure *why)
{
    return explain(why, ERR_INVALID, "account document \"%.*s\" is damaged",
                   SLICE_ARG(bytes_slice(document->name)));
}

static bool add_organization(struct accounts *accounts, const struct document *document,
                             const json_t *body)
{
    struct organization read = { 0 };
    if (!take_text(body, "id", read.id, sizeof(read.id)) ||
        accounts_find_organization(accounts, read.id))
        return false;
    struct organization *organization = mem_new(struct organization);
    *organization = read;
    organization->version = document->version;
    organization->name = copy_text(body, "name");
    organization->slug = copy_text(body, "slug");
    organization->created_at = take_time(body, "createdAt");
    list_append(&accounts->organizations, &organization->link);
    return true;
}

static bool add_project(struct accounts *accounts, const struct document *document,
                        const json_t *body)
{
    struct project read = { 0 };
    if (!take_text(body, "id", read.id, sizeof(read.id)) ||
        !take_text(body, "ref", read.ref, sizeof(read.ref)) ||
        !take_text(body, "organization", read.organization_id, ID_MAX) ||
        accounts_find_project(accounts, read.id))
        return false;
    read.deleted_at = take_time(body, "deletedAt");
    if (!read.deleted_at && accounts_project(accounts, slice_of(read.ref)))
        return false;
    struct project *project = mem_new(struct project);
    *project = read;
    project->version = document->version;
    project->name = copy_text(body, "name");
    project->slug = copy_text(body, "slug");
    project->created_at = take_time(body, "createdAt");
    project->bodies.limit = BODY_QUOTA;
    project->shared.answers.limit = ANSWER_QUOTA;
    project->branches.answers.limit = ANSWER_QUOTA / BRANCHES_PART;
    list_init(&project->secrets);
    list_append(project->deleted_at ? &accounts->deleted : &accounts->projects,
                &project->link);
    return true;
}

static bool add_user(struct accounts *accounts, const struct document *document,
                     const json_t *body)
{
    struct user read = { 0 };
    if (!take_text(body, "id", read.id, sizeof(read.id)) ||
        !take_text(body, "organization", read.organization_id, ID_MAX) ||
        accounts_find_user(accounts, read.id))
        return false;
    struct user *user = mem_new(struct user);
    *user = read;
    user->version = document->version;
    user->name = copy_text(body, "name");
    user->email = copy_text(body, "email");
    user->created_at = take_time(body, "createdAt");
    user->bodies.limit = BODY_QUOTA;
    user->answers.limit = ANSWER_QUOTA;
    list_init(&user->secrets);
    list_init(&user->others);
    list_append(&accounts->users, &user->link);
    return true;
}

/* ---- environments ---- */

/* Reads what only a branch has: a parent, a name and perhaps archivedAt. */
static bool read_branch(struct accounts *accounts, const json_t *body, struct account *read,
                        struct slice *name)
{
    const json_t *branch = json_object_get(body, "branch");
    *name = (struct slice){ json_string_value(branch), json_string_length(branch) };
    read->archived = json_object_get(body, "archivedAt") != NULL;
    if (!take_text(body, "parent", read->parent_id, ID_MAX))
        return !json_object_get(body, "parent") && !branch;
    if (read->type != ENVIRONMENT_PREVIEW || !branch_name_is_right(*name))
        return false;
    struct account parent = { 0 };
    memcpy(parent.id, read->parent_id, ID_MAX);
    return read->archived || !accounts_branch(accounts, &parent, *name);
}

static bool add_environment(struct accounts *accounts, const struct document *document,
                            const json_t *body)
{
    struct account read = { 0 };
    struct slice branch;
    char type[16];
    json_int_t number = json_integer_value(json_object_get(body, "number"));
    if (number < 1 || number > ENVIRONMENT_NUMBER_MAX ||
        !take_text(body, "id", read.id, sizeof(read.id)) ||
        !take_text(body, "type", type, sizeof(type)) ||
        environment_type_from_slug(slice_of(type), &read.type) ||
        !take_text(body, "project", read.project_id, ID_MAX) ||
        !read_branch(accounts, body, &read, &branch) ||
        accounts_by_id(accounts, slice_of(read.id)) ||
        accounts_by_number(accounts, (uint32_t)number))
        return false;
    struct account *account = mem_new(struct account);
    *account = read;
    account->number = (uint32_t)number;
    account->created_at = take_time(body, "createdAt");
    account->archived_at = take_time(body, "archivedAt");
    account->version = document->version;
    list_init(&account->secrets);
    *slots_at(&accounts->by_number, account->number) = account;
    table_insert(&accounts->by_id, account);
    if (account->parent_id[0] && !account->archived) {
        struct buf key = { 0 };
        buf_print(&key, "%s:%.*s", account->parent_id, SLICE_ARG(branch));
        account->branch = mem_text(branch);
        account->branch_key = mem_text(buf_slice(&key));
        buf_finish(&key);
        table_insert(&accounts->branches, account);
    }
    return true;
}

static bool change_environment(struct accounts *accounts, const struct document *document,
                               const json_t *body)
{
    struct account *account = accounts_by_id(accounts, bytes_slice(document->name));
    if (!account)
        return false;
    account->version = document->version;
    account->forgotten = !body;
    if (!account->branch || account->archived ||
        (body && !json_object_get(body, "archivedAt")))
        return true;
    table_remove(&accounts->branches, slice_of(account->branch_key));
    account->archived = true;
    account->archived_at = take_end_time(body, "archivedAt");
    accounts->endings++;
    return true;
}

/* ---- keys and tokens ---- */

/* Takes ownership of key. Returns NULL if there is a secret with that hash already. */
static struct secret *add_secret(struct accounts *accounts,
                                 const unsigned char hash[HASH_LEN], const char *owner_id,
                                 const struct document *document, char *key)
{
    if (accounts_find_secret(accounts, hash)) {
        secret_forget(key);
        return NULL;
    }
    struct secret *secret = mem_new(struct secret);
    secret->refs = 1;
    memcpy(secret->hash, hash, HASH_LEN);
    snprintf(secret->owner_id, sizeof(secret->owner_id), "%s", owner_id);
    secret->key = key;
    secret->document = mem_text(bytes_slice(document->name));
    secret->version = document->version;
    list_init(&secret->of_owner);
    table_insert(&accounts->secrets, secret);
    return secret;
}

/* The main key that was replaced has an end; older documents say no more. */
static bool is_replaced(const struct secret *secret, const json_t *body)
{
    return json_is_true(json_object_get(body, "replaced")) ||
           (!secret->name && secret->ends_at);
}

/* Reads what rotations change of a key. */
static void take_end(struct secret *secret, const json_t *body)
{
    secret->ends_at = take_time(body, "endsAt");
    secret->replaced = is_replaced(secret, body);
    free(secret->by);
    secret->by = json_object_get(body, "by") ? copy_text(body, "by") : NULL;
}

/* A use since the document was written is newer. */
static void take_use(struct secret *secret, const json_t *body)
{
    secret->stored_use = take_time(body, "usedAt");
    if (secret->used_at < secret->stored_use)
        secret->used_at = secret->stored_use;
}

static enum err add_key(struct accounts *accounts, const json_t *body,
                        const struct document *document, struct failure *why)
{
    char owner_id[ID_MAX];
    unsigned char hash[HASH_LEN];
    struct buf key = { 0 };
    const char *sealed = json_string_value(json_object_get(body, "sealed"));
    if (!sealed || !take_text(body, "environment", owner_id, sizeof(owner_id)))
        return damaged(document, why);
    if (vault_unseal(accounts->vault, bytes_slice(document->name), slice_of(sealed),
                     &key)) {
        char what[ID_MAX + 40];
        buf_finish(&key);
        snprintf(what, sizeof(what), "the secret key of environment %s", owner_id);
        return vault_explain(accounts->vault, slice_of(sealed), what, why);
    }
    vault_hash(buf_slice(&key), hash);
    char *text = mem_text(buf_slice(&key));
    OPENSSL_cleanse(key.ptr, key.len);
    buf_finish(&key);
    struct secret *secret = add_secret(accounts, hash, owner_id, document, text);
    if (!secret)
        return damaged(document, why);
    if (json_object_get(body, "name"))
        secret->name = copy_text(body, "name");
    secret->created_at = take_time(body, "createdAt");
    take_end(secret, body);
    take_use(secret, body);
    return OK;
}

static bool take_hash(const json_t *body, const char *name, unsigned char hash[HASH_LEN])
{
    const char *text = json_string_value(json_object_get(body, name));
    return text && accounts_read_hash(text, hash);
}

static bool take_public_key(const json_t *value, struct lasting *lasting)
{
    unsigned char bytes[LASTING_KEY_LEN + 3];
    struct slice text = { json_string_value(value), json_string_length(value) };
    size_t len = 0;
    lasting->has_key = text.len == (4 * LASTING_KEY_LEN + 2) / 3 &&
                       !text_from_base64url(text, bytes, &len) && len == LASTING_KEY_LEN;
    if (lasting->has_key)
        memcpy(lasting->key, bytes, LASTING_KEY_LEN);
    return lasting->has_key;
}

/* Reads what a lasting sign-in has beyond other sign-ins. Its next code is in memory only,
 * and outdated from now on. */
static bool take_lasting(struct secret *secret, const json_t *body)
{
    const json_t *key = json_object_get(body, "publicKey");
    if (!key && !json_object_get(body, "code"))
        return !secret->lasting;
    struct lasting read = { .used_at = take_time(body, "usedAt") };
    if (!(key ? take_public_key(key, &read)
              : take_hash(body, "code", read.current) &&
                    take_hash(body, "codeBefore", read.before)))
        return false;
    if (!secret->lasting)
        secret->lasting = mem_new(struct lasting);
    secret_forget(secret->lasting->next);
    memcpy(read.challenge, secret->lasting->challenge, sizeof(read.challenge));
    *secret->lasting = read;
    secret->proof_ends_at = take_time(body, "proofEndsAt");
    return true;
}

/* owner: the member that has the id of the user or, for a worker token, of the project. */
static bool add_token(struct accounts *accounts, const json_t *body,
                      const struct document *document, const char *owner)
{
    char owner_id[ID_MAX], text[2 * HASH_LEN + 1];
    unsigned char hash[HASH_LEN];
    struct secret *secret = NULL;
    if (take_text(body, "hash", text, sizeof(text)) &&
        take_text(body, owner, owner_id, sizeof(owner_id)) &&
        accounts_read_hash(text, hash))
        secret = add_secret(accounts, hash, owner_id, document, NULL);
    if (!secret)
        return false;
    secret->name = copy_text(body, "name");
    secret->created_at = take_time(body, "createdAt");
    secret->ends_at = take_time(body, "endsAt");
    secret->serves = (unsigned)json_integer_value(json_object_get(body, "serves"));
    secret->signed_in = json_is_true(json_object_get(body, "signIn"));
    if (json_object_get(body, "by"))
        secret->by = copy_text(body, "by");
    take_use(secret, body);
    return take_lasting(secret, body);
}

static bool add_worker_token(struct accounts *accounts, const json_t *body,
                             const struct document *document)
{
    json_int_t serves = json_integer_value(json_object_get(body, "serves"));
    return serves > 0 && !(serves & ~(json_int_t)ENVIRONMENTS_DEPLOYED) &&
           add_token(accounts, body, document, "project");
}

static struct secret *find_by_document(struct accounts *accounts, struct slice name)
{
    size_t at = 0;
    struct secret *secret;
    while ((secret = table_next(&accounts->secrets, &at)))
        if (slice_is(name, secret->document))
            return secret;
    return NULL;
}

void accounts_renew_key(struct accounts *accounts, const struct document *before)
{
    struct secret *secret = find_by_document(accounts, bytes_slice(before->name));
    if (secret)
        secret->version = before->version + 1;
}

/* Returns true if it ends earlier than before, so that connections may have to end. A use of
 * a lasting sign-in moves its end away. */
static bool ends_earlier(const struct secret *secret, int64_t before)
{
    return secret->ends_at && (!before || secret->ends_at < before);
}

/* Applies a replaced key, a use that is remembered or, if body is NULL, the removal of a key
 * or token. */
static bool change_secret(struct accounts *accounts, const struct document *document,
                          const json_t *body)
{
    struct secret *secret = find_by_document(accounts, bytes_slice(document->name));
    if (!secret)
        return false;
    int64_t before = secret->ends_at;
    secret->version = document->version;
    if (!body) {
        accounts_end_secret(accounts, secret);
        return true;
    }
    take_end(secret, body);
    take_use(secret, body);
    if (ends_earlier(secret, before))
        accounts->endings++;
    return take_lasting(secret, body);
}

/* ---- documents that were written again or removed ---- */

static void take_name(char **name, uint32_t *version, const struct document *document,
                      const json_t *body)
{
    free(*name);
    *name = copy_text(body, "name");
    *version = document->version;
}

static bool change_organization(struct accounts *accounts, const struct document *document,
                                const json_t *body)
{
    struct organization *found =
        accounts_organization(accounts, bytes_slice(document->name));
    if (found && body) {
        take_name(&found->name, &found->version, document, body);
    } else if (found) {
        list_remove(&found->link);
        list_append(&accounts->closed, &found->link);
    }
    return found;
}

/* Its environments and credentials are ended by accounts_link. */
static void delete_project(struct accounts *accounts, struct project *project,
                           const struct document *document, const json_t *body)
{
    project->version = document->version;
    project->forgotten = !body;
    if (project->deleted_at)
        return;
    project->deleted_at = take_end_time(body, "deletedAt");
    list_remove(&project->link);
    list_append(&accounts->deleted, &project->link);
    accounts->endings++;
}

static bool change_project(struct accounts *accounts, const struct document *document,
                           const json_t *body)
{
    char id[ID_MAX];
    snprintf(id, sizeof(id), "%.*s", SLICE_ARG(bytes_slice(document->name)));
    struct project *found = accounts_find_project(accounts, id);
    if (found && (!body || json_object_get(body, "deletedAt")))
        delete_project(accounts, found, document, body);
    else if (found)
        take_name(&found->name, &found->version, document, body);
    return found;
}

static bool change_user(struct accounts *accounts, const struct document *document,
                        const json_t *body)
{
    struct user *found = accounts_user(accounts, bytes_slice(document->name));
    if (!found)
        return false;
    if (body) {
        take_name(&found->name, &found->version, document, body);
        return true;
    }
    found->organization = NULL;
    list_remove(&found->others);
    list_remove(&found->link);
    list_append(&accounts->gone, &found->link);
    accounts->endings++;
    return true;
}

static bool change_body(struct accounts *accounts, const struct document *document,
                        const json_t *body)
{
    switch (document->kind) {
    case DOC_ENVIRONMENT: return change_environment(accounts, document, body);
    case DOC_ORGANIZATION: return change_organization(accounts, document, body);
    case DOC_PROJECT: return change_project(accounts, document, body);
    case DOC_USER: return change_user(accounts, document, body);
    default: return change_secret(accounts, document, body);
    }
}

/* ---- any document ---- */

static enum err add_body(struct accounts *accounts, const struct document *document,
                         const json_t *body, struct failure *why)
{
    bool added = false;
    switch (document->kind) {
    case DOC_ORGANIZATION: added = add_organization(accounts, document, body); break;
    case DOC_PROJECT: added = add_project(accounts, document, body); break;
    case DOC_USER: added = add_user(accounts, document, body); break;
    case DOC_ENVIRONMENT: added = add_environment(accounts, document, body); break;
    case DOC_TOKEN: added = add_token(accounts, body, document, "user"); break;
    case DOC_WORKER_TOKEN: added = add_worker_token(accounts, body, document); break;
    case DOC_KEY: return add_key(accounts, body, document, why);
    default: break;
    }
    return added ? OK : damaged(document, why);
}

static json_t *read_body(const struct document *document)
{
    struct slice text = bytes_slice(document->body);
    return json_tree_read(text, TREE_ONE_OF_EACH | TREE_NO_ZERO, NULL);
}

enum err accounts_add(struct accounts *accounts, const struct document *document,
                      struct failure *why)
{
    json_t *body = read_body(document);
    enum err err = body ? add_body(accounts, document, body, why) : damaged(document, why);
    json_decref(body);
    return err;
}

enum err accounts_apply(struct accounts *accounts, const struct change *change,
                        struct failure *why)
{
    const struct document *document = &change->document;
    if (!change->expected)
        return accounts_add(accounts, document, why);
    json_t *body = document->body ? read_body(document) : NULL;
    bool known = change_body(accounts, document, body);
    json_decref(body);
    return known ? OK : damaged(document, why);
}
