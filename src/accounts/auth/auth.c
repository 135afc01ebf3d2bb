/* auth.c - turns the Authorization header into an identity.
 *
 * Verifying a token costs a MAC and two JSON parses; finding a known one costs a hash. So
 * accepted credentials are cached by hash, up to REMEMBERED_MAX and REMEMBERED_BYTES; the
 * oldest are dropped first. Rejected credentials are not cached. */
#include "accounts/auth/auth.h"

#include <assert.h>
#include <jansson.h>
#include <strings.h>

#include "accounts/auth/jwt.h"
#include "accounts/auth/scopes.h"
#include "base/json/json_tree.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/table.h"
#include "base/vault/vault.h"

enum {
    REMEMBERED_MAX = 10000,
    REMEMBERED_BYTES = 16 << 20, /* a token of 16 KiB can have thousands of scopes */
    ALLOCATION = 32,             /* most bytes of a small allocation */
    SWEEP_EACH = 4,
};

struct auth_build {
    unsigned char hash[HASH_LEN];
    struct account *account;
    char deployment[ID_MAX];
};

struct auth {
    struct accounts *accounts;
    struct table builds;      /* struct auth_build, by hash of the key */
    struct table remembered;  /* struct identity; each entry holds a reference */
    struct list oldest_first; /* the same identities */
    size_t bytes;             /* sum of their costs */
};

static struct slice identity_key(const void *value)
{
    const struct identity *identity = value;
    return (struct slice){ (const char *)identity->hash, HASH_LEN };
}

static struct slice build_key(const void *value)
{
    const struct auth_build *build = value;
    return (struct slice){ (const char *)build->hash, HASH_LEN };
}

struct auth *auth_create(struct accounts *accounts)
{
    struct auth *auth = mem_new(struct auth);
    auth->accounts = accounts;
    table_init(&auth->builds, build_key);
    table_init(&auth->remembered, identity_key);
    list_init(&auth->oldest_first);
    return auth;
}

static void forget(struct auth *auth, struct identity *identity)
{
    table_remove(&auth->remembered, identity_key(identity));
    list_remove(&identity->link);
    auth->bytes -= identity->cost;
    identity_unref(identity);
}

void auth_destroy(struct auth *auth)
{
    if (!auth)
        return;
    while (!list_empty(&auth->oldest_first))
        forget(auth, container_of(auth->oldest_first.next, struct identity, link));
    table_finish(&auth->remembered);
    size_t at = 0;
    for (void *build; (build = table_next(&auth->builds, &at));)
        free(build);
    table_finish(&auth->builds);
    free(auth);
}

/* ---- keys of builds ---- */

void auth_admit_build(struct auth *auth, const unsigned char hash[HASH_LEN],
                      struct account *account, const char *deployment)
{
    struct auth_build *build = mem_new(struct auth_build);
    memcpy(build->hash, hash, HASH_LEN);
    build->account = account;
    snprintf(build->deployment, sizeof(build->deployment), "%s", deployment);
    table_insert(&auth->builds, build);
}

void auth_dismiss_build(struct auth *auth, const unsigned char hash[HASH_LEN])
{
    free(table_remove(&auth->builds, (struct slice){ (const char *)hash, HASH_LEN }));
}

/* ---- identities ---- */

static struct identity *identity_create(enum credential kind, const unsigned char *hash)
{
    struct identity *identity = mem_new(struct identity);
    identity->refs = 1;
    identity->kind = kind;
    memcpy(identity->hash, hash, HASH_LEN);
    list_init(&identity->link);
    return identity;
}

struct identity *identity_ref(struct identity *identity)
{
    identity->refs++;
    return identity;
}

