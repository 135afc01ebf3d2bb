/* tokens.c - signs public access tokens, and shows the claims for those that clients
 * sign. */
#include <ctype.h>
#include <math.h>

#include "accounts/auth/jwt.h"
#include "api/request/project.h"
#include "api/request/route.h"
#include "base/json/json_tree.h"
#include "base/json/scan.h"
#include "core/wire/shape.h"

enum {
    CLAIMS_BODY = 65536, /* no body is expected, but some clients send one */
    TOKEN_BODY = 65536,
    DEFAULT_S = 3600,
    LONGEST_S = 30 * 24 * 3600,
    LONGEST_FOR_USER_S = 3600,
    SCOPES_MAX = 100,
    DIGITS_MAX = 23,
};

static enum err show_claims(struct api_call *call)
{
    api_reply_value(call, 200, json_pack("{s:s, s:b}", "sub", call->account->id, "pub", 1));
    return OK;
}

/* ---- when it expires ---- */

static double unit_seconds(struct slice unit)
{
    static const struct {
        const char *names; /* each with a space before and after it */
        double seconds;
    } units[] = {
        { " s sec secs second seconds ", 1 }, { " m min mins minute minutes ", 60 },
        { " h hr hrs hour hours ", 3600 },    { " d day days ", 86400 },
        { " w week weeks ", 7 * 86400 },      { " y yr yrs year years ", 365.25 * 86400 },
    };
    char wanted[16];
    if (unit.len > 8)
        return 0;
    snprintf(wanted, sizeof(wanted), " %.*s ", SLICE_ARG(unit));
    for (char *c = wanted; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (size_t i = 0; unit.len && i < sizeof(units) / sizeof(units[0]); i++)
        if (strstr(units[i].names, wanted))
            return units[i].seconds;
    return 0;
}

/* Reads "1h", "24hr", "2 days" or "1.5 hours" as seconds. Returns 0 for anything else. */
static double read_span(struct slice text)
{
    size_t digits = 0;
    double count;
    while (digits < text.len && digits < DIGITS_MAX &&
           (isdigit((unsigned char)text.ptr[digits]) || text.ptr[digits] == '.'))
        digits++;
    if (!scan_number((struct slice){ text.ptr, digits }, &count))
        return 0;
    return count * unit_seconds(slice_trim(slice_from(text, digits)));
}

/* Reads when the token expires: a text counts from now, a number is a Unix time in
 * seconds. */
static enum err read_expiry(struct api_call *call, const json_t *value, int64_t now_ms,
                            int64_t *ttl_ms)
{
    double lives = 0;
    if (!value)
        lives = DEFAULT_S;
    else if (json_is_string(value))
        lives = read_span(
            (struct slice){ json_string_value(value), json_string_length(value) });
    else if (json_is_number(value))
        lives = floor(json_number_value(value)) - floor((double)now_ms / 1000);
    bool is_for_user = call->identity->user;
    if (lives > (double)(is_for_user ? LONGEST_FOR_USER_S : LONGEST_S))
        return explain(&call->why, ERR_INVALID, "expirationTime is too large (max %s)",
                       is_for_user ? "an hour" : "30 days");
    if (!(lives > 0))
        return explain(&call->why, ERR_INVALID,
                       "expirationTime must be a span like 1h or 2 days, or a future Unix "
                       "time in seconds");
    *ttl_ms = (int64_t)(lives * 1000);
    return OK;
}

/* ---- signing ---- */

static enum err check_scopes(struct api_call *call, const json_t *scopes)
{
    size_t i;
    json_t *scope;
    if (!json_is_array(scopes) || !json_array_size(scopes) ||
        json_array_size(scopes) > SCOPES_MAX)
        return explain(&call->why, ERR_INVALID,
                       "Invalid request body: scopes must be an array of 1 to %d strings",
                       SCOPES_MAX);
    json_array_foreach(scopes, i, scope)
    {
        if (!json_string_length(scope))
            return explain(&call->why, ERR_INVALID,
                           "Invalid request body: scopes[%zu] must be a string like "
                           "read:runs:run_1234",
                           i);
    }
    return OK;
}

static enum err sign_token(struct api_call *call, json_t *claims, int64_t now_ms,
                           int64_t ttl_ms)
{
    int64_t now = now_ms / 1000;
    struct buf text = { 0 }, token = { 0 };

    json_object_set_new(claims, "sub", json_string(call->account->id));
    json_object_set_new(claims, "pub", json_true());
    json_object_set_new(claims, "iat", json_integer(now));
    json_object_set_new(claims, "iss", json_string("https://id.trigger.dev"));
    json_object_set_new(claims, "aud", json_string("https://api.trigger.dev"));
    json_object_set_new(claims, "exp", json_integer((now_ms + ttl_ms) / 1000));
    json_tree_write(claims, &text);
    json_decref(claims);
    jwt_sign(buf_slice(&text), identity_signing_key(call->identity, call->account), &token);
    buf_finish(&text);
    enum err err = OK;
    if (token.len > JWT_TEXT_MAX)
        err = explain(&call->why, ERR_INVALID,
                      "The token would be too large (max %d bytes); request fewer scopes",
                      JWT_TEXT_MAX);
    else
        api_reply_value(call, 200, json_pack("{s:s%}", "token", token.ptr, token.len));
    buf_finish(&token);
    return err;
}

/* The requested properties of a token, borrowed from the body; NULL: absent. */
struct token_request {
    json_t *scopes, *once, *realtime, *expiry;
    const char *once_name;
};

/* Refuses a limit of the token that is not understood: without it, the token would allow
 * more than intended. */
static enum err check_limits(struct api_call *call, const struct token_request *request)
{
    const json_t *columns = json_object_get(request->realtime, "skipColumns"), *column;
    size_t i;
    if (request->once && !json_is_boolean(request->once))
        return explain(&call->why, ERR_INVALID,
                       "Invalid request body: %s must be true or false",
                       request->once_name);
    if (request->realtime && !json_is_object(request->realtime))
        return explain(&call->why, ERR_INVALID,
                       "Invalid request body: realtime must be an object");
    bool right = !columns || json_is_array(columns);
    json_array_foreach(columns, i, column) right &= json_is_string(column);
    if (!right)
        return explain(&call->why, ERR_INVALID,
                       "Invalid request body: realtime.skipColumns must be an array of "
                       "strings");
    json_array_foreach(columns, i, column)
    {
        const char *name = json_string_value(column);
        if (!shape_column(slice_of(name), VOCABULARY_B))
            return explain(&call->why, ERR_INVALID,
                           "Invalid request body: realtime.skipColumns names '%.60s', "
                           "which is not a column that can be skipped",
                           name);
    }
    return OK;
}

static int64_t now_of(const struct api_call *call)
{
    return loop_wall_ms(engine_loop(api_engine(call->api)));
}

/* Gives the token an id, so that two tokens of the same second differ. */
static void limit_to_one_use(json_t *claims, int64_t now_ms)
{
    char id[ID_MAX];
    text_make_id("token", now_ms, id);
    json_object_set_new(claims, "otu", json_true());
    json_object_set_new(claims, "jti", json_string(id));
}

/* Adds the user who requests the token. Rights beyond those of other public tokens are
 * granted for this user, as long as the personal token is valid (auth.h). */
static void add_actor(const struct identity *identity, json_t *claims)
{
    char id[SECRET_ID_LEN + 1];
    secret_show_id(identity->secret, id);
    json_object_set_new(claims, "act",
                        json_pack("{s:s, s:s}", "sub", identity->user->id, "pat", id));
}

static enum err sign_requested(struct api_call *call, const struct token_request *request)
{
    int64_t now_ms = now_of(call), ttl_ms;
    enum err err = check_limits(call, request);
    if (!err)
        err = read_expiry(call, request->expiry, now_ms, &ttl_ms);
    if (err)
        return err;
    json_t *claims = json_object();
    if (request->scopes)
        json_object_set(claims, "scopes", request->scopes);
    if (json_is_true(request->once))
        limit_to_one_use(claims, now_ms);
    if (request->realtime)
        json_object_set(claims, "realtime", request->realtime);
    if (call->identity->user)
        add_actor(call->identity, claims);
    return sign_token(call, claims, now_ms, ttl_ms);
}

static enum err make_public(struct api_call *call)
{
    json_t *body;
    enum err err = api_read_json(call, &body);
    if (err)
        return err;
    const struct token_request request = { .scopes = json_object_get(body, "scopes"),
                                           .once = json_object_get(body, "oneTimeUse"),
                                           .once_name = "oneTimeUse",
                                           .realtime = json_object_get(body, "realtime"),
                                           .expiry =
                                               json_object_get(body, "expirationTime") };
    err = check_scopes(call, request.scopes);
    if (!err)
        err = sign_requested(call, &request);
    json_decref(body);
    return err;
}

/* Creates a token with the claims that the SDKs put into tokens that they sign
 * themselves. */
static enum err make_token(struct api_call *call)
{
    json_t *body = NULL;
    enum err err = OK;
    if (slice_trim(call->x->body).len)
        err = api_read_json(call, &body);
    if (err)
        return err;
    const json_t *claims = json_object_get(body, "claims");
    const struct token_request request = { .scopes = json_object_get(claims, "scopes"),
                                           .once = json_object_get(claims, "otu"),
                                           .once_name = "claims.otu",
                                           .realtime = json_object_get(claims, "realtime"),
                                           .expiry =
                                               json_object_get(body, "expirationTime") };
    bool none = json_is_array(request.scopes) && !json_array_size(request.scopes);
    if (claims && !json_is_object(claims))
        err = explain(&call->why, ERR_INVALID, "claims: must be an object");
    else if (request.scopes && !none)
        err = check_scopes(call, request.scopes);
    if (!err)
        err = sign_requested(call, &request);
    json_decref(body);
    return err;
}

/* Creates a token for a person: for any environment of the project, and for at most an
 * hour. */
static enum err make_token_of(struct api_call *call)
{
    struct account *account;
    enum err refused =
        project_find_environment(call, call->params[0], call->params[1], &account);
    if (refused)
        return refused;
    if (account->type == ENVIRONMENT_PREVIEW && !account->parent)
        return explain(&call->why, ERR_INVALID,
                       "Only branches of preview have runs; name one in x-trigger-branch");
    api_enter_environment(call, account);
    return make_token(call);
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = "/api/v1/auth/jwt/claims",
      .auth = AUTH_KEY | RATE_FREE, .body_limit = CLAIMS_BODY, .handle = show_claims,
      .id = "get_jwt_claims_v1", .summary = "Claims for a token that the client signs",
      .reply = "{sub: string, pub: boolean}" },
    { .method = HTTP_POST_, .path = "/api/v1/auth/public-tokens",
      .auth = AUTH_KEY, .body_limit = TOKEN_BODY, .handle = make_public,
      .id = "create_public_token_v1", .summary = "Sign a public access token",
      .body = "{scopes: string[], expirationTime?: string|number, oneTimeUse?: boolean, "
          "realtime?: {skipColumns?: string[], ...}, ...}",
      .reply = "{token: string}" },
    { .method = HTTP_POST_, .path = "/api/v1/auth/jwt",
      .auth = AUTH_KEY, .body_limit = TOKEN_BODY, .handle = make_token,
      .id = "create_jwt_v1", .summary = "Sign a token with claims",
      .body = "{claims?: {scopes?: string[], otu?: boolean, realtime?: {skipColumns?: "
          "string[], ...}, ...}, expirationTime?: string|number, ...}",
      .reply = "{token: string}" },
    { .method = HTTP_POST_, .path = "/api/v1/projects/{projectRef}/{env}/jwt",
      .auth = AUTH_PERSONAL, .body_limit = TOKEN_BODY, .handle = make_token_of,
      .id = "create_environment_jwt_v1", .summary = "Sign a token of an environment",
      .body = "{claims?: {scopes?: string[], otu?: boolean, realtime?: {skipColumns?: "
          "string[], ...}, ...}, expirationTime?: string|number, ...}",
      .reply = "{token: string}" },
    { 0 },
};
/* clang-format on */

const struct area tokens_area = { .tag = "tokens", .is_for_users = true, .routes = routes };
