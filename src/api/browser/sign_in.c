/* sign_in.c - lets a person get a personal access token without typing one.
 *
 *   runcast dashboard ─► one-time link ─► POST /api/v1/sign-in ─► a sign-in for 12 hours
 *                     personal token ─┘
 *     another link or token ─► POST /api/v1/sign-in/confirm ─► fresh for 10 minutes
 *     staying signed in: session.c
 *
 *   trigger.dev login ─► POST /api/v1/authorization-code (PKCE) ─► link to the dashboard
 *     the person: GET, POST …/approve ─► approval code ─► the CLI, by its port or pasted
 *     CLI ─► POST /api/v1/token (verifier, approval code) ─► a token
 *
 * Every wrong code gets the same response, so that guessing reveals nothing. The code of a
 * link is a token that grants nothing else (bootstrap_generate_link). It is stored, and
 * using it removes it, in the commit that creates the other token. A sign-in by a personal
 * token expires with that token. A sign-in cannot create or confirm another one. */
#include <ctype.h>

#include "accounts/account_writer.h"
#include "accounts/auth/logins.h"
#include "accounts/bootstrap.h"
#include "accounts/user_tokens.h"
#include "api/browser/own_host.h"
#include "api/request/quotas.h"
#include "api/request/request_log.h"
#include "api/request/route.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/vault/secret.h"
#include "net/address.h"

enum {
    IP6_SITE_BYTES = 6, /* the first ones; one site may have all addresses below */
    SHOWN_END = 4,      /* last characters of a token that are shown */
};

struct signing {
    struct api_call *call;
    struct account_write write;
    /* code of a one-time link, or a personal token; "": a login of the CLI */
    char code[PERSONAL_TOKEN_MAX];
    struct secret *approver; /* token of the person who approved such a login */
    char user_id[ID_MAX];
    char name[96]; /* of the new token; of a login */
    char token[PERSONAL_TOKEN_MAX];
    int64_t ends_at;       /* Unix ms; 0: never */
    int64_t proof_ends_at; /* of the token that confirms; 0: never */
    bool has_more;         /* sign-ins that have not ended yet, of all of the user */
    bool is_begun;         /* some of these have ended */
};

static const char wrong_link[] =
    "This link was used or has expired; runcast dashboard prints another one";
static const char wrong_token[] = "Unknown or expired token";
static const char wrong_code[] = "unknown login: it was used, refused, or has expired; "
                                 "begin again with trigger.dev login";

static int64_t now_of(const struct api_call *call)
{
    return loop_now_ms(engine_loop(api_engine(call->api)));
}

static int64_t wall_of(const struct api_call *call)
{
    return loop_wall_ms(engine_loop(api_engine(call->api)));
}

static struct slice text_of(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    return (struct slice){ json_string_value(value), json_string_length(value) };
}

/* ---- the new token ---- */

static bool is_link(const char *code)
{
    return strncmp(code, BOOTSTRAP_LINK_PREFIX, strlen(BOOTSTRAP_LINK_PREFIX)) == 0;
}

/* Finds the one-time link or personal token with this code. Returns NULL if it is unknown,
 * has expired, or is itself a sign-in. */
static struct secret *find_code(struct accounts *accounts, struct slice code,
                                int64_t now_ms)
{
    bool right = slice_starts(code, BOOTSTRAP_LINK_PREFIX) || slice_starts(code, "tr_pat_");
    struct secret *secret = right && code.len < PERSONAL_TOKEN_MAX
                                ? accounts_secret(accounts, code, now_ms)
                                : NULL;
    return secret && secret->user && !secret->signed_in ? secret : NULL;
}

static const char *why_wrong(const char *code)
{
    return !*code ? wrong_code : is_link(code) ? wrong_link : wrong_token;
}

