/* session.c - keeps a person signed in to the dashboard, across tabs and a closed browser.
 *
 *   POST /api/v1/sign-in/stay ─► a lasting sign-in (accounts/lasting.h): a cookie or a key
 *   POST /dashboard/session   ─► names of projects, and a token of one environment
 *        over TLS: the cookie │ on the same machine: a challenge, then its signature by the key
 *                             │ else: refused
 *
 * The second call is the only one that reads a cookie. It gives what a page needs to show one
 * environment. Everything else needs a sign-in with a link or a token: a lasting sign-in is
 * never fresh, and no call accepts it as a credential.
 *
 * The tabs of a browser take turns (Web Locks), and a page repeats a call whose response was
 * lost. The code before the current one is accepted for a moment (accounts/lasting.h). */
#include "accounts/account_writer.h"
#include "accounts/auth/key_proof.h"
#include "accounts/branch.h"
#include "accounts/lasting.h"
#include "accounts/user_tokens.h"
#include "api/browser/cookie.h"
#include "api/browser/own_host.h"
#include "api/projects/projects.h"
#include "api/request/quotas.h"
#include "api/request/rate_limit.h"
#include "api/request/route.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/vault/secret.h"

enum { TOKEN_TTL_MS = 15 * 60 * 1000 };

/* One call, of either route. */
struct session_call {
    struct api_call *call;
    struct account_write write;
    char id[LASTING_ID_LEN + 1];
    bool has_key;                    /* not over TLS: a key, and no cookie */
    char code[LASTING_CODE_LEN + 1]; /* of the cookie */
    char next[LASTING_CODE_LEN + 1]; /* for the cookie; "": none */
    unsigned char key[LASTING_KEY_LEN];
    int64_t ends_at;               /* Unix ms */
    const struct user *user;       /* of the lasting sign-in; NULL: not known yet */
    const struct project *project; /* that the page asks for; NULL: none */
    struct account *account;       /* the environment of the token; NULL: none */
    bool is_out;                   /* the page signs out */
    bool is_ended;                 /* an old code has ended the lasting sign-in */
    bool is_challenged;            /* it has proved nothing yet, and gets a challenge */
};

static const char signed_out[] = "You are not signed in any more; sign in again";

static int64_t wall_of(const struct api_call *call)
{
    return loop_wall_ms(engine_loop(api_engine(call->api)));
}

static struct slice text_of(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    return (struct slice){ json_string_value(value), json_string_length(value) };
}

static struct session_call *session_call_create(struct api_call *call)
{
    struct session_call *op = mem_new(struct session_call);
    op->call = call;
    op->has_key = own_host_way(call) != OWN_HOST_TLS;
    return op;
}

static void session_call_destroy(struct session_call *op)
{
    secret_wipe(op, sizeof(*op));
    free(op);
}

static void begin_write(struct session_call *op,
                        enum err (*decide)(struct account_write *, struct accounts *,
                                           struct draft *),
                        void (*done)(struct account_write *, enum err))
{
    op->write.decide = decide;
    op->write.done = done;
    op->call->busy = true;
    account_write_begin(api_options(op->call->api)->writer, &op->write);
}

/* Refuses calls that no page of the dashboard makes. A page cannot stay signed in if its
 * cookie or signature could be seen on the way. */
static enum err check_page(struct api_call *call)
{
    if (!own_host_has_dashboard(call))
        return ERR_NOT_FOUND;
    enum err refused = api_check_lead(call->api, &call->why);
    refused = refused ? refused : own_host_check_page(call);
    if (refused || own_host_way(call) != OWN_HOST_PLAIN)
        return refused;
    return explain(&call->why, ERR_FORBIDDEN,
                   "Staying signed in needs https, or localhost");
}

static void audit(const struct session_call *op, const char *result)
{
    unsigned char hash[HASH_LEN];
    char id[SECRET_ID_LEN + 1];
    vault_hash(slice_of(op->id), hash);
    text_to_hex(hash, SECRET_ID_LEN / 2, id);
    log_audit(op->call->route->path, "by", op->call->x->peer, "user",
              op->user ? op->user->id : "", "token", id, "result", result, NULL);
}

/* ---- making one ---- */

static enum err read_key(struct session_call *op, const json_t *body)
{
    struct slice text = text_of(body, "publicKey");
    unsigned char bytes[LASTING_KEY_LEN + 3];
    size_t len = 0;
    bool right = text.len == (4 * LASTING_KEY_LEN + 2) / 3 &&
                 !text_from_base64url(text, bytes, &len) && len == LASTING_KEY_LEN &&
                 key_proof_key_is_right(bytes);
    if (!right)
        return explain(&op->call->why, ERR_INVALID,
                       "publicKey: must be an uncompressed point of P-256 in base64url");
    memcpy(op->key, bytes, LASTING_KEY_LEN);
    return OK;
}

