/* first_accounts.c - the documents of an installation that has none yet.
 *
 * One organization with one project, its four environments with their keys, and one user
 * with one token: what somebody needs to trigger a first run, and nothing to configure. */
#include "auth/accounts.h"

#include <assert.h>
#include <stdio.h>

#include "base/buf.h"

enum { CHANGES_MAX = 16 };

struct draft {
    struct change *changes;
    size_t count;
};

/* Takes over body. */
static void add(struct draft *draft, enum document_kind kind, const char *name,
                struct buf *body)
{
    assert(draft->count < CHANGES_MAX);
    draft->changes[draft->count++] = (struct change){
        .kind = CHANGE_DOCUMENT,
        .env = ENV_INSTALLATION,
        .document = { .kind = kind,
                      .env = ENV_INSTALLATION,
                      .name = bytes_create(slice_of(name)),
                      .body = buf_to_bytes(body) },
    };
    buf_finish(body);
}

static void add_environment(struct draft *draft, const struct vault *vault,
                            const char *project_id, enum environment_type type,
                            const char *key, int64_t now_ms)
{
    char id[ID_MAX], key_name[ID_MAX + 8];
    struct buf environment = { 0 }, root = { 0 };
    text_make_id("env", now_ms, id);
    buf_print(&environment,
              "{\"number\":%d,\"id\":\"%s\",\"type\":\"%s\",\"project\":\"%s\"}",
              (int)type + 1, id, environment_slug(type), project_id);
    add(draft, DOC_ENVIRONMENT, id, &environment);

    snprintf(key_name, sizeof(key_name), "%s:root", id);
    buf_print(&root, "{\"environment\":\"%s\",\"sealed\":\"", id);
    vault_seal(vault, slice_of(key_name), slice_of(key), &root);
    buf_add_text(&root, "\"}");
    add(draft, DOC_KEY, key_name, &root);
}

static void add_user(struct draft *draft, const char *organization_id, const char *token,
                     int64_t now_ms)
{
    char id[ID_MAX], hash_text[2 * HASH_LEN + 1];
    unsigned char hash[HASH_LEN];
    struct buf user = { 0 }, personal_token = { 0 };
    text_make_id("user", now_ms, id);
    buf_print(&user,
              "{\"id\":\"%s\",\"name\":\"Admin\",\"email\":\"admin@localhost\","
              "\"organization\":\"%s\"}",
              id, organization_id);
    add(draft, DOC_USER, id, &user);

    vault_hash(slice_of(token), hash);
    text_to_hex(hash, HASH_LEN, hash_text);
    buf_print(&personal_token, "{\"hash\":\"%s\",\"user\":\"%s\"}", hash_text, id);
    add(draft, DOC_TOKEN, hash_text, &personal_token);
}

size_t accounts_bootstrap(struct accounts *accounts, const struct bootstrap *bootstrap,
                          int64_t now_ms, struct change changes[16])
{
    struct draft draft = { .changes = changes };
    char organization_id[ID_MAX], project_id[ID_MAX];
    struct buf organization = { 0 }, project = { 0 };

    text_make_id("org", now_ms, organization_id);
    buf_print(&organization,
              "{\"id\":\"%s\",\"name\":\"My organization\",\"slug\":\"my-organization\"}",
              organization_id);
    add(&draft, DOC_ORGANIZATION, organization_id, &organization);

    text_make_id("project", now_ms, project_id);
    buf_print(&project,
              "{\"id\":\"%s\",\"ref\":\"%s\",\"name\":\"My project\","
              "\"slug\":\"my-project\",\"organization\":\"%s\"}",
              project_id, bootstrap->project_ref, organization_id);
    add(&draft, DOC_PROJECT, project_id, &project);

    for (int i = 0; i < ENVIRONMENT_TYPES; i++)
        add_environment(&draft, accounts_vault(accounts), project_id,
                        (enum environment_type)i, bootstrap->secret_keys[i], now_ms);
    add_user(&draft, organization_id, bootstrap->personal_token, now_ms);
    return draft.count;
}