static enum err decide(struct account_write *write, struct accounts *accounts,
                       struct draft *draft)
{
    struct signing *op = container_of(write, struct signing, write);
    struct secret *code =
        *op->code ? find_code(accounts, slice_of(op->code), draft->now_ms) : NULL;
    const struct secret *by = *op->code ? code : op->approver;
    struct user *user = by && secret_is_valid(by, draft->now_ms) ? by->user : NULL;
    if (!user)
        return explain(&write->why, ERR_INVALID, "%s", why_wrong(op->code));
    snprintf(op->user_id, sizeof(op->user_id), "%s", user->id);
    bootstrap_generate_token(op->token);
    if (!code)
        return user_token_draft(draft, by, slice_of(op->name), op->token, &op->ends_at,
                                &write->why);
    code->used_at = draft->now_ms;
    op->ends_at = user_sign_in_draft(draft, code, is_link(op->code), op->token);
    return OK;
}

static void reply_sign_in(struct signing *op, const struct user *user)
{
    char ends_at[TIME_TEXT_LEN + 1];
    struct api_call *call = op->call;
    struct secret *made =
        accounts_secret(api_accounts(call->api), slice_of(op->token), wall_of(call));
    if (made)
        secret_prove(made, now_of(call), wall_of(call));
    text_from_time(op->ends_at, ends_at);
    api_reply_value(call, 200,
                    json_pack("{s:s, s:s, s:{s:s, s:s, s:s}}", "token", op->token,
                              "expiresAt", ends_at, "user", "id", user->id, "email",
                              user->email, "name", user->name));
}

static void reply_token(struct signing *op)
{
    char shown[32];
    snprintf(shown, sizeof(shown), "tr_pat_…%s", op->token + strlen(op->token) - SHOWN_END);
    api_reply_value(
        op->call, 200,
        json_pack("{s:{s:s, s:s}}", "token", "token", op->token, "obfuscatedToken", shown));
}

static void on_written(struct account_write *write, enum err status)
{
    struct signing *op = container_of(write, struct signing, write);
    struct api_call *call = op->call;
    const struct user *user =
        status ? NULL : accounts_user(api_accounts(call->api), slice_of(op->user_id));
    call->why = write->why;
    log_audit(call->route->path, "by", call->x->peer, "user", op->user_id, "token",
              op->name, "result", status ? call->why.text : "ok", NULL);
    if (!user)
        api_reply_error(call, status ? status : ERR_INVALID);
    else if (*op->code)
        reply_sign_in(op, user);
    else
        reply_token(op);
    secret_unref(op->approver);
    secret_wipe((char *)op, sizeof(*op));
    free(op);
}

static struct signing *signing_create(struct api_call *call)
{
    struct signing *op = mem_new(struct signing);
    op->call = call;
    op->write.decide = decide;
    op->write.done = on_written;
    return op;
}

static void sign_in_begin(struct signing *op)
{
    op->call->busy = true;
    account_write_begin(api_options(op->call->api)->writer, &op->write);
}

/* Refuses requests while this gateway does not lead, and from pages of another address.
 * Such a page could start logins in its visitor's name without a preflight. */
static enum err check_page(struct api_call *call)
{
    enum err refused = api_check_lead(call->api, &call->why);
    if (refused)
        return refused;
    if (own_host_is_asking(call))
        return OK;
    return explain(
        &call->why, ERR_FORBIDDEN,
        "A page of another origin cannot sign in here; open the gateway's own page");
}

/* ---- by a one-time link or a token ---- */

/* Reads the code from the body, and writes it to out if it is valid. */
static enum err read_code(struct api_call *call, char out[PERSONAL_TOKEN_MAX])
{
    json_t *body;
    enum err refused = check_page(call);
    refused = refused ? refused : api_read_json(call, &body);
    if (refused)
        return refused;
    struct slice code = text_of(body, "code");
    if (!code.ptr)
        refused = explain(&call->why, ERR_INVALID, "code: must be a string");
    else if (!find_code(api_accounts(call->api), code, wall_of(call)))
        refused = explain(&call->why, ERR_INVALID, "%s",
                          slice_starts(code, "tr_pat_") ? wrong_token : wrong_link);
    else
        snprintf(out, PERSONAL_TOKEN_MAX, "%.*s", SLICE_ARG(code));
    json_decref(body);
    return refused;
}