static enum err decide_stay(struct account_write *write, struct accounts *accounts,
                            struct draft *draft)
{
    struct session_call *op = container_of(write, struct session_call, write);
    const struct identity *identity = op->call->identity;
    (void)accounts;
    if (identity_has_ended(identity, draft->now_ms))
        return explain(&write->why, ERR_UNAUTHORIZED, "%s", identity_ended_reason);
    lasting_generate_id(op->id);
    if (!op->has_key)
        lasting_generate_code(op->id, op->next);
    struct lasting lasting =
        op->has_key ? lasting_with_key(op->key) : lasting_with_code(op->next);
    op->ends_at = user_lasting_draft(draft, identity->secret, op->id, &lasting);
    return OK;
}

static void add_cookie(struct session_call *op)
{
    if (*op->next)
        cookie_set(op->call, slice_of(op->next), op->ends_at - wall_of(op->call));
}

static void on_stays(struct account_write *write, enum err status)
{
    struct session_call *op = container_of(write, struct session_call, write);
    struct api_call *call = op->call;
    char ends_at[TIME_TEXT_LEN + 1];
    call->why = write->why;
    op->user = call->identity->user;
    audit(op, status ? call->why.text : "ok");
    if (status) {
        api_reply_error(call, status);
    } else {
        add_cookie(op);
        text_from_time(op->ends_at, ends_at);
        api_reply_value(call, 200,
                        json_pack("{s:s, s:s, s:s*}", "userId", call->identity->user->id,
                                  "expiresAt", ends_at, "id", op->has_key ? op->id : NULL));
    }
    session_call_destroy(op);
}

/* Needs a fresh sign-in: a stolen one must not become one that lasts. */
static enum err stay(struct api_call *call)
{
    json_t *body;
    enum err refused = check_page(call);
    refused = refused ? refused : api_check_fresh(call);
    refused = refused ? refused : api_read_json(call, &body);
    if (refused)
        return refused;
    struct session_call *op = session_call_create(call);
    refused = op->has_key ? read_key(op, body) : OK;
    json_decref(body);
    if (refused) {
        session_call_destroy(op);
        return refused;
    }
    begin_write(op, decide_stay, on_stays);
    return OK;
}

/* ---- what a use proves ---- */

/* Finds the lasting sign-in of the call. Returns NULL if it is unknown, has ended, or must be
 * proved in the other way. */
static struct secret *find(struct session_call *op, int64_t now_ms)
{
    struct secret *secret =
        lasting_find(api_accounts(op->call->api), slice_of(op->id), now_ms);
    return secret && secret->lasting->has_key == op->has_key ? secret : NULL;
}

/* Takes a cookie if its lasting sign-in is valid, and of the user that the page expects (absent:
 * any). */
static bool take_code(struct session_call *op, struct slice code, struct slice user)
{
    struct slice id = lasting_id_of(code);
    if (!id.ptr)
        return false;
    snprintf(op->code, sizeof(op->code), "%.*s", SLICE_ARG(code));
    snprintf(op->id, sizeof(op->id), "%.*s", SLICE_ARG(id));
    const struct secret *secret = find(op, wall_of(op->call));
    return secret && (!user.ptr || slice_is(user, secret->user->id));
}

/* Takes the first cookie that fits. Another server of the same site may have set one of the
 * same name, which must not keep the person out. */
static bool take_cookie(struct session_call *op, const json_t *body)
{
    struct slice user = text_of(body, "user"), code;
    for (size_t i = 0; i < COOKIES_MAX && (code = cookie_read(op->call, i)).ptr; i++)
        if (take_code(op, code, user))
            return true;
    return false;
}

static bool is_signed(struct session_call *op, const struct secret *secret,
                      struct slice signature)
{
    unsigned char bytes[KEY_PROOF_LEN + 3];
    struct buf text = { 0 };
    size_t len = 0;
    if (!*secret->lasting->challenge || signature.len != (4 * KEY_PROOF_LEN + 2) / 3 ||
        text_from_base64url(signature, bytes, &len) || len != KEY_PROOF_LEN)
        return false;
    buf_add_text(&text, "runcast session\n");
    bool right = own_host_origin(op->call, &text);
    buf_print(&text, "\n%s\n%s", op->id, secret->lasting->challenge);
    right = right && key_proof_is_right(secret->lasting->key, buf_slice(&text), bytes);
    buf_finish(&text);
    return right;
}

/* Finds the lasting sign-in by its id. Without a signature of its challenge, the call gets the
 * next challenge. */
