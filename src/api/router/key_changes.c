/* key_changes.c - users show, create, rotate and revoke the secret keys of an environment.
 *
 * The gateway keeps keys sealed, because they sign public tokens. So a key can be shown
 * again to users who see its project; the audit log has a line each time. A main key is
 * never without a successor: it is rotated, not revoked. */
#include "api/request/project.h"
#include "api/request/request_log.h"
#include "api/router/credential_write.h"
#include "api/router/credentials.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/vault/secret.h"

enum {
    KEYS_MAX = 20, /* valid ones per environment; a public token is checked with each */
    GRACE_MS = 24 * 60 * 60 * 1000, /* unless another one is given */
};

static int64_t wall_of(const struct api_call *call)
{
    return loop_wall_ms(engine_loop(api_engine(call->api)));
}

/* Finds the environment that has the keys: for a branch, preview. */
static enum err find_account(struct api_call *call, struct account **account)
{
    enum err refused =
        project_find_environment(call, call->params[0], call->params[1], account);
    if (!refused)
        *account = account_of_keys(*account);
    return refused;
}

static struct secret *find_valid(const struct account *account, const char *id,
                                 int64_t now_ms)
{
    struct secret *secret = secret_find(&account->secrets, id);
    return secret && secret->key && secret_is_valid(secret, now_ms) ? secret : NULL;
}

/* Finds a key of the environment that the path names. */
static enum err find_key(struct api_call *call, struct account **account,
                         struct secret **secret)
{
    char id[SECRET_ID_LEN + 1] = "";
    enum err refused = find_account(call, account);
    if (refused)
        return credential_log_refused(call, NULL, call->params[2], refused);
    if (call->params[2].len == SECRET_ID_LEN)
        snprintf(id, sizeof(id), "%.*s", SLICE_ARG(call->params[2]));
    *secret = find_valid(*account, id, wall_of(call));
    if (*secret)
        return OK;
    explain(&call->why, ERR_NOT_FOUND, "Key not found");
    return credential_log_refused(call, *account, call->params[2], ERR_NOT_FOUND);
}

static enum err check_fresh(struct api_call *call, const struct account *account)
{
    enum err refused = api_check_fresh(call);
    return refused ? credential_log_refused(call, account, call->params[2], refused) : OK;
}

static struct credential_write *key_write_create(struct api_call *call,
                                                 struct account *account,
                                                 const struct secret *secret)
{
    struct credential_write *op = credential_write_create(call);
    op->account = account;
    if (secret) {
        secret_show_id(secret, op->id);
        snprintf(op->label, sizeof(op->label), "%s", secret->name ? secret->name : "");
    }
    return op;
}

/* Replies with the clear text. For a repeated request, it is that of the first one. */
static void reply_key(struct credential_write *op)
{
    struct secret *made = find_valid(op->account, op->id, wall_of(op->call));
    struct api_call *call = op->call;
    if (made) {
        api_reply_value(call, 200, json_pack("{s:s, s:s}", "id", op->id, "key", made->key));
        return;
    }
    explain(&call->why, ERR_NOT_FOUND, "Key not found");
    api_reply_error(call, ERR_NOT_FOUND);
}

static enum err check_caller(struct credential_write *op, int64_t now_ms)
{
    enum err refused = credential_check_caller(op, now_ms);
    if (!refused && (op->account->archived ||
                     !user_sees(op->call->identity->user, op->account->project)))
        refused = explain(&op->write.why, ERR_NOT_FOUND, "Project not found");
    return refused;
}

static enum err check_count(struct credential_write *op, int64_t now_ms)
{
    size_t count = secrets_count(&op->account->secrets, now_ms);
    if (count >= KEYS_MAX)
        return explain(&op->write.why, ERR_RULE,
                       "The environment has too many valid keys (%zu, max %d); revoke some",
                       count, KEYS_MAX);
    return OK;
}

/* ---- showing ---- */

enum err key_reveal(struct api_call *call)
{
    struct account *account;
    struct secret *secret;
    char actor[ACTOR_TEXT], id[SECRET_ID_LEN + 1];
    enum err refused = find_key(call, &account, &secret);
    if (refused)
        return refused;
    secret_show_id(secret, id);
    request_log_actor(call, actor);
    log_audit(call->route->path, "by", actor, "key", id, "environment", account->id,
              "result", "ok", NULL);
    api_reply_value(call, 200, json_pack("{s:s, s:s}", "id", id, "key", secret->key));
    return OK;
}

/* ---- making ---- */

