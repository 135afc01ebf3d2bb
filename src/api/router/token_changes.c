/* token_changes.c - users create and revoke their personal access tokens.
 *
 * Only the hash of a token is stored, so it is shown once, in the response that creates it.
 * Users see and revoke only their own tokens. */
#include "accounts/user_tokens.h"
#include "api/router/credential_write.h"
#include "api/router/credentials.h"
#include "base/mem.h"
#include "base/text.h"

/* ---- making ---- */

static enum err decide_create(struct account_write *write, struct accounts *accounts,
                              struct draft *draft)
{
    struct credential_write *op = container_of(write, struct credential_write, write);
    (void)accounts;
    enum err refused = credential_check_caller(op, draft->now_ms);
    if (refused)
        return refused;
    op->ends_at = op->ttl_ms ? draft->now_ms + op->ttl_ms : 0;
    bootstrap_generate_token(op->secret);
    credential_show_id(op->secret, op->id);
    return user_token_draft(draft, op->call->identity->secret, slice_of(op->label),
                            op->secret, &op->ends_at, &write->why);
}

static void reply_token(struct credential_write *op)
{
    char ends_at[TIME_TEXT_LEN + 1];
    json_t *body =
        json_pack("{s:s, s:s, s:s}", "id", op->id, "name", op->label, "token", op->secret);
    if (op->ends_at) {
        text_from_time(op->ends_at, ends_at);
        json_object_set_new(body, "expiresAt", json_string(ends_at));
    }
    api_reply_value(op->call, 200, body);
}

enum err token_create(struct api_call *call)
{
    json_t *body;
    enum err refused = api_check_not_stale(call);
    if (refused)
        return credential_log_refused(call, NULL, (struct slice){ 0 }, refused);
    if ((refused = api_read_json(call, &body)))
        return refused;
    struct credential_write *op = credential_write_create(call);
    refused = credential_read_label(op, body);
    refused =
        refused ? refused : credential_read_span(call, body, "expiresIn", &op->ttl_ms);
    json_decref(body);
    if (refused)
        free(op);
    else
        credential_write_begin(op, decide_create, reply_token);
    return refused;
}

/* ---- revoking ---- */

static struct secret *find_own(const struct api_call *call, const char *id, int64_t now_ms)
{
    struct secret *secret = secret_find(&call->identity->user->secrets, id);
    return secret && secret_is_valid(secret, now_ms) ? secret : NULL;
}

static enum err decide_revoke(struct account_write *write, struct accounts *accounts,
                              struct draft *draft)
{
    struct credential_write *op = container_of(write, struct credential_write, write);
    const struct secret *secret = find_own(op->call, op->id, draft->now_ms);
    (void)accounts;
    enum err refused = credential_check_caller(op, draft->now_ms);
    if (refused)
        return refused;
    if (!secret)
        return explain(&write->why, ERR_NOT_FOUND, "Token not found");
    draft_revoke_token(draft, secret);
    return OK;
}

static void reply_revoked(struct credential_write *op)
{
    api_reply_json(op->call, 200, SLICE("{}"));
}

/* A caller may always revoke its own token: this is how a page signs out. */
enum err token_revoke(struct api_call *call)
{
    char id[SECRET_ID_LEN + 1] = "";
    int64_t now_ms = loop_wall_ms(engine_loop(api_engine(call->api)));
    if (call->params[0].len == SECRET_ID_LEN)
        snprintf(id, sizeof(id), "%.*s", SLICE_ARG(call->params[0]));
    const struct secret *secret = find_own(call, id, now_ms);
    enum err refused = OK;
    if (!secret)
        refused = explain(&call->why, ERR_NOT_FOUND, "Token not found");
    else if (secret != call->identity->secret)
        refused = api_check_fresh(call);
    if (refused)
        return credential_log_refused(call, NULL, call->params[0], refused);
    struct credential_write *op = credential_write_create(call);
    secret_show_id(secret, op->id);
    snprintf(op->label, sizeof(op->label), "%s", secret->name ? secret->name : "");
    credential_write_begin(op, decide_revoke, reply_revoked);
    return OK;
}