static void free_texts(char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void identity_unref(struct identity *identity)
{
    if (!identity)
        return;
    assert(identity->refs > 0);
    if (--identity->refs > 0)
        return;
    secret_unref(identity->secret);
    secret_unref(identity->granted_by);
    free(identity->subject);
    free_texts(identity->scopes, identity->scope_count);
    free_texts(identity->skip_columns, identity->skip_count);
    free(identity);
}

struct identity *identity_on_branch(const struct identity *identity, struct account *branch)
{
    struct identity *copy = identity_create(identity->kind, identity->hash);
    copy->secret = secret_ref(identity->secret);
    copy->account = branch;
    return copy;
}

const char identity_ended_reason[] = "the credential was revoked";

/* Returns true also for a token without a grant. */
static bool grant_holds(const struct identity *identity, int64_t now_ms)
{
    const struct secret *grant = identity->granted_by;
    return !grant || (secret_is_valid(grant, now_ms) &&
                      user_sees(grant->user, identity->account->project));
}

bool identity_has_ended(const struct identity *identity, int64_t now_ms)
{
    return !secret_is_valid(identity->secret, now_ms) || !grant_holds(identity, now_ms) ||
           (identity->account && identity->account->archived);
}

bool identity_is_valid(const struct identity *identity, int64_t now_ms)
{
    return (!identity->expires_at || now_ms < identity->expires_at) &&
           !identity_has_ended(identity, now_ms);
}

static const char *end_reason(const struct identity *identity, int64_t now_ms)
{
    if (!identity_has_ended(identity, now_ms))
        return "it has expired";
    if (identity->account && identity->account->archived)
        return "its environment was archived";
    if (!grant_holds(identity, now_ms))
        return "the personal token that requested it has ended";
    return identity->secret->ended ? "it or the key that signed it was revoked"
                                   : "its key was replaced a while ago";
}

void identity_log_end(const struct identity *identity, const char *connection,
                      int64_t now_ms)
{
    log_decision("credential ended", identity->account ? identity->account->id : NULL, NULL,
                 end_reason(identity, now_ms), "connection", connection, NULL);
}

bool identity_may(const struct identity *identity, const char *action, const char *type,
                  struct slice id)
{
    if (identity->kind == CREDENTIAL_SECRET_KEY)
        return true;
    if (identity->kind != CREDENTIAL_PUBLIC_TOKEN)
        return false;
    bool triggers = identity->granted_by && strcmp(type, "tasks") == 0 &&
                    (strcmp(action, "trigger") == 0 || strcmp(action, "batchTrigger") == 0);
    for (size_t i = 0; i < identity->scope_count; i++) {
        if (scope_grants(slice_of(identity->scopes[i]), action, type, id))
            return true;
    }
    return triggers && identity_may(identity, "write", type, id);
}

bool identity_is_for_user(const struct identity *identity)
{
    return identity->granted_by && !identity->one_time && !identity->skip_count;
}

bool identity_may_some(const struct identity *identity, const char *action,
                       const char *type)
{
    if (identity->kind == CREDENTIAL_SECRET_KEY)
        return true;
    for (size_t i = 0; i < identity->scope_count; i++) {
        if (scope_grants_some(slice_of(identity->scopes[i]), action, type))
            return true;
    }
    return false;
}

/* ---- identifying ---- */

static bool is_full(const struct auth *auth)
{
    return auth->remembered.count >= REMEMBERED_MAX || auth->bytes > REMEMBERED_BYTES;
}

static size_t texts_cost(char *const *texts, size_t count)
{
    size_t cost = count * (sizeof(char *) + ALLOCATION);
    for (size_t i = 0; i < count; i++)
        cost += strlen(texts[i]);
    return cost;
}

static void remember(struct auth *auth, struct identity *identity, int64_t now_ms)
{
    identity->cost = sizeof(*identity) +
                     texts_cost(identity->scopes, identity->scope_count) +
                     texts_cost(identity->skip_columns, identity->skip_count);
    auth->bytes += identity->cost;
    for (int i = 0; !list_empty(&auth->oldest_first); i++) {
        struct identity *oldest =
            container_of(auth->oldest_first.next, struct identity, link);
        if (!is_full(auth) && (i >= SWEEP_EACH || identity_is_valid(oldest, now_ms)))
            break;
        forget(auth, oldest);
    }
    table_insert(&auth->remembered, identity_ref(identity));
    list_append(&auth->oldest_first, &identity->link);
}

static struct identity *recall(struct auth *auth, const unsigned char *hash, int64_t now_ms)
{
    struct slice key = { (const char *)hash, HASH_LEN };
    struct identity *identity = table_find(&auth->remembered, key);
    if (!identity)
        return NULL;
    if (!identity_is_valid(identity, now_ms)) {
        forget(auth, identity);
        return NULL;
    }
    return identity_ref(identity);
}

/* Copies the strings of an array and skips anything else. */
static char **copy_texts(const json_t *array, size_t *count)
{
    size_t i;
    json_t *one;
    char **texts = mem_new_array(char *, json_array_size(array));
    *count = 0;
    json_array_foreach(array, i, one)
    {
        if (json_is_string(one))
            texts[(*count)++] = mem_text(slice_of(json_string_value(one)));
    }
    return texts;
}

static void take_claims(struct identity *identity, const json_t *claims)
{
    static const double last_s = 1e15;
    const json_t *act = json_object_get(json_object_get(claims, "act"), "sub");
    const json_t *sub = json_is_string(act) ? act : json_object_get(claims, "sub");
    const json_t *realtime = json_object_get(claims, "realtime");
    double expires_s = json_number_value(json_object_get(claims, "exp"));

    identity->expires_at = 1000 * (int64_t)(expires_s < last_s ? expires_s : last_s);
    identity->subject = mem_text(slice_of(json_string_value(sub)));
    identity->one_time = json_is_true(json_object_get(claims, "otu"));
    identity->scopes =
        copy_texts(json_object_get(claims, "scopes"), &identity->scope_count);
    identity->skip_columns =
        copy_texts(json_object_get(realtime, "skipColumns"), &identity->skip_count);
}

/* Verifies a token with each valid key of the environment.
 *
 * A replaced key is valid until its grace period ends. */
static enum err verify(struct account *account, struct slice token, int64_t now_ms,
                       struct buf *payload, struct secret **signer, struct failure *why)
{
    explain(why, ERR_UNAUTHORIZED, "its environment has no valid key");
    list_each (link, &account_of_keys(account)->secrets) {
        struct secret *secret = container_of(link, struct secret, of_owner);
        if (secret_is_valid(secret, now_ms) &&
            !jwt_verify(token, slice_of(secret->key), now_ms, payload, why)) {
            *signer = secret_ref(secret);
            return OK;
        }
    }
    return why->code;
}

/* Finds the personal token that the act claim names, if there is one. */
static enum err find_grant(struct auth *auth, const json_t *claims, int64_t now_ms,
                           struct identity *identity, struct failure *why)
{
    const json_t *act = json_object_get(claims, "act");
    const char *id = json_string_value(json_object_get(act, "pat"));
    const char *user_id = json_string_value(json_object_get(act, "sub"));
    const struct user *user =
        user_id ? accounts_user(auth->accounts, slice_of(user_id)) : NULL;
    if (!id)
        return OK;
    identity->granted_by = secret_ref(user ? secret_find(&user->secrets, id) : NULL);
    if (!identity->granted_by || !grant_holds(identity, now_ms))
        return explain(why, ERR_UNAUTHORIZED,
                       "the personal token that requested it has ended");
    return OK;
}

/* why is for the log; the client learns only that the token is invalid. */
static enum err identify_public(struct auth *auth, struct slice token, const char *subject,
                                int64_t now_ms, struct identity *identity,
                                struct failure *why)
{
    struct buf payload = { 0 };
    identity->account = accounts_by_id(auth->accounts, slice_of(subject));
    if (!identity->account || identity->account->archived)
        return explain(why, ERR_UNAUTHORIZED, "the environment of the token is %s",
                       identity->account ? "archived" : "not known");
    if (verify(identity->account, token, now_ms, &payload, &identity->secret, why))
        return why->code;

    json_t *claims = json_tree_read(buf_slice(&payload), TREE_REALS, NULL);
    assert(claims); /* jwt_verify has parsed it */
    take_claims(identity, claims);
    enum err refused = find_grant(auth, claims, now_ms, identity, why);
    json_decref(claims);
    buf_finish(&payload);
    return refused;
}

static enum err identify_new(struct auth *auth, struct slice text, int64_t now_ms,
                             struct identity *identity, struct failure *why)
{
    char subject[ID_MAX];
    if (jwt_is_public_token(text, subject, sizeof(subject))) {
        identity->kind = CREDENTIAL_PUBLIC_TOKEN;
        return identify_public(auth, text, subject, now_ms, identity, why);
    }
    bool personal = slice_starts(text, "tr_pat_"), worker = slice_starts(text, "tr_wgt_");
    struct secret *secret = accounts_secret(auth->accounts, text, now_ms);
    if (!secret || personal != (secret->user != NULL) ||
        worker != secret_is_of_worker(secret))
        return explain(why, ERR_UNAUTHORIZED, "%s",
                       personal ? "Invalid or Missing PAT: the personal access token is "
                                  "unknown, expired or revoked"
                       : worker ? "Invalid API key: the worker token is unknown, expired "
                                  "or revoked"
                                : "Invalid API key");
    identity->kind = personal ? CREDENTIAL_PERSONAL_TOKEN
                     : worker ? CREDENTIAL_WORKER_TOKEN
                              : CREDENTIAL_SECRET_KEY;
    identity->secret = secret_ref(secret);
    identity->account = secret->account;
    identity->user = secret->user;
    return OK;
}

/* Returns NULL if it is not the key of a build.
 *
 * The identity is valid only while its environment has a valid key. It is not cached, so
 * that it is invalid as soon as the key is dismissed. */
static struct identity *identify_build(struct auth *auth, const unsigned char *hash,
                                       int64_t now_ms)
{
    const struct auth_build *build =
        table_find(&auth->builds, (struct slice){ (const char *)hash, HASH_LEN });
    if (!build || build->account->archived)
        return NULL;
    list_each (link, &account_of_keys(build->account)->secrets) {
        struct secret *secret = container_of(link, struct secret, of_owner);
        if (!secret_is_valid(secret, now_ms))
            continue;
        struct identity *identity = identity_create(CREDENTIAL_BUILD_KEY, hash);
        identity->secret = secret_ref(secret);
        identity->account = build->account;
        memcpy(identity->build, build->deployment, sizeof(identity->build));
        return identity;
    }
    return NULL;
}

static struct slice without_bearer(struct slice header)
{
    static const char scheme[] = "Bearer ";
    size_t len = sizeof(scheme) - 1;
    if (header.len >= len && strncasecmp(header.ptr, scheme, len) == 0)
        header = slice_from(header, len);
    return slice_trim(header);
}

/* identity: what is known so far; NULL: nothing. */
static enum err auth_refuse(const struct identity *identity, const char *client,
                            struct failure *why)
{
    const struct account *account = identity ? identity->account : NULL;
    log_decision("credential refused", account ? account->id : NULL, NULL, why->text,
                 "client", client, NULL);
    if (identity && identity->kind == CREDENTIAL_PUBLIC_TOKEN)
        explain(why, why->code, "Public Access Token is invalid");
    return why->code;
}

static enum err identify(struct auth *auth, struct slice text, const char *client,
                         int64_t now_ms, struct identity **identity, struct failure *why)
{
    unsigned char hash[HASH_LEN];
    vault_hash(text, hash);
    struct identity *found = recall(auth, hash, now_ms);
    found = found ? found : identify_build(auth, hash, now_ms);
    if (!found) {
        found = identity_create(CREDENTIAL_NONE, hash);
        if (identify_new(auth, text, now_ms, found, why)) {
            enum err refused = auth_refuse(found, client, why);
            identity_unref(found);
            return refused;
        }
        remember(auth, found, now_ms);
    }
    struct secret *used = found->granted_by ? found->granted_by : found->secret;
    if (used)
        used->used_at = now_ms;
    *identity = found;
    return OK;
}

enum err auth_identify(struct auth *auth, struct slice header, const char *client,
                       int64_t now_ms, struct identity **identity, struct failure *why)
{
    struct slice text = without_bearer(slice_trim(header));
    if (!header.ptr || !slice_trim(header).len)
        explain(why, ERR_UNAUTHORIZED, "No authorization header provided");
    else if (!text.len || text.len > JWT_TEXT_MAX)
        explain(why, ERR_UNAUTHORIZED, "Invalid API key");
    else
        return identify(auth, text, client, now_ms, identity, why);
    return auth_refuse(NULL, client, why);
}

/* ---- signing ---- */

static void add_texts(struct buf *out, const char *const *texts, size_t count)
{
    buf_add_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_json(out, slice_of(texts[i]));
    }
    buf_add_char(out, ']');
}