static enum err sign_in(struct api_call *call)
{
    struct signing *op = signing_create(call);
    enum err refused = read_code(call, op->code);
    if (refused) {
        free(op);
        return refused;
    }
    snprintf(op->name, sizeof(op->name), "dashboard");
    sign_in_begin(op);
    return OK;
}

/* ---- confirming a sign-in ---- */

static bool is_same_person(const struct user *one, const struct user *other)
{
    return one == other ||
           (one->email && other->email && strcmp(one->email, other->email) == 0);
}

static enum err decide_confirm(struct account_write *write, struct accounts *accounts,
                               struct draft *draft)
{
    struct signing *op = container_of(write, struct signing, write);
    const struct identity *identity = op->call->identity;
    struct secret *code = find_code(accounts, slice_of(op->code), draft->now_ms);
    if (identity_has_ended(identity, draft->now_ms))
        return explain(&write->why, ERR_UNAUTHORIZED, "%s", identity_ended_reason);
    if (!code)
        return explain(&write->why, ERR_INVALID, "%s", why_wrong(op->code));
    if (!is_same_person(code->user, identity->user))
        return explain(&write->why, ERR_RULE,
                       "This is a link or token of another user; sign out first to use it");
    if (is_link(op->code))
        draft_end(draft, code);
    else
        op->proof_ends_at = code->ends_at;
    op->ends_at = draft->now_ms + SECRET_FRESH_MS;
    return OK;
}

static void on_confirmed(struct account_write *write, enum err status)
{
    struct signing *op = container_of(write, struct signing, write);
    struct api_call *call = op->call;
    char until[TIME_TEXT_LEN + 1];
    call->why = write->why;
    log_audit(call->route->path, "by", call->x->peer, "user", call->identity->user->id,
              "result", status ? call->why.text : "ok", NULL);
    if (status) {
        api_reply_error(call, status);
    } else {
        secret_prove(call->identity->secret, now_of(call), wall_of(call));
        call->identity->secret->proof_ends_at = op->proof_ends_at;
        text_from_time(op->ends_at, until);
        api_reply_value(call, 200, json_pack("{s:s}", "freshUntil", until));
    }
    secret_wipe((char *)op, sizeof(*op));
    free(op);
}

/* Kept in memory only: after a restart, the person confirms again. */
static enum err confirm_sign_in(struct api_call *call)
{
    if (!call->identity->secret->signed_in)
        return explain(&call->why, ERR_INVALID,
                       "Only a sign-in can be confirmed; POST /api/v1/sign-in makes one of "
                       "this token");
    struct signing *op = signing_create(call);
    enum err refused = read_code(call, op->code);
    if (refused) {
        free(op);
        return refused;
    }
    op->write.decide = decide_confirm;
    op->write.done = on_confirmed;
    sign_in_begin(op);
    return OK;
}

/* ---- signing out ---- */

static enum err decide_sign_out(struct account_write *write, struct accounts *accounts,
                                struct draft *draft)
{
    struct signing *op = container_of(write, struct signing, write);
    const struct identity *identity = op->call->identity;
    (void)accounts;
    if (identity_has_ended(identity, draft->now_ms))
        return explain(&write->why, ERR_UNAUTHORIZED, "%s", identity_ended_reason);
    draft_end(draft, identity->secret);
    return OK;
}

static void on_signed_out(struct account_write *write, enum err status)
{
    struct signing *op = container_of(write, struct signing, write);
    struct api_call *call = op->call;
    call->why = write->why;
    log_audit(call->route->path, "by", call->x->peer, "user", call->identity->user->id,
              "result", status ? call->why.text : "ok", NULL);
    if (status)
        api_reply_error(call, status);
    else
        api_reply_json(call, 200, SLICE("{}"));
    free(op);
}