static enum err decide_create(struct account_write *write, struct accounts *accounts,
                              struct draft *draft)
{
    struct credential_write *op = container_of(write, struct credential_write, write);
    (void)accounts;
    enum err refused = check_caller(op, draft->now_ms);
    refused = refused ? refused : check_count(op, draft->now_ms);
    if (refused)
        return refused;
    bootstrap_generate_key(op->account->type, op->secret);
    credential_show_id(op->secret, op->id);
    memcpy(op->claim.owner, op->id, sizeof(op->id));
    draft_key(draft, op->account, slice_of(op->label), op->secret,
              op->ttl_ms ? draft->now_ms + op->ttl_ms : 0);
    return OK;
}

enum err key_create(struct api_call *call)
{
    struct account *account;
    json_t *body;
    enum err refused = find_account(call, &account);
    if (refused)
        return credential_log_refused(call, NULL, (struct slice){ 0 }, refused);
    if ((refused = api_read_json(call, &body)))
        return refused;
    struct credential_write *op = key_write_create(call, account, NULL);
    refused = credential_read_label(op, body);
    refused =
        refused ? refused : credential_read_span(call, body, "expiresIn", &op->ttl_ms);
    json_decref(body);
    if (refused) {
        free(op);
        return refused;
    }
    credential_claim(op, "key", account->id);
    credential_write_begin(op, decide_create, reply_key);
    return OK;
}

/* ---- rotating ---- */

static enum err check_rotates(const struct secret *secret, struct failure *why)
{
    if (!secret)
        return explain(why, ERR_NOT_FOUND, "Key not found");
    if (secret->replaced)
        return explain(why, ERR_CONFLICT, "This key was rotated already");
    return OK;
}

static enum err decide_rotate(struct account_write *write, struct accounts *accounts,
                              struct draft *draft)
{
    struct credential_write *op = container_of(write, struct credential_write, write);
    const struct secret *old = find_valid(op->account, op->replaced, draft->now_ms);
    (void)accounts;
    enum err refused = check_caller(op, draft->now_ms);
    refused = refused ? refused : check_rotates(old, &write->why);
    if (!refused && op->grace_ms) /* no limit keeps a leaked key from being replaced */
        refused = check_count(op, draft->now_ms);
    if (refused)
        return refused;
    bootstrap_generate_key(op->account->type, op->secret);
    credential_show_id(op->secret, op->id);
    if (old->name)
        draft_replace_key(draft, old, op->secret, op->grace_ms);
    else
        draft_rotate(draft, op->account, op->secret, op->grace_ms);
    return OK;
}

enum err key_rotate(struct api_call *call)
{
    struct account *account;
    struct secret *secret;
    json_t *body;
    int64_t grace_ms = GRACE_MS;
    enum err refused = api_read_json(call, &body);
    if (refused)
        return refused;
    refused = credential_read_span(call, body, "grace", &grace_ms);
    json_decref(body);
    refused = refused ? refused : find_key(call, &account, &secret);
    refused = refused ? refused : check_rotates(secret, &call->why);
    refused = refused ? refused : check_fresh(call, account);
    if (refused)
        return refused;
    struct credential_write *op = key_write_create(call, account, secret);
    secret_show_id(secret, op->replaced);
    op->grace_ms = grace_ms;
    credential_write_begin(op, decide_rotate, reply_key);
    return OK;
}

/* ---- revoking ---- */

static enum err check_ends(const struct secret *secret, struct failure *why)
{
    if (!secret)
        return explain(why, ERR_NOT_FOUND, "Key not found");
    if (!secret->name && !secret->replaced)
        return explain(why, ERR_RULE,
                       "The main key cannot be revoked: rotate it, with grace \"0\" to end "
                       "it immediately");
    return OK;
}

static enum err decide_revoke(struct account_write *write, struct accounts *accounts,
                              struct draft *draft)
{
    struct credential_write *op = container_of(write, struct credential_write, write);
    const struct secret *secret = find_valid(op->account, op->id, draft->now_ms);
    (void)accounts;
    enum err refused = check_caller(op, draft->now_ms);
    refused = refused ? refused : check_ends(secret, &write->why);
    if (!refused)
        draft_end(draft, secret);
    return refused;
}

static void reply_revoked(struct credential_write *op)
{
    api_reply_json(op->call, 200, SLICE("{}"));
}

enum err key_revoke(struct api_call *call)
{
    struct account *account;
    struct secret *secret;
    enum err refused = find_key(call, &account, &secret);
    refused = refused ? refused : check_ends(secret, &call->why);
    refused = refused ? refused : check_fresh(call, account);
    if (!refused)
        credential_write_begin(key_write_create(call, account, secret), decide_revoke,
                               reply_revoked);
    return refused;
}
