/* account_draft.c - writes the documents that account_documents.c reads. */
#include "accounts/account_draft.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/utf8.h"

enum { LINK_TTL_MS = 5 * 60 * 1000, EXPIRED_MAX = 32 /* removed with one draft */ };

/* Takes ownership of body. NULL: the document is deleted. */
static void add(struct draft *draft, enum document_kind kind, const char *name,
                uint32_t expected, struct buf *body)
{
    assert(draft->count < DRAFT_MAX);
    draft->changes[draft->count++] = (struct change){
        .kind = CHANGE_DOCUMENT,
        .env = ENV_INSTALLATION,
        .expected = expected,
        .document = { .kind = kind,
                      .env = ENV_INSTALLATION,
                      .name = bytes_create(slice_of(name)),
                      .body = body ? buf_to_bytes(body) : NULL },
    };
    if (body)
        buf_finish(body);
}

static void draft_begin_body(struct draft *draft, struct buf *body, const char *prefix,
                             char id[ID_MAX])
{
    text_make_id(prefix, draft->now_ms, id);
    buf_print(body, "{\"id\":\"%s\",\"createdAt\":%lld", id, (long long)draft->now_ms);
}

static void add_member(struct buf *body, const char *name, struct slice text)
{
    buf_print(body, ",\"%s\":", name);
    buf_add_json(body, text);
}

/* Characters that no name may contain: controls, of which some move a terminal's cursor or
 * change the direction of text, and invisible ones, with which a name looks like another.
 *
 * Cc, Cf, Zl, Zp and fillers (Unicode 15, 23.2 and UAX 9). */