/* A page calls this with whatever token its tab has, so a program's token is refused. */
static enum err sign_out(struct api_call *call)
{
    if (!call->identity->secret->signed_in)
        return explain(
            &call->why, ERR_INVALID,
            "This token is not a sign-in; DELETE /api/v1/tokens/{id} revokes it");
    struct signing *op = signing_create(call);
    op->write.decide = decide_sign_out;
    op->write.done = on_signed_out;
    sign_in_begin(op);
    return OK;
}

/* ---- signing out everywhere ---- */

static enum err decide_sign_out_all(struct account_write *write, struct accounts *accounts,
                                    struct draft *draft)
{
    struct signing *op = container_of(write, struct signing, write);
    const struct identity *identity = op->call->identity;
    (void)accounts;
    if (!op->is_begun && identity_has_ended(identity, draft->now_ms))
        return explain(&write->why, ERR_UNAUTHORIZED, "%s", identity_ended_reason);
    op->has_more = user_sign_out_draft(draft, identity->user);
    return OK;
}

static void on_signed_out_some(struct account_write *write, enum err status)
{
    struct signing *op = container_of(write, struct signing, write);
    op->is_begun = true;
    if (!status && op->has_more)
        sign_in_begin(op);
    else
        on_signed_out(write, status);
}

/* Needs a fresh sign-in: a stolen one must not sign its owner out. */
static enum err sign_out_all(struct api_call *call)
{
    enum err refused = api_check_fresh(call);
    if (refused)
        return refused;
    struct signing *op = signing_create(call);
    op->write.decide = decide_sign_out_all;
    op->write.done = on_signed_out_some;
    sign_in_begin(op);
    return OK;
}

/* ---- login of the CLI ---- */

static bool is_challenge(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!isalnum((unsigned char)text.ptr[i]) && text.ptr[i] != '-' &&
            text.ptr[i] != '_')
            return false;
    return text.len == LOGIN_CHALLENGE_LEN;
}

static enum err read_login(struct api_call *call, const json_t *body,
                           struct slice *challenge, uint16_t *port)
{
    const json_t *given = json_object_get(body, "callbackPort");
    json_int_t number = json_integer_value(given);
    struct slice method = text_of(body, "codeChallengeMethod");
    *challenge = text_of(body, "codeChallenge");
    *port = (uint16_t)number;
    if (!challenge->ptr)
        return explain(&call->why, ERR_INVALID,
                       "codeChallenge: missing. A login is bound to the client that began "
                       "it, which needs trigger.dev 4.8 or newer; with an older one set "
                       "TRIGGER_ACCESS_TOKEN to a token of runcast token create");
    if (!slice_is(method, "S256") || !is_challenge(*challenge))
        return explain(&call->why, ERR_INVALID,
                       "codeChallenge: must be the SHA-256 of the verifier in base64url, "
                       "and codeChallengeMethod S256");
    if (given && !json_is_null(given) &&
        (!json_is_integer(given) || number < 1 || number > UINT16_MAX))
        return explain(&call->why, ERR_INVALID, "callbackPort: must be a port");
    return OK;
}

static void reply_login(struct api_call *call, const struct login *login)
{
    const struct api_options *options = api_options(call->api);
    struct buf url = { 0 };
    if (options->dashboard_is_admins)
        buf_add_text(&url, options->dashboard_url);
    else
        own_host_url(call, &url);
    buf_print(&url, "/account/authorization-code/%s", login->code);
    api_reply_value(call, 200,
                    json_pack("{s:s, s:s#, s:s}", "authorizationCode", login->code, "url",
                              url.ptr, url.len, "approval",
                              login->port ? "callback" : "paste"));
    buf_finish(&url);
}

/* Reads the part of an address by which logins are counted. For IPv6 this is the site,
 * because a client with one of its addresses may have all of them. */
static void read_network(const char *peer, unsigned char network[LOGIN_NETWORK_LEN])
{
    struct address address = { 0 };
    address_read(slice_of(peer), &address);
    memcpy(network, address.ip,
           address_is_ip4(&address) ? sizeof(address.ip) : IP6_SITE_BYTES);
}