static bool take_signature(struct session_call *op, const json_t *body)
{
    struct slice id = text_of(body, "id");
    if (id.len != LASTING_ID_LEN)
        return false;
    snprintf(op->id, sizeof(op->id), "%.*s", SLICE_ARG(id));
    struct secret *secret = find(op, wall_of(op->call));
    if (!secret)
        return false;
    op->is_challenged = !is_signed(op, secret, text_of(body, "signature"));
    if (!op->is_challenged)
        lasting_end_challenge(secret);
    return true;
}

/* Not a use: nothing is written. */
static void reply_challenge(struct session_call *op)
{
    struct secret *secret = find(op, wall_of(op->call));
    api_reply_value(op->call, 200,
                    json_pack("{s:s}", "challenge", lasting_challenge(secret)));
}

static enum err refuse(struct session_call *op)
{
    struct api_call *call = op->call;
    if (!op->has_key && cookie_read(call, 0).ptr)
        cookie_set(call, SLICE(""), 0);
    log_decision("lasting sign-in refused", NULL, NULL, "it is unknown, or not proved",
                 "client", call->x->peer, NULL);
    return explain(&call->why, ERR_UNAUTHORIZED, "%s", signed_out);
}

/* ---- what it asks for ---- */

static enum err find_environment(struct session_call *op, const struct user *user,
                                 const json_t *body)
{
    struct accounts *accounts = api_accounts(op->call->api);
    struct slice slug = text_of(body, "environment"), branch = text_of(body, "branch");
    enum environment_type type;
    op->project = accounts_project(accounts, text_of(body, "project"));
    if (!op->project || !user_sees(user, op->project))
        return explain(&op->call->why, ERR_NOT_FOUND, "Project not found");
    if (!slug.ptr)
        return OK;
    if (environment_type_from_slug(slug, &type))
        return explain(&op->call->why, ERR_NOT_FOUND, "Environment not found");
    op->account = accounts_environment(accounts, op->project, type);
    if (op->account && type == ENVIRONMENT_PREVIEW)
        op->account = accounts_branch(accounts, op->account, branch_name_clean(branch));
    return op->account ? OK
                       : explain(&op->call->why, ERR_NOT_FOUND, "%s not found",
                                 type == ENVIRONMENT_PREVIEW ? "Branch" : "Environment");
}

/* ---- a use ---- */

/* Drafts the end of one whose old code has come back. */
static enum err end_for_old_code(struct session_call *op, struct draft *draft,
                                 const struct secret *secret)
{
    op->is_ended = true;
    draft_end(draft, secret);
    return OK;
}

static void use_code(struct session_call *op, struct draft *draft,
                     const struct secret *secret, enum lasting_code given)
{
    const char *known = secret->lasting->next;
    op->ends_at = secret->ends_at;
    if (given == LASTING_REPEATED && known) {
        snprintf(op->next, sizeof(op->next), "%s", known);
        return;
    }
    lasting_generate_code(op->id, op->next);
    op->ends_at = lasting_draft_code(draft, secret, given, op->next);
}

static bool is_still_there(const struct session_call *op, const struct user *user)
{
    return !op->project || (user_sees(user, op->project) && !op->project->deleted_at &&
                            !(op->account && op->account->archived));
}

static enum err decide_use(struct account_write *write, struct accounts *accounts,
                           struct draft *draft)
{
    struct session_call *op = container_of(write, struct session_call, write);
    struct secret *secret = find(op, draft->now_ms);
    enum lasting_code given = LASTING_CURRENT;
    (void)accounts;
    op->user = secret ? secret->user : NULL;
    if (secret && !op->has_key)
        given = lasting_judge(secret, slice_of(op->code), draft->now_ms);
    if (secret && given == LASTING_OLD)
        return end_for_old_code(op, draft, secret);
    if (!secret)
        return explain(&write->why, ERR_UNAUTHORIZED, "%s", signed_out);
    if (!is_still_there(op, secret->user))
        return explain(&write->why, ERR_NOT_FOUND, "Project not found");
    secret->used_at = draft->now_ms;
    if (op->is_out)
        draft_end(draft, secret);
    else if (op->has_key)
        op->ends_at = lasting_draft_signed(draft, secret);
    else
        use_code(op, draft, secret, given);
    return OK;
}

static json_t *branches_show(struct accounts *accounts, const struct project *project)
{
    json_t *array = json_array();
    for (struct account *a = NULL; (a = accounts_next(accounts, a));)
        if (a->parent && a->project == project && !a->archived)
            json_array_append_new(array, json_string(a->branch));
    return array;
}

static void add_token(const struct session_call *op, const struct secret *secret,
                      json_t *body)
{
    struct buf token = { 0 };
    auth_sign_for_user(secret, op->account, wall_of(op->call), TOKEN_TTL_MS, &token);
    json_object_set_new(body, "token", json_stringn(token.ptr, token.len));
    buf_finish(&token);
}

