/* credential_write.c - runs the writes on keys and tokens, and audits them. */
#include "api/router/credential_write.h"

#include <ctype.h>

#include "api/request/request_log.h"
#include "api/request/route.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/vault/secret.h"

enum { SPAN_DAYS_MAX = 365, DAY_MS = 24 * 60 * 60 * 1000 };

struct credential_write *credential_write_create(struct api_call *call)
{
    struct credential_write *op = mem_new(struct credential_write);
    op->call = call;
    return op;
}

static void destroy(struct credential_write *op)
{
    bytes_unref(op->claim.key);
    secret_wipe(op, sizeof(*op));
    free(op);
}

/* A path may name anything, and only ids are logged. */
static bool is_id(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!isxdigit((unsigned char)text.ptr[i]))
            return false;
    return text.len == SECRET_ID_LEN;
}

enum err credential_log_refused(struct api_call *call, const struct account *account,
                                struct slice id, enum err refused)
{
    char actor[ACTOR_TEXT], shown[SECRET_ID_LEN + 1] = "";
    if (is_id(id))
        snprintf(shown, sizeof(shown), "%.*s", SLICE_ARG(id));
    request_log_actor(call, actor);
    log_audit(call->route->path, "by", actor, "id", shown, "result", call->why.text,
              account ? "environment" : NULL, account ? account->id : NULL, NULL);
    return refused;
}

/* Names the key that the first request created, which may have had another label. */
static void take_first(struct credential_write *op)
{
    snprintf(op->id, sizeof(op->id), "%.*s", SECRET_ID_LEN, op->claim.owner);
    const struct secret *made = secret_find(&op->account->secrets, op->id);
    snprintf(op->label, sizeof(op->label), "%s", made && made->name ? made->name : "");
}

static void audit(const struct credential_write *op, enum err status)
{
    const struct api_call *call = op->call;
    const char *ok = op->claim.taken ? "repeated" : "ok";
    bool replaces = *op->replaced && !status;
    char actor[ACTOR_TEXT];
    request_log_actor(call, actor);
    log_audit(call->route->path, "by", actor, op->account ? "key" : "token",
              *op->replaced ? op->replaced : op->id, "name", op->label, "result",
              status ? call->why.text : ok, op->account ? "environment" : NULL,
              op->account ? op->account->id : NULL, replaces ? "replacement" : NULL, op->id,
              NULL);
}

static void on_written(struct account_write *write, enum err status)
{
    struct credential_write *op = container_of(write, struct credential_write, write);
    struct api_call *call = op->call;
    if (op->claim.taken) {
        status = OK;
        take_first(op);
    }
    call->why = op->write.why;
    audit(op, status);
    if (status)
        api_reply_error(call, status);
    else
        op->reply(op);
    destroy(op);
}

void credential_write_begin(struct credential_write *op,
                            enum err (*decide)(struct account_write *, struct accounts *,
                                               struct draft *),
                            void (*reply)(struct credential_write *op))
{
    op->reply = reply;
    op->write.decide = decide;
    op->write.done = on_written;
    op->call->busy = true;
    account_write_begin(api_options(op->call->api)->writer, &op->write);
}

enum err credential_check_caller(struct credential_write *op, int64_t now_ms)
{
    if (!identity_has_ended(op->call->identity, now_ms))
        return OK;
    return explain(&op->write.why, ERR_UNAUTHORIZED, "%s", identity_ended_reason);
}

enum err credential_read_label(struct credential_write *op, const json_t *body)
{
    const json_t *value = json_object_get(body, "name");
    struct slice text =
        slice_trim((struct slice){ json_string_value(value), json_string_length(value) });
    if (!json_is_string(value) || !account_name_is_right(text))
        return explain(&op->call->why, ERR_INVALID,
                       "name: must be a string of 1 to %d bytes without control "
                       "or invisible characters",
                       ACCOUNT_NAME_MAX);
    snprintf(op->label, sizeof(op->label), "%.*s", SLICE_ARG(text));
    return OK;
}

enum err credential_read_span(struct api_call *call, const json_t *body, const char *member,
                              int64_t *ms)
{
    const json_t *value = json_object_get(body, member);
    struct slice text = { json_string_value(value), json_string_length(value) };
    if (!value || json_is_null(value))
        return OK;
    *ms = 0;
    if (text.ptr && slice_is(text, "0") && strcmp(member, "grace") == 0)
        return OK;
    if (text.ptr && !text_to_duration_ms(text, ms) && *ms > 0 &&
        *ms <= (int64_t)SPAN_DAYS_MAX * DAY_MS)
        return OK;
    return explain(&call->why, ERR_INVALID,
                   "%s: must be a span like \"24h\" or \"90d\" (max %dd)", member,
                   SPAN_DAYS_MAX);
}

void credential_claim(struct credential_write *op, const char *kind, const char *inside)
{
    if (api_claim_for_user(op->call, kind, inside, &op->claim))
        op->write.claim = &op->claim;
}

void credential_show_id(const char *secret, char id[SECRET_ID_LEN + 1])
{
    unsigned char hash[HASH_LEN];
    vault_hash(slice_of(secret), hash);
    text_to_hex(hash, SECRET_ID_LEN / 2, id);
}