static enum err begin_login(struct api_call *call)
{
    struct slice challenge;
    uint16_t port;
    json_t *body = NULL;
    enum err refused = check_page(call);
    if (!refused && slice_trim(call->x->body).len)
        refused = api_read_json(call, &body);
    if (!refused)
        refused = read_login(call, body, &challenge, &port);
    if (!refused) {
        unsigned char network[LOGIN_NETWORK_LEN] = { 0 };
        read_network(call->x->peer, network);
        const struct login *login =
            logins_begin(api_logins(call->api), call->x->hidden ? "" : call->x->peer,
                         network, challenge, port, now_of(call), wall_of(call));
        if (login)
            reply_login(call, login);
        else
            api_reply_refusal(
                call, 429,
                "Too many logins wait to be approved: approve or refuse some, "
                "or try again in 10 minutes");
    }
    json_decref(body);
    return refused;
}

static enum err find_login(struct api_call *call, struct slice code, struct login **login)
{
    *login = logins_find(api_logins(call->api), code, now_of(call));
    return *login ? OK : explain(&call->why, ERR_NOT_FOUND, "%s", wrong_code);
}

static enum err show_login(struct api_call *call)
{
    struct login *login;
    char begun[TIME_TEXT_LEN + 1], ends[TIME_TEXT_LEN + 1];
    enum err refused = find_login(call, call->params[0], &login);
    if (refused)
        return refused;
    text_from_time(login->created_at, begun);
    text_from_time(login->created_at + LOGIN_TTL_MS, ends);
    api_reply_value(call, 200,
                    json_pack("{s:s, s:s, s:s?, s:s, s:b}", "createdAt", begun, "expiresAt",
                              ends, "machine", *login->client ? login->client : NULL,
                              "approval", login->port ? "callback" : "paste", "isApproved",
                              *login->approval != '\0'));
    return OK;
}

/* Approves a login once: a second approval is refused, even by the same person. */
static enum err approve_login(struct api_call *call)
{
    struct login *login;
    enum err refused = find_login(call, call->params[0], &login);
    if (refused)
        return refused;
    if (*login->approval)
        return explain(&call->why, ERR_CONFLICT,
                       "This login is already approved; if that was not you, refuse it");
    if ((refused = api_check_not_stale(call))) {
        log_audit(call->route->path, "by", call->identity->user->id, "machine",
                  login->client, "result", call->why.text, NULL);
        return refused;
    }
    login_approve(login, call->identity->secret);
    log_audit(call->route->path, "by", call->identity->user->id, "machine", login->client,
              "result", "ok", NULL);
    json_t *body = json_pack("{s:s}", "approvalCode", login->approval);
    if (login->port)
        json_object_set_new(body, "callbackPort", json_integer(login->port));
    api_reply_value(call, 200, body);
    return OK;
}

static enum err refuse_login(struct api_call *call)
{
    struct login *login;
    enum err refused = find_login(call, call->params[0], &login);
    if (refused)
        return refused;
    logins_end(api_logins(call->api), login);
    api_reply_json(call, 200, SLICE("{}"));
    return OK;
}

/* The CLI lets its user type an approval code again after 400. It treats any other refusal
 * as the end of the login. */
static enum err prove(struct api_call *call, const json_t *body)
{
    struct login *login;
    struct slice code = text_of(body, "authorizationCode");
    struct slice verifier = text_of(body, "codeVerifier");
    struct slice approval = text_of(body, "approvalCode");
    if (!code.ptr || !verifier.ptr || !approval.ptr)
        return explain(&call->why, ERR_INVALID,
                       "authorizationCode, codeVerifier and approvalCode: must be strings");
    enum err refused = find_login(call, code, &login);
    if (refused)
        return refused;
    if (!logins_prove(api_logins(call->api), login, verifier, slice_trim(approval)))
        return explain(&call->why, ERR_INVALID,
                       "the code is wrong, or the login is not approved yet; the login "
                       "ends after %d wrong codes",
                       LOGIN_TRIES);
    struct signing *op = signing_create(call);
    op->approver = secret_ref(login->approver);
    snprintf(op->name, sizeof(op->name), "trigger.dev login from %s",
             *login->client ? login->client : "behind a proxy");
    logins_end(api_logins(call->api), login);
    sign_in_begin(op);
    return OK;
}