/* Adds the caller's grant, so that the new token ends with the same personal token. */
static void add_grant(struct buf *claims, const struct secret *grant)
{
    char id[SECRET_ID_LEN + 1];
    secret_show_id(grant, id);
    buf_print(claims, ",\"act\":{\"sub\":\"%s\",\"pat\":\"%s\"}", grant->user->id, id);
}

struct slice identity_signing_key(const struct identity *identity,
                                  const struct account *account)
{
    const struct secret *own = identity->secret;
    return slice_of(own && own->key ? own->key : account->secret_key);
}

/* Ends the claims, and signs them. */
static void end_claims(struct buf *claims, int64_t now_ms, int64_t ttl_ms, struct slice key,
                       struct buf *out)
{
    buf_add_text(claims, ",\"iat\":");
    buf_add_number(claims, now_ms / 1000);
    buf_add_text(claims, ",\"iss\":\"https://id.trigger.dev\","
                         "\"aud\":\"https://api.trigger.dev\",\"exp\":");
    buf_add_number(claims, (now_ms + ttl_ms) / 1000);
    buf_add_char(claims, '}');
    jwt_sign(buf_slice(claims), key, out);
    buf_finish(claims);
}

static void begin_claims(struct buf *claims, const struct account *account,
                         const char *const *scopes, size_t count)
{
    buf_add_text(claims, "{\"sub\":\"");
    buf_add_text(claims, account->id);
    buf_add_text(claims, "\",\"pub\":true,\"scopes\":");
    add_texts(claims, scopes, count);
}

/* The scopes are in the order of the official SDK: given ones before added ones. */
void auth_sign_for(const struct identity *caller, const char *const *scopes, size_t count,
                   int64_t now_ms, int64_t ttl_ms, struct buf *out)
{
    struct buf claims = { 0 };
    begin_claims(&claims, caller->account, scopes, count);
    if (caller->skip_count) {
        buf_add_text(&claims, ",\"realtime\":{\"skipColumns\":");
        add_texts(&claims, (const char *const *)caller->skip_columns, caller->skip_count);
        buf_add_char(&claims, '}');
    }
    if (caller->granted_by)
        add_grant(&claims, caller->granted_by);
    end_claims(&claims, now_ms, ttl_ms, identity_signing_key(caller, caller->account), out);
}

void auth_sign_for_user(const struct secret *grant, const struct account *account,
                        int64_t now_ms, int64_t ttl_ms, struct buf *out)
{
    static const char *const scopes[] = { "admin" };
    struct buf claims = { 0 };
    begin_claims(&claims, account, scopes, 1);
    add_grant(&claims, grant);
    end_claims(&claims, now_ms, ttl_ms, slice_of(account->secret_key), out);
}