static const struct characters {
    uint32_t first, last;
} hidden[] = {
    { 0x0, 0x1f },        { 0x7f, 0x9f },     { 0xad, 0xad },     { 0x34f, 0x34f },
    { 0x61c, 0x61c },     { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 }, { 0x180b, 0x180f },
    { 0x200b, 0x200b },   { 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
    { 0x3164, 0x3164 },   { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff9, 0xfffb },
    { 0xe0000, 0xe0fff },
};

/* Spaces, and the blank pattern of Braille. */
static const struct characters blank[] = {
    { 0x20, 0x20 },     { 0xa0, 0xa0 },     { 0x1680, 0x1680 }, { 0x2000, 0x200a },
    { 0x202f, 0x202f }, { 0x205f, 0x205f }, { 0x2800, 0x2800 }, { 0x3000, 0x3000 },
};

/* They join letters of some scripts, and make emoji. */
static const struct characters joining[] = { { 0x200c, 0x200d }, { 0xfe00, 0xfe0f } };

static bool is_among(const struct characters *ranges, size_t count, uint32_t character)
{
    for (size_t i = 0; i < count; i++)
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    return false;
}

#define IS(ranges, character)                                                              \
    is_among(ranges, sizeof(ranges) / sizeof(*(ranges)), character)

/* Takes one character off the text, which is UTF-8. */
static uint32_t take_character(struct slice *text)
{
    static const unsigned char first_bits[] = { 0x7f, 0x1f, 0x0f, 0x07 };
    uint8_t low, high, more = utf8_lead((unsigned char)text->ptr[0], &low, &high);
    uint32_t character = (unsigned char)text->ptr[0] & first_bits[more];
    for (uint8_t i = 1; i <= more; i++)
        character = character << 6 | ((unsigned char)text->ptr[i] & 0x3f);
    *text = slice_from(*text, 1 + (size_t)more);
    return character;
}

bool account_name_is_right(struct slice name)
{
    bool is_seen = false;
    uint32_t before = 0;
    if (!name.len || name.len > ACCOUNT_NAME_MAX || !text_is_utf8(name))
        return false;
    while (name.len) {
        uint32_t character = take_character(&name);
        bool joins = IS(joining, character);
        if (IS(hidden, character) || (joins && (before < 0x80 || IS(blank, before))))
            return false;
        is_seen |= !joins && !IS(blank, character);
        before = character;
    }
    return is_seen;
}

void account_make_slug(struct slice name, char slug[ACCOUNT_NAME_MAX + 1])
{
    size_t len = 0;
    for (size_t i = 0; i < name.len && len < ACCOUNT_NAME_MAX; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (isascii(c) && isalnum(c))
            slug[len++] = (char)tolower(c);
        else if (len && slug[len - 1] != '-')
            slug[len++] = '-';
    }
    while (len && slug[len - 1] == '-')
        len--;
    if (!len)
        slug[len++] = 'x';
    slug[len] = '\0';
}

void draft_organization(struct draft *draft, struct slice name, struct slice slug,
                        char id[ID_MAX])
{
    struct buf body = { 0 };
    draft_begin_body(draft, &body, "org", id);
    add_member(&body, "name", name);
    add_member(&body, "slug", slug);
    buf_add_char(&body, '}');
    add(draft, DOC_ORGANIZATION, id, 0, &body);
}

void draft_project(struct draft *draft, const char *organization_id, const char *ref,
                   struct slice name, struct slice slug, char id[ID_MAX])
{
    struct buf body = { 0 };
    draft_begin_body(draft, &body, "project", id);
    add_member(&body, "ref", slice_of(ref));
    add_member(&body, "name", name);
    add_member(&body, "slug", slug);
    add_member(&body, "organization", slice_of(organization_id));
    buf_add_char(&body, '}');
    add(draft, DOC_PROJECT, id, 0, &body);
}

/* ---- keys ---- */

enum { DOCUMENT_NAME_MAX = 2 * ID_MAX };

struct key_draft {
    const char *environment_id;
    const char *name; /* of the document */
    const char *key;
    struct slice label; /* absent: the main key */
    int64_t created_at, ends_at, used_at;
    bool replaced;
    const char *by; /* document of the key that has replaced it; NULL: unknown */
    uint32_t expected;
};

static void add_key(struct draft *draft, const struct key_draft *one)
{
    struct buf body = { 0 };
    buf_print(&body, "{\"environment\":\"%s\",\"createdAt\":%lld", one->environment_id,
              (long long)one->created_at);
    if (one->label.ptr)
        add_member(&body, "name", one->label);
    if (one->ends_at)
        buf_print(&body, ",\"endsAt\":%lld", (long long)one->ends_at);
    if (one->used_at)
        buf_print(&body, ",\"usedAt\":%lld", (long long)one->used_at);
    if (one->replaced)
        buf_add_text(&body, ",\"replaced\":true");
    if (one->by)
        add_member(&body, "by", slice_of(one->by));
    buf_add_text(&body, ",\"sealed\":\"");
    vault_seal(draft->vault, slice_of(one->name), slice_of(one->key), &body);
    buf_add_text(&body, "\"}");
    add(draft, DOC_KEY, one->name, one->expected, &body);
}

/* Writes the name of its document to name. */
static void add_new_key(struct draft *draft, const char *environment_id, struct slice label,
                        const char *key, int64_t ends_at, char name[DOCUMENT_NAME_MAX])
{
    char id[ID_MAX];
    text_make_id("key", draft->now_ms, id);
    snprintf(name, DOCUMENT_NAME_MAX, "%s:%s", environment_id, id);
    add_key(draft, &(struct key_draft){ .environment_id = environment_id,
                                        .name = name,
                                        .key = key,
                                        .label = label,
                                        .created_at = draft->now_ms,
                                        .ends_at = ends_at });
}

void draft_end(struct draft *draft, const struct secret *secret)
{
    enum document_kind kind = secret->account   ? DOC_KEY
                              : secret->project ? DOC_WORKER_TOKEN
                                                : DOC_TOKEN;
    add(draft, kind, secret->document, secret->version, NULL);
}

static bool has_room(const struct draft *draft)
{
    return draft->count < DRAFT_MAX;
}

static bool contains(const struct draft *draft, const char *document)
{
    for (size_t i = 0; i < draft->count; i++)
        if (slice_is(bytes_slice(draft->changes[i].document.name), document))
            return true;
    return false;
}

/* Those of a deleted project go with it. */
static bool has_expired(const struct secret *secret, int64_t now_ms)
{
    return (secret->user || (secret->account && !secret->account->archived)) &&
           !secret_is_valid(secret, now_ms);
}

void draft_end_expired(struct draft *draft, const struct accounts *accounts)
{
    const struct secret *secret;
    int count = 0;
    for (size_t at = 0; (secret = accounts_next_secret(accounts, &at));) {
        if (count == EXPIRED_MAX || !has_room(draft))
            return;
        if (!has_expired(secret, draft->now_ms) || contains(draft, secret->document))
            continue;
        draft_end(draft, secret);
        count++;
    }
}

void draft_revoke_token(struct draft *draft, const struct secret *token)
{
    size_t at = draft->count;
    draft_end(draft, token);
    for (; at < draft->count; at++) {
        struct slice maker = bytes_slice(draft->changes[at].document.name);
        list_each (link, &token->user->secrets) {
            const struct secret *secret = container_of(link, struct secret, of_owner);
            if (secret->by && slice_is(maker, secret->by) && has_room(draft))
                draft_end(draft, secret);
        }
    }
}

/* Describes a key as it is. Its label is absent if it is a main key. */
static struct key_draft key_again(const struct secret *secret)
{
    return (struct key_draft){ .environment_id = secret->account->id,
                               .name = secret->document,
                               .key = secret->key,
                               .label = slice_of(secret->name),
                               .created_at = secret->created_at,
                               .ends_at = secret->ends_at,
                               .used_at = secret->used_at,
                               .replaced = secret->replaced,
                               .by = secret->by,
                               .expected = secret->version };
}

/* A key that was replaced earlier keeps its end, unless this grace period ends sooner. */
static void retire(struct draft *draft, const struct secret *secret, int64_t grace_ms,
                   const char *by)
{
    int64_t end = draft->now_ms + grace_ms;
    struct key_draft again;
    if (!grace_ms || !secret_is_valid(secret, draft->now_ms)) {
        draft_end(draft, secret);
    } else if (!secret->ends_at || secret->ends_at > end || !secret->replaced) {
        again = key_again(secret);
        again.ends_at = !secret->ends_at || secret->ends_at > end ? end : secret->ends_at;
        again.replaced = true;
        again.by = by;
        add_key(draft, &again);
    }
}

void draft_rotate(struct draft *draft, struct account *account, const char *key,
                  int64_t grace_ms)
{
    char name[DOCUMENT_NAME_MAX];
    add_new_key(draft, account->id, (struct slice){ 0 }, key, 0, name);
    list_each (link, &account->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        if (!secret->name &&
            draft->count < DRAFT_MAX) /* the next rotation retires the rest */
            retire(draft, secret, grace_ms, name);
    }
}

void draft_key(struct draft *draft, const struct account *account, struct slice label,
               const char *key, int64_t ends_at)
{
    char name[DOCUMENT_NAME_MAX];
    add_new_key(draft, account->id, label, key, ends_at, name);
}

void draft_replace_key(struct draft *draft, const struct secret *secret, const char *key,
                       int64_t grace_ms)
{
    char name[DOCUMENT_NAME_MAX];
    int64_t lifetime_ms = secret->ends_at ? secret->ends_at - secret->created_at : 0;
    add_new_key(draft, secret->account->id, slice_of(secret->name), key,
                lifetime_ms ? draft->now_ms + lifetime_ms : 0, name);
    list_each (link, &secret->account->secrets) {
        const struct secret *older = container_of(link, struct secret, of_owner);
        if (older->by && strcmp(older->by, secret->document) == 0 && has_room(draft))
            draft_end(draft, older);
    }
    retire(draft, secret, grace_ms, name);
}

/* ---- last uses ---- */

/* Writes a token of a user or a worker again, with its last use. */
static void add_token_again(struct draft *draft, const struct secret *secret)
{
    struct buf body = { 0 };
    buf_print(&body, "{\"hash\":\"%s\",\"createdAt\":%lld,\"usedAt\":%lld",
              secret->document, (long long)secret->created_at, (long long)secret->used_at);
    add_member(&body, secret->user ? "user" : "project", slice_of(secret->owner_id));
    if (secret->ends_at)
        buf_print(&body, ",\"endsAt\":%lld", (long long)secret->ends_at);
    if (secret->serves)
        buf_print(&body, ",\"serves\":%u", secret->serves);
    if (secret->signed_in)
        buf_add_text(&body, ",\"signIn\":true");
    if (secret->by)
        add_member(&body, "by", slice_of(secret->by));
    add_member(&body, "name", slice_of(secret->name));
    buf_add_char(&body, '}');
    add(draft, secret->user ? DOC_TOKEN : DOC_WORKER_TOKEN, secret->document,
        secret->version, &body);
}

size_t draft_uses(struct draft *draft, const struct accounts *accounts)
{
    const struct secret *secret;
    size_t count = 0;
    for (size_t at = 0; (secret = accounts_next_secret(accounts, &at));) {
        if (count == DRAFT_USES_MAX)
            break;
        if (!secret_has_unstored_use(secret, draft->now_ms))
            continue;
        count++;
        if (!secret->account) {
            add_token_again(draft, secret);
            continue;
        }
        struct key_draft again = key_again(secret);
        add_key(draft, &again);
    }
    return count;
}

/* ---- environments ---- */

void draft_environment(struct draft *draft, uint32_t number, const char *project_id,
                       enum environment_type type, const char *key)
{
    char id[ID_MAX], key_name[DOCUMENT_NAME_MAX];
    struct buf body = { 0 };
    draft_begin_body(draft, &body, "env", id);
    buf_print(&body, ",\"number\":%u,\"type\":\"%s\",\"project\":\"%s\"}", number,
              environment_slug(type), project_id);
    add(draft, DOC_ENVIRONMENT, id, 0, &body);
    snprintf(key_name, sizeof(key_name), "%s:root", id);
    add_key(draft, &(struct key_draft){ .environment_id = id,
                                        .name = key_name,
                                        .key = key,
                                        .created_at = draft->now_ms });
}

void draft_whole_project(struct draft *draft, const char *organization_id, const char *ref,
                         struct slice name, uint32_t number,
                         char keys[ENVIRONMENT_TYPES][SECRET_KEY_MAX])
{
    char slug[ACCOUNT_NAME_MAX + 1], id[ID_MAX];
    account_make_slug(name, slug);
    draft_project(draft, organization_id, ref, name, slice_of(slug), id);
    for (int i = 0; i < ENVIRONMENT_TYPES; i++) {
        bootstrap_generate_key((enum environment_type)i, keys[i]);
        draft_environment(draft, number + (uint32_t)i, id, (enum environment_type)i,
                          keys[i]);
    }
}

static void add_branch(struct buf *body, uint32_t number, const char *project_id,
                       const char *parent_id, struct slice name)
{
    buf_print(body,
              ",\"number\":%u,\"type\":\"preview\",\"project\":\"%s\",\"parent\":\"%s\"",
              number, project_id, parent_id);
    add_member(body, "branch", name);
}

void draft_branch(struct draft *draft, uint32_t number, const struct account *preview,
                  struct slice name, char id[ID_MAX])
{
    struct buf body = { 0 };
    draft_begin_body(draft, &body, "env", id);
    add_branch(&body, number, preview->project_id, preview->id, name);
    buf_add_char(&body, '}');
    add(draft, DOC_ENVIRONMENT, id, 0, &body);
}

void draft_archive(struct draft *draft, const struct account *branch)
{
    struct buf body = { 0 };
    buf_print(&body, "{\"id\":\"%s\",\"createdAt\":%lld", branch->id,
              (long long)branch->created_at);
    add_branch(&body, branch->number, branch->project_id, branch->parent_id,
               slice_of(branch->branch));
    buf_print(&body, ",\"archivedAt\":%lld}", (long long)draft->now_ms);
    add(draft, DOC_ENVIRONMENT, branch->id, branch->version, &body);
}

/* ---- users ---- */

void draft_user(struct draft *draft, const char *organization_id, struct slice name,
                struct slice email, char id[ID_MAX])
{
    struct buf body = { 0 };
    draft_begin_body(draft, &body, "user", id);
    add_member(&body, "name", name);
    add_member(&body, "email", email);
    add_member(&body, "organization", slice_of(organization_id));
    buf_add_char(&body, '}');
    add(draft, DOC_USER, id, 0, &body);
}

static void begin_token(struct buf *body, const char *token,
                        char hash_text[2 * HASH_LEN + 1])
{
    unsigned char hash[HASH_LEN];
    vault_hash(slice_of(token), hash);
    text_to_hex(hash, HASH_LEN, hash_text);
    buf_print(body, "{\"hash\":\"%s\"", hash_text);
}

static void add_token(struct draft *draft, enum document_kind kind, struct buf *body,
                      struct slice name, const char *hash_text)
{
    buf_print(body, ",\"createdAt\":%lld", (long long)draft->now_ms);
    add_member(body, "name", name);
    buf_add_char(body, '}');
    add(draft, kind, hash_text, 0, body);
}

void draft_token(struct draft *draft, const char *user_id, const struct secret *by,
                 struct slice name, const char *token, int64_t ends_at)
{
    char hash_text[2 * HASH_LEN + 1];
    struct buf body = { 0 };
    begin_token(&body, token, hash_text);
    add_member(&body, "user", slice_of(user_id));
    if (ends_at)
        buf_print(&body, ",\"endsAt\":%lld", (long long)ends_at);
    if (by)
        add_member(&body, "by", slice_of(by->document));
    add_token(draft, DOC_TOKEN, &body, name, hash_text);
}

void draft_sign_in(struct draft *draft, const char *user_id, const struct secret *by,
                   const char *token, int64_t ends_at)
{
    char hash_text[2 * HASH_LEN + 1];
    struct buf body = { 0 };
    begin_token(&body, token, hash_text);
    add_member(&body, "user", slice_of(user_id));
    buf_print(&body, ",\"endsAt\":%lld,\"signIn\":true", (long long)ends_at);
    if (by)
        add_member(&body, "by", slice_of(by->document));
    add_token(draft, DOC_TOKEN, &body, SLICE("dashboard"), hash_text);
}

static void add_hash(struct buf *body, const char *name, const unsigned char hash[HASH_LEN])
{
    char text[2 * HASH_LEN + 1];
    text_to_hex(hash, HASH_LEN, text);
    add_member(body, name, slice_of(text));
}

/* Adds what accounts_add reads back. A lasting sign-in has a key, or codes. of: itself, or
 * the sign-in that makes it. */
static void add_lasting(struct buf *body, const struct secret *of, const char *by,
                        const struct lasting *lasting, int64_t ends_at)
{
    char key[2 * LASTING_KEY_LEN];
    struct slice bytes = { (const char *)lasting->key, LASTING_KEY_LEN };
    add_member(body, "user", slice_of(of->user->id));
    if (of->proof_ends_at)
        buf_print(body, ",\"proofEndsAt\":%lld", (long long)of->proof_ends_at);
    buf_print(body, ",\"endsAt\":%lld,\"signIn\":true,\"usedAt\":%lld", (long long)ends_at,
              (long long)lasting->used_at);
    if (by)
        add_member(body, "by", slice_of(by));
    if (lasting->has_key) {
        size_t len = text_to_base64url(bytes, key);
        add_member(body, "publicKey", (struct slice){ key, len });
    } else {
        add_hash(body, "code", lasting->current);
        add_hash(body, "codeBefore", lasting->before);
    }
}

void draft_lasting(struct draft *draft, const struct secret *sign_in,
                   const struct secret *by, const char *id, const struct lasting *lasting,
                   int64_t ends_at)
{
    char hash_text[2 * HASH_LEN + 1];
    struct buf body = { 0 };
    begin_token(&body, id, hash_text);
    add_lasting(&body, sign_in, by ? by->document : NULL, lasting, ends_at);
    add_token(draft, DOC_TOKEN, &body, SLICE("dashboard, stays signed in"), hash_text);
}

void draft_lasting_again(struct draft *draft, const struct secret *secret,
                         const struct lasting *lasting, int64_t ends_at)
{
    struct buf body = { 0 };
    buf_print(&body, "{\"hash\":\"%s\",\"createdAt\":%lld", secret->document,
              (long long)secret->created_at);
    add_lasting(&body, secret, secret->by, lasting, ends_at);
    add_member(&body, "name", slice_of(secret->name));
    buf_add_char(&body, '}');
    add(draft, DOC_TOKEN, secret->document, secret->version, &body);
}

void draft_link(struct draft *draft, const char *user_id, const char *token)
{
    draft_token(draft, user_id, NULL, SLICE("one-time link"), token,
                draft->now_ms + LINK_TTL_MS);
}

void draft_worker_token(struct draft *draft, const char *project_id, unsigned serves,
                        struct slice name, const char *token)
{
    char hash_text[2 * HASH_LEN + 1];
    struct buf body = { 0 };
    begin_token(&body, token, hash_text);
    add_member(&body, "project", slice_of(project_id));
    buf_print(&body, ",\"serves\":%u", serves);
    add_token(draft, DOC_WORKER_TOKEN, &body, name, hash_text);
}

/* ---- renaming ---- */

static void begin_again(struct buf *body, const char *id, int64_t created_at,
                        struct slice name)
{
    buf_print(body, "{\"id\":\"%s\",\"createdAt\":%lld", id, (long long)created_at);
    add_member(body, "name", name);
}

void draft_rename_organization(struct draft *draft, const struct organization *organization,
                               struct slice name)
{
    struct buf body = { 0 };
    begin_again(&body, organization->id, organization->created_at, name);
    add_member(&body, "slug", slice_of(organization->slug));
    buf_add_char(&body, '}');
    add(draft, DOC_ORGANIZATION, organization->id, organization->version, &body);
}

void draft_rename_project(struct draft *draft, const struct project *project,
                          struct slice name)
{
    struct buf body = { 0 };
    begin_again(&body, project->id, project->created_at, name);
    add_member(&body, "ref", slice_of(project->ref));
    add_member(&body, "slug", slice_of(project->slug));
    add_member(&body, "organization", slice_of(project->organization_id));
    buf_add_char(&body, '}');
    add(draft, DOC_PROJECT, project->id, project->version, &body);
}

void draft_rename_user(struct draft *draft, const struct user *user, struct slice name)
{
    struct buf body = { 0 };
    begin_again(&body, user->id, user->created_at, name);
    add_member(&body, "email", slice_of(user->email));
    add_member(&body, "organization", slice_of(user->organization_id));
    buf_add_char(&body, '}');
    add(draft, DOC_USER, user->id, user->version, &body);
}

void draft_delete_user(struct draft *draft, const struct user *user)
{
    add(draft, DOC_USER, user->id, user->version, NULL);
}

/* ---- deleting organizations and projects ---- */

void draft_delete_organization(struct draft *draft, const struct organization *organization)
{
    add(draft, DOC_ORGANIZATION, organization->id, organization->version, NULL);
}

/* The document of a deleted project has no names: they are not shown again. */
void draft_delete_project(struct draft *draft, const struct project *project)
{
    struct buf body = { 0 };
    buf_print(&body, "{\"id\":\"%s\",\"createdAt\":%lld", project->id,
              (long long)project->created_at);
    add_member(&body, "ref", slice_of(project->ref));
    add_member(&body, "organization", slice_of(project->organization_id));
    buf_print(&body, ",\"deletedAt\":%lld}", (long long)draft->now_ms);
    add(draft, DOC_PROJECT, project->id, project->version, &body);
}

static void end_secrets(struct draft *draft, const struct list *secrets)
{
    list_each (link, secrets)
        if (has_room(draft))
            draft_end(draft, container_of(link, struct secret, of_owner));
}

static void forget_environments(struct draft *draft, struct accounts *accounts,
                                const struct project *project, bool branches)
{
    for (struct account *a = NULL; (a = accounts_next(accounts, a));)
        if (a->project == project && !a->forgotten && branches == (a->parent != NULL) &&
            has_room(draft))
            add(draft, DOC_ENVIRONMENT, a->id, a->version, NULL);
}

void draft_forget_project(struct draft *draft, struct accounts *accounts,
                          const struct project *project)
{
    end_secrets(draft, &project->secrets);
    for (struct account *a = NULL; (a = accounts_next(accounts, a));)
        if (a->project == project)
            end_secrets(draft, &a->secrets);
    forget_environments(draft, accounts, project, true);
    forget_environments(draft, accounts, project, false);
    if (has_room(draft) && !project->forgotten)
        add(draft, DOC_PROJECT, project->id, project->version, NULL);
}