static enum err give_token(struct api_call *call)
{
    json_t *body;
    enum err refused = check_page(call);
    refused = refused ? refused : api_read_json(call, &body);
    if (refused)
        return refused;
    refused = prove(call, body);
    json_decref(body);
    return refused;
}

#define LOGIN "/api/v1/authorization-code"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = "/api/v1/sign-in",
      .needs_lead = true, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = sign_in,
      .id = "sign_in_v1", .summary = "Sign in with the code of a one-time link or a "
          "personal access token",
      .body = "{code: string, ...}",
      .reply = "{token: string, expiresAt: datetime, user: {id: string, email: string, "
          "name: string}}",
      .also = "422" },
    { .method = HTTP_DELETE_, .path = "/api/v1/sign-in",
      .auth = AUTH_PERSONAL, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = sign_out,
      .id = "sign_out_v1", .summary = "Sign out",
      .reply = "{...}",
      .also = "400" },
    { .method = HTTP_DELETE_, .path = "/api/v1/sign-ins",
      .auth = AUTH_PERSONAL, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = sign_out_all,
      .id = "sign_out_everywhere_v1", .summary = "Sign out everywhere, after a fresh sign-in",
      .reply = "{...}",
      .also = "403" },
    { .method = HTTP_POST_, .path = "/api/v1/sign-in/confirm",
      .auth = AUTH_PERSONAL, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = confirm_sign_in,
      .id = "confirm_sign_in_v1", .summary = "Confirm a sign-in",
      .body = "{code: string, ...}",
      .reply = "{freshUntil: datetime}",
      .also = "422" },
    { .method = HTTP_POST_, .path = LOGIN,
      .needs_lead = true, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = begin_login,
      .id = "create_authorization_code_v1", .summary = "Begin a CLI login",
      .body = "{codeChallenge: string, codeChallengeMethod: 'S256', callbackPort?: "
          "integer|null, ...}",
      .reply = "{authorizationCode: string, url: string, approval: 'callback'|'paste'}",
      .also = "429" },
    { .method = HTTP_GET_, .path = LOGIN "/{code}",
      .auth = AUTH_PERSONAL, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = show_login,
      .id = "retrieve_authorization_code_v1", .summary = "Show the CLI login that waits for approval",
      .reply = "{createdAt: datetime, expiresAt: datetime, machine: string|null, approval: "
          "'callback'|'paste', isApproved: boolean}" },
    { .method = HTTP_POST_, .path = LOGIN "/{code}/approve",
      .auth = AUTH_PERSONAL, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = approve_login,
      .id = "approve_authorization_code_v1", .summary = "Approve a CLI login",
      .reply = "{approvalCode: string, callbackPort?: integer}",
      .also = "403 409" },
    { .method = HTTP_POST_, .path = LOGIN "/{code}/refuse",
      .auth = AUTH_PERSONAL, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = refuse_login,
      .id = "refuse_authorization_code_v1", .summary = "Refuse a CLI login",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = "/api/v1/token",
      .needs_lead = true, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = give_token,
      .id = "create_personal_token_v1", .summary = "Get the token of an approved CLI login",
      .body = "{authorizationCode: string, codeVerifier: string, approvalCode: string, ...}",
      .reply = "{token: {token: string, obfuscatedToken: string}}",
      .also = "404 422" },
    { 0 },
};
/* clang-format on */

const struct area sign_in_area = { .tag = "tokens",
                                   .is_for_users = true,
                                   .routes = routes };
