/* credentials.c - the routes of keys and tokens, and the handlers that list them.
 *
 * Lists show names, when a credential was created, and when a request last used it. They
 * never contain a secret. */
#include "api/router/credentials.h"

#include "api/request/project.h"
#include "api/router/credential_write.h"
#include "base/json/members.h"

enum { NO_BODY = 4096, KEY_END = 4 /* last characters of a key that are shown */ };

static void begin_item(struct buf *out)
{
    if (out->ptr[out->len - 1] != '[')
        buf_add_char(out, ',');
    buf_add_char(out, '{');
}

static void end_list(struct api_call *call, struct buf *out)
{
    buf_add_text(out, "]}");
    api_reply_json(call, 200, buf_slice(out));
    buf_finish(out);
}

static int64_t now_of(const struct api_call *call)
{
    return loop_wall_ms(engine_loop(api_engine(call->api)));
}

static void add_times(const struct secret *secret, struct buf *out)
{
    members_add_time(out, "createdAt", secret->created_at);
    members_add_time(out, "expiresAt", secret->ends_at);
    members_add_time(out, "lastUsedAt", secret->used_at);
    buf_add_char(out, '}');
}

/* Lists the caller's tokens. */
static enum err list_tokens(struct api_call *call)
{
    const struct identity *identity = call->identity;
    struct buf out = { 0 };
    buf_add_text(&out, "{\"data\":[");
    list_each (link, &identity->user->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        char id[SECRET_ID_LEN + 1];
        if (!secret_is_valid(secret, now_of(call)))
            continue;
        secret_show_id(secret, id);
        begin_item(&out);
        members_add_text(&out, "id", slice_of(id));
        members_add_text(&out, "name", slice_of(secret->name ? secret->name : ""));
        members_add_bool(&out, "isThis", secret == identity->secret);
        members_add_bool(&out, "isSignIn", secret->signed_in);
        add_times(secret, &out);
    }
    end_list(call, &out);
    return OK;
}

/* Adds a key as "tr_dev_…aB3x", which is enough to tell keys apart. */
static void add_key(const struct secret *secret, struct buf *out)
{
    struct slice key = slice_of(secret->key), rest = key, part, name = { key.ptr, 0 };
    for (int i = 0; i < 2 && slice_split(&rest, '_', &part); i++)
        name.len = (size_t)(part.ptr + part.len + 1 - key.ptr);
    struct buf shown = { 0 };
    buf_add(&shown, name);
    buf_add_text(&shown, "…");
    if (key.len > name.len + 2 * KEY_END)
        buf_add(&shown, slice_from(key, key.len - KEY_END));
    char id[SECRET_ID_LEN + 1];
    secret_show_id(secret, id);
    begin_item(out);
    members_add_text(out, "id", slice_of(id));
    members_add_text(out, "name", buf_slice(&shown));
    members_add_text(out, "label", slice_of(secret->name));
    members_add_bool(out, "isMain", !secret->name);
    members_add_bool(out, "isReplaced", secret->replaced);
    buf_finish(&shown);
    add_times(secret, out);
}

/* Lists the keys of an environment: the current one, and replaced ones that are still
 * valid. */
static enum err list_keys(struct api_call *call)
{
    struct account *account;
    struct buf out = { 0 };
    enum err refused =
        project_find_environment(call, call->params[0], call->params[1], &account);
    if (refused)
        return refused;
    buf_add_text(&out, "{\"data\":[");
    list_each (link, &account_of_keys(account)->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        if (secret->key && secret_is_valid(secret, now_of(call)))
            add_key(secret, &out);
    }
    end_list(call, &out);
    return OK;
}

#define KEYS "/api/v1/projects/{projectRef}/{env}/keys"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/tokens",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = list_tokens,
      .id = "list_tokens_v1", .summary = "List the personal access tokens of the person",
      .reply = "{data: {id: string, name: string, isThis: boolean, isSignIn: boolean, "
          "createdAt?: datetime, expiresAt?: datetime, lastUsedAt?: datetime}[]}" },
    { .method = HTTP_POST_, .path = "/api/v1/tokens",
      .auth = AUTH_PERSONAL, .body_limit = CREDENTIAL_BODY, .handle = token_create,
      .id = "create_token_v1", .summary = "Make a personal access token, which is shown once",
      .body = "{name: string, expiresIn?: string|null, ...}",
      .reply = "{id: string, name: string, token: string, expiresAt?: datetime}",
      .also = "403 422" },
    { .method = HTTP_DELETE_, .path = "/api/v1/tokens/{tokenId}",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = token_revoke,
      .id = "revoke_token_v1", .summary = "Revoke a personal access token, after a fresh sign-in",
      .reply = "{...}",
      .also = "403" },
    { .method = HTTP_GET_, .path = KEYS,
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = list_keys,
      .id = "list_keys_v1", .summary = "List the secret keys of an environment, without "
          "what is secret of them",
      .reply = "{data: {id: string, name: string, label?: string, isMain: boolean, "
          "isReplaced: boolean, createdAt?: datetime, expiresAt?: datetime, lastUsedAt?: "
          "datetime}[]}" },
    { .method = HTTP_POST_, .path = KEYS,
      .auth = AUTH_PERSONAL, .body_limit = CREDENTIAL_BODY, .handle = key_create,
      .claims = true, .id = "create_key_v1", .summary = "Make another secret key of an environment",
      .body = "{name: string, expiresIn?: string|null, ...}",
      .reply = "{id: string, key: string}",
      .also = "422" },
    { .method = HTTP_POST_, .path = KEYS "/{keyId}/reveal",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = key_reveal,
      .id = "reveal_key_v1", .summary = "Show a secret key; the audit log records who saw it",
      .reply = "{id: string, key: string}" },
    { .method = HTTP_POST_, .path = KEYS "/{keyId}/rotate",
      .auth = AUTH_PERSONAL, .body_limit = CREDENTIAL_BODY, .handle = key_rotate,
      .id = "rotate_key_v1", .summary = "Replace a secret key, after a fresh sign-in",
      .body = "{grace?: string|null, ...}",
      .reply = "{id: string, key: string}",
      .also = "403 409 422" },
    { .method = HTTP_DELETE_, .path = KEYS "/{keyId}",
      .auth = AUTH_PERSONAL, .body_limit = NO_BODY, .handle = key_revoke,
      .id = "revoke_key_v1", .summary = "Revoke a secret key, after a fresh sign-in",
      .reply = "{...}",
      .also = "403 422" },
    { 0 },
};
/* clang-format on */

const struct area credentials_area = { .tag = "tokens",
                                       .is_for_users = true,
                                       .routes = routes };