static void reply_names(struct session_call *op, const struct secret *secret)
{
    struct accounts *accounts = api_accounts(op->call->api);
    const struct user *user = secret->user;
    char ends_at[TIME_TEXT_LEN + 1];
    text_from_time(op->ends_at, ends_at);
    json_t *body = json_pack("{s:{s:s, s:s, s:s}, s:o, s:s}", "user", "id", user->id,
                             "email", user->email, "name", user->name, "projects",
                             projects_show(accounts, user, NULL), "expiresAt", ends_at);
    if (op->project)
        json_object_set_new(body, "branches", branches_show(accounts, op->project));
    if (op->account)
        add_token(op, secret, body);
    api_reply_value(op->call, 200, body);
}

static void reply_use(struct session_call *op)
{
    struct api_call *call = op->call;
    struct secret *secret = find(op, wall_of(call));
    if (!secret) {
        api_reply_error(call, refuse(op));
        return;
    }
    if (*op->next)
        lasting_note_next(secret, op->next);
    http_trust(call->x);
    add_cookie(op);
    reply_names(op, secret);
}

/* Answers a use that the store has no space for, since a page must work then, too. The code
 * stays the current one. */
static void reply_unwritten(struct session_call *op)
{
    const struct secret *secret = find(op, wall_of(op->call));
    if (secret)
        op->ends_at = secret->ends_at;
    *op->next = '\0';
    reply_use(op);
}

static void reply_out(struct session_call *op)
{
    if (!op->has_key)
        cookie_set(op->call, SLICE(""), 0);
    audit(op, "ok");
    api_reply_json(op->call, 200, SLICE("{}"));
}

static void on_used(struct account_write *write, enum err status)
{
    struct session_call *op = container_of(write, struct session_call, write);
    op->call->why = write->why;
    if (!status && op->is_ended)
        audit(op, "ended: its code was used before, so two browsers have it");
    if (status == ERR_UNAUTHORIZED || (!status && op->is_ended))
        api_reply_error(op->call, refuse(op));
    else if (status == ERR_STORE_FULL && !op->is_out && !op->is_ended)
        reply_unwritten(op);
    else if (status)
        api_reply_error(op->call, status);
    else if (op->is_out)
        reply_out(op);
    else
        reply_use(op);
    session_call_destroy(op);
}

static enum err read_use(struct session_call *op, const json_t *body)
{
    if (!(op->has_key ? take_signature(op, body) : take_cookie(op, body)))
        return refuse(op);
    const struct secret *secret = find(op, wall_of(op->call));
    if (op->is_challenged)
        return OK;
    op->is_out = json_is_true(json_object_get(body, "signOut"));
    bool is_old = !op->has_key && lasting_judge(secret, slice_of(op->code),
                                                wall_of(op->call)) == LASTING_OLD;
    return is_old || op->is_out || !json_object_get(body, "project")
               ? OK
               : find_environment(op, secret->user, body);
}

static void proceed(struct session_call *op)
{
    if (!op->is_challenged) {
        begin_write(op, decide_use, on_used);
        return;
    }
    reply_challenge(op);
    session_call_destroy(op);
}

static enum err use_session(struct api_call *call)
{
    json_t *body;
    enum err refused = check_page(call);
    refused = refused ? refused : api_read_json(call, &body);
    if (refused)
        return refused;
    struct session_call *op = session_call_create(call);
    refused = read_use(op, body);
    json_decref(body);
    if (!refused &&
        rate_limit_allows_use(api_rate_limit(call->api), call, find(op, wall_of(call)))) {
        proceed(op);
        return OK;
    }
    session_call_destroy(op);
    return refused;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = "/api/v1/sign-in/stay",
      .auth = AUTH_PERSONAL, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = stay,
      .is_for_own_pages = true,
      .id = "stay_signed_in_v1", .summary = "Stay signed in, after a fresh sign-in",
      .body = "{publicKey?: string, ...}",
      .reply = "{userId: string, expiresAt: datetime, id?: string}",
      .also = "403 404 415" },
    { .method = HTTP_POST_, .path = "/dashboard/session",
      .needs_lead = true, .body_limit = UNAUTHENTICATED_BODY_MAX, .handle = use_session,
      .is_for_own_pages = true,
      .id = "use_session", .summary = "Names of projects, and a token of one environment, for a "
          "page that has stayed signed in",
      .body = "{project?: string, environment?: string, branch?: string|null, signOut?: boolean, "
          "user?: string, id?: string, signature?: string, ...}",
      .reply = "{user?: {id: string, email: string, name: string}, projects?: Project[], "
          "expiresAt?: datetime, branches?: string[], token?: string, challenge?: string}",
      .also = "401 403 404 415" },
    { 0 },
};
/* clang-format on */

const struct area session_area = { .tag = "tokens",
                                   .is_for_users = true,
                                   .routes = routes };
