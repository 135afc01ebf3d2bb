/* Changes to accounts, as memory has them after the commit or after the next start. The
 * start reads the documents alone. */
#include "tests/support/world/unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "accounts/account_draft.h"
#include "base/mem.h"

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define NEW_KEY "tr_prod_zzzzzzzzzzzzzzzzzzzzzzzz"
#define NEWER_KEY "tr_prod_yyyyyyyyyyyyyyyyyyyyyyyy"

enum { NOW = 1700000000, DOCUMENTS_MAX = 128 };

static const int64_t now_ms = INT64_C(1000) * NOW;

struct world {
    struct vault *vault;
    struct accounts *accounts;
    struct bootstrap bootstrap;
    struct change changes[DRAFT_MAX];
    struct document stored[DOCUMENTS_MAX]; /* documents of the store; name NULL: free */
};

static struct document *find(struct world *world, const struct document *like)
{
    for (size_t i = 0; i < DOCUMENTS_MAX; i++) {
        struct document *one = &world->stored[i];
        if (one->name && one->kind == like->kind &&
            slice_equal(bytes_slice(one->name), bytes_slice(like->name)))
            return one;
    }
    return NULL;
}

static struct document *find_free(struct world *world)
{
    size_t i = 0;
    while (world->stored[i].name)
        i++;
    return &world->stored[i];
}

/* Stores a change as the store does, then applies it as the writer does. */
static void commit(struct world *world, struct draft *draft)
{
    struct failure why = { 0 };
    for (size_t i = 0; i < draft->count; i++) {
        struct change *change = &draft->changes[i];
        struct document *old = find(world, &change->document);
        assert_int_equal(change->expected, old ? old->version : 0);
        change->document.version = change->expected + 1;
        assert_int_equal(accounts_apply(world->accounts, change, &why), OK);
        struct document *place = old ? old : find_free(world);
        if (old)
            document_finish(old);
        *place = change->document;
        if (!place->body) {
            document_finish(place);
            memset(place, 0, sizeof(*place));
        }
    }
    assert_int_equal(accounts_link(world->accounts, &why), OK);
}

static struct draft begin(struct world *world, int64_t at_ms)
{
    return (
        struct draft){ .vault = world->vault, .now_ms = at_ms, .changes = world->changes };
}

static int make_world(void **state)
{
    struct world *world = mem_new(struct world);
    struct failure why;
    struct draft draft;
    assert_int_equal(vault_open(SLICE(KEY_HEX), NULL, &world->vault, &why), OK);
    world->accounts = accounts_create(world->vault);
    assert_int_equal(bootstrap_prepare(&world->bootstrap, &why), OK);
    draft = begin(world, now_ms);
    draft.count =
        accounts_bootstrap(world->accounts, &world->bootstrap, now_ms, world->changes);
    commit(world, &draft);
    *state = world;
    return 0;
}

static int end_world(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < DOCUMENTS_MAX; i++)
        document_finish(&world->stored[i]);
    accounts_destroy(world->accounts);
    vault_close(world->vault);
    free(world);
    return 0;
}

/* Restarts: memory is filled from the documents alone. */
static void restart(struct world *world)
{
    struct failure why = { 0 };
    accounts_destroy(world->accounts);
    world->accounts = accounts_create(world->vault);
    for (size_t i = 0; i < DOCUMENTS_MAX; i++)
        if (world->stored[i].name)
            assert_int_equal(accounts_add(world->accounts, &world->stored[i], &why), OK);
    assert_int_equal(accounts_link(world->accounts, &why), OK);
}

static struct account *environment(struct world *world, enum environment_type type)
{
    struct project *project =
        accounts_project(world->accounts, slice_of(world->bootstrap.project_ref));
    return accounts_environment(world->accounts, project, type);
}

static struct account *branch(struct world *world, const char *name)
{
    return accounts_branch(world->accounts, environment(world, ENVIRONMENT_PREVIEW),
                           slice_of(name));
}

static void make_branch(struct world *world, const char *name)
{
    char id[ID_MAX];
    struct draft draft = begin(world, now_ms);
    draft_branch(&draft, accounts_free_number(world->accounts),
                 environment(world, ENVIRONMENT_PREVIEW), slice_of(name), id);
    commit(world, &draft);
    assert_string_equal(branch(world, name)->id, id);
}

static void archive(struct world *world, const char *name)
{
    struct draft draft = begin(world, now_ms);
    draft_archive(&draft, branch(world, name));
    commit(world, &draft);
}

/* ---- branches ---- */

static void assert_branch(struct world *world, const char *name, uint32_t number)
{
    struct account *preview = environment(world, ENVIRONMENT_PREVIEW);
    struct account *found = branch(world, name);
    assert_non_null(found);
    assert_int_equal(found->number, number);
    assert_ptr_equal(found->parent, preview);
    assert_ptr_equal(found->project, preview->project);
    assert_string_equal(found->branch, name);
    assert_string_equal(found->secret_key,
                        world->bootstrap.secret_keys[ENVIRONMENT_PREVIEW]);
    assert_ptr_equal(account_of_keys(found), preview);
}

static void branch_is_an_environment_with_the_preview_key(void **state)
{
    struct world *world = *state;
    make_branch(world, "feature/a");
    make_branch(world, "b");
    for (int i = 0; i < 2; i++) {
        assert_branch(world, "feature/a", 5);
        assert_branch(world, "b", 6);
        assert_int_equal(environment(world, ENVIRONMENT_PREVIEW)->branch_count, 2);
        assert_null(environment(world, ENVIRONMENT_PREVIEW)->parent);
        assert_null(branch(world, "c"));
        assert_null(branch(world, ""));
        restart(world);
    }
}

static void archived_branch_is_not_found_by_name_but_kept(void **state)
{
    struct world *world = *state;
    make_branch(world, "a");
    uint64_t endings = accounts_endings(world->accounts);
    archive(world, "a");
    assert_true(accounts_endings(world->accounts) > endings);
    for (int i = 0; i < 2; i++) {
        assert_null(branch(world, "a"));
        assert_true(accounts_by_number(world->accounts, 5)->archived);
        assert_int_equal(environment(world, ENVIRONMENT_PREVIEW)->branch_count, 0);
        restart(world);
    }
    make_branch(world, "a");
    restart(world);
    assert_branch(world, "a", 6);
}

static void damaged_branches_are_rejected(void **state)
{
    struct world *world = *state;
    const struct account *preview = environment(world, ENVIRONMENT_PREVIEW);
    const struct account *prod = environment(world, ENVIRONMENT_PROD);
    const struct {
        const char *type, *parent, *name;
        bool added; /* accepted at first; rejected when it is linked */
    } cases[] = {
        { "preview", preview->id, NULL, false },  { "preview", NULL, "a", false },
        { "preview", preview->id, "a b", false }, { "preview", preview->id, "", false },
        { "prod", preview->id, "a", false },      { "preview", prod->id, "a", true },
        { "preview", "env_missing", "a", true },  { "preview", "env_new", "a", true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why = { 0 };
        struct buf body = { 0 };
        buf_print(&body,
                  "{\"id\":\"env_new\",\"number\":9,\"type\":\"%s\",\"project\":\"%s\"",
                  cases[i].type, preview->project_id);
        if (cases[i].parent)
            buf_print(&body, ",\"parent\":\"%s\"", cases[i].parent);
        if (cases[i].name)
            buf_print(&body, ",\"branch\":\"%s\"", cases[i].name);
        buf_add_char(&body, '}');
        struct document document = { .kind = DOC_ENVIRONMENT,
                                     .name = bytes_create(SLICE("env_new")),
                                     .body = buf_to_bytes(&body) };
        enum err err = accounts_add(world->accounts, &document, &why);
        assert_int_equal(err, cases[i].added ? OK : ERR_INVALID);
        if (cases[i].added) {
            assert_int_equal(accounts_link(world->accounts, &why), ERR_INVALID);
            restart(world);
            preview = environment(world, ENVIRONMENT_PREVIEW);
        }
        document_finish(&document);
        buf_finish(&body);
    }
}

/* ---- keys ---- */

static bool valid_at(struct world *world, const char *key, int64_t at_ms)
{
    return accounts_secret(world->accounts, slice_of(key), at_ms) != NULL;
}

static void rotate(struct world *world, const char *key, int64_t at_ms, int64_t grace_ms)
{
    struct draft draft = begin(world, at_ms);
    draft_rotate(&draft, environment(world, ENVIRONMENT_PROD), key, grace_ms);
    commit(world, &draft);
}

static void replaced_key_is_valid_until_its_grace_period_ends(void **state)
{
    struct world *world = *state;
    const char *old = world->bootstrap.secret_keys[ENVIRONMENT_PROD];
    rotate(world, NEW_KEY, now_ms, 5000);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(environment(world, ENVIRONMENT_PROD)->secret_key, NEW_KEY);
        assert_true(valid_at(world, NEW_KEY, now_ms + 1000000));
        assert_true(valid_at(world, old, now_ms + 4999));
        assert_false(valid_at(world, old, now_ms + 5000));
        assert_true(accounts_next_end(world->accounts, now_ms) == now_ms + 5000);
        assert_true(accounts_next_end(world->accounts, now_ms + 5000) == 0);
        restart(world);
    }
}

static void replaced_key_without_grace_is_invalid_at_once(void **state)
{
    struct world *world = *state;
    const char *old = world->bootstrap.secret_keys[ENVIRONMENT_PROD];
    struct secret *secret =
        secret_ref(accounts_secret(world->accounts, slice_of(old), now_ms));
    rotate(world, NEW_KEY, now_ms, 0);
    assert_false(secret_is_valid(secret, now_ms));
    assert_null(secret->key);
    assert_int_equal(secret->refs, 1);
    secret_unref(secret);
    for (int i = 0; i < 2; i++) {
        assert_false(valid_at(world, old, now_ms));
        assert_true(valid_at(world, NEW_KEY, now_ms));
        restart(world);
    }
}

/* The second rotation does not extend the first one's grace; the third drops old keys. */
static void later_rotation_does_not_extend_earlier_grace(void **state)
{
    struct world *world = *state;
    const char *old = world->bootstrap.secret_keys[ENVIRONMENT_PROD];
    rotate(world, NEW_KEY, now_ms, 5000);
    rotate(world, NEWER_KEY, now_ms + 1000, 60000);
    assert_string_equal(environment(world, ENVIRONMENT_PROD)->secret_key, NEWER_KEY);
    assert_false(valid_at(world, old, now_ms + 5000));
    assert_true(valid_at(world, NEW_KEY, now_ms + 60999));
    rotate(world, "tr_prod_xxxxxxxxxxxxxxxxxxxxxxxx", now_ms + 10000, 60000);
    restart(world);
    assert_false(valid_at(world, old, now_ms));
    assert_true(valid_at(world, NEW_KEY, now_ms + 60999));
    assert_true(valid_at(world, NEWER_KEY, now_ms + 69999));
}

/* A rotation without grace removes a leaked key. That includes a key that was replaced with
 * a grace before the leak was known. */
static void shorter_grace_applies_to_earlier_keys(void **state)
{
    struct world *world = *state;
    const char *old = world->bootstrap.secret_keys[ENVIRONMENT_PROD];
    rotate(world, NEW_KEY, now_ms, 60000);
    rotate(world, NEWER_KEY, now_ms, 5000);
    for (int i = 0; i < 2; i++) {
        assert_true(valid_at(world, old, now_ms + 4999));
        assert_false(valid_at(world, old, now_ms + 5000));
        restart(world);
    }
    rotate(world, "tr_prod_xxxxxxxxxxxxxxxxxxxxxxxx", now_ms + 1000, 0);
    for (int i = 0; i < 2; i++) {
        assert_false(valid_at(world, old, now_ms + 1000));
        assert_false(valid_at(world, NEW_KEY, now_ms + 1000));
        assert_false(valid_at(world, NEWER_KEY, now_ms + 1000));
        restart(world);
    }
}

static void new_preview_key_opens_its_branches(void **state)
{
    struct world *world = *state;
    struct draft draft = begin(world, now_ms);
    make_branch(world, "a");
    draft_rotate(&draft, environment(world, ENVIRONMENT_PREVIEW),
                 "tr_preview_zzzzzzzzzzzzzzzzzzzzzzzz", 0);
    commit(world, &draft);
    assert_string_equal(branch(world, "a")->secret_key,
                        "tr_preview_zzzzzzzzzzzzzzzzzzzzzzzz");
}

/* ---- keys with a label ---- */

static void make_key(struct world *world, const char *label, const char *key,
                     int64_t ttl_ms)
{
    struct draft draft = begin(world, now_ms);
    draft_key(&draft, environment(world, ENVIRONMENT_PROD), slice_of(label), key,
              ttl_ms ? now_ms + ttl_ms : 0);
    commit(world, &draft);
}

static void labeled_key_does_not_become_the_main_key(void **state)
{
    struct world *world = *state;
    const char *main_key = world->bootstrap.secret_keys[ENVIRONMENT_PROD];
    make_key(world, "web \"app\"", NEW_KEY, 0);
    for (int i = 0; i < 2; i++) {
        struct secret *secret = accounts_secret(world->accounts, SLICE(NEW_KEY), now_ms);
        assert_non_null(secret);
        assert_string_equal(secret->name, "web \"app\"");
        assert_true(secret->created_at == now_ms);
        assert_ptr_equal(secret->account, environment(world, ENVIRONMENT_PROD));
        assert_string_equal(environment(world, ENVIRONMENT_PROD)->secret_key, main_key);
        assert_true(secrets_count(&secret->account->secrets, now_ms) == 2);
        restart(world);
    }
}

static void rotation_of_the_main_key_leaves_labeled_keys(void **state)
{
    struct world *world = *state;
    make_key(world, "ci", NEW_KEY, 0);
    rotate(world, NEWER_KEY, now_ms, 0);
    for (int i = 0; i < 2; i++) {
        assert_true(valid_at(world, NEW_KEY, now_ms));
        assert_string_equal(environment(world, ENVIRONMENT_PROD)->secret_key, NEWER_KEY);
        restart(world);
    }
}

/* The replacement lives as long as the old key would have. The grace does not extend the
 * life of the old key. */
static void labeled_key_is_replaced_by_one_of_the_same_label(void **state)
{
    struct world *world = *state;
    make_key(world, "ci", NEW_KEY, 5000);
    struct draft draft = begin(world, now_ms + 1000);
    draft_replace_key(&draft, accounts_secret(world->accounts, SLICE(NEW_KEY), now_ms),
                      NEWER_KEY, 60000);
    commit(world, &draft);
    for (int i = 0; i < 2; i++) {
        struct secret *old = accounts_secret(world->accounts, SLICE(NEW_KEY), now_ms);
        struct secret *next = accounts_secret(world->accounts, SLICE(NEWER_KEY), now_ms);
        assert_true(old->replaced && old->ends_at == now_ms + 5000);
        assert_true(old->created_at == now_ms);
        assert_false(next->replaced);
        assert_true(next->ends_at == now_ms + 6000);
        assert_string_equal(next->name, "ci");
        restart(world);
    }
}

static void replace(struct world *world, const char *old, const char *key, int64_t at_ms,
                    int64_t grace_ms)
{
    struct draft draft = begin(world, at_ms);
    struct secret *secret = accounts_secret(world->accounts, slice_of(old), at_ms);
    draft_replace_key(&draft, secret, key, grace_ms);
    commit(world, &draft);
}

/* Another key of the same label keeps its own old value. */
static void second_rotation_of_a_labeled_key_ends_the_first_old_value(void **state)
{
    struct world *world = *state;
    make_key(world, "ci", NEW_KEY, 0);
    make_key(world, "ci", "tr_prod_other", 0);
    replace(world, "tr_prod_other", "tr_prod_other2", now_ms, 60000);
    replace(world, NEW_KEY, NEWER_KEY, now_ms, 60000);
    restart(world);
    assert_true(valid_at(world, NEW_KEY, now_ms + 1000));
    replace(world, NEWER_KEY, "tr_prod_newest", now_ms + 1000, 5000);
    for (int i = 0; i < 2; i++) {
        assert_false(valid_at(world, NEW_KEY, now_ms + 1000));
        assert_true(valid_at(world, NEWER_KEY, now_ms + 5999));
        assert_false(valid_at(world, NEWER_KEY, now_ms + 6000));
        assert_true(valid_at(world, "tr_prod_newest", now_ms + 6000));
        assert_true(valid_at(world, "tr_prod_other", now_ms + 59999));
        restart(world);
    }
}

/* ---- last uses ---- */

/* Makes a token of a worker, and more of a user than fit into one draft. */
static void make_tokens(struct world *world)
{
    const struct secret *by =
        accounts_secret(world->accounts, slice_of(world->bootstrap.personal_token), now_ms);
    struct draft draft = begin(world, now_ms);
    draft_worker_token(&draft, environment(world, ENVIRONMENT_PROD)->project_id,
                       1u << ENVIRONMENT_PROD, SLICE("builder"), "tr_wgt_a");
    for (int i = 0; i < DRAFT_USES_MAX; i++) {
        char token[PERSONAL_TOKEN_MAX];
        bootstrap_generate_token(token);
        draft_token(&draft, by->user->id, by, SLICE("many"), token, now_ms + 1000);
    }
    commit(world, &draft);
}

static size_t store_uses(struct world *world)
{
    struct draft draft = begin(world, now_ms);
    size_t count = draft_uses(&draft, world->accounts);
    assert_int_equal(count, draft.count);
    commit(world, &draft);
    return count;
}

static void last_uses_are_stored_in_pieces_and_change_nothing_else(void **state)
{
    struct world *world = *state;
    struct secret *secret;
    size_t count = 0;
    make_key(world, "web app", NEW_KEY, 0);
    make_tokens(world);
    assert_int_equal(store_uses(world), 0);
    for (size_t at = 0; (secret = accounts_next_secret(world->accounts, &at)); count++)
        secret->used_at = now_ms - 5;
    uint64_t endings = accounts_endings(world->accounts);
    assert_int_equal(store_uses(world), DRAFT_USES_MAX);
    assert_int_equal(store_uses(world), count - DRAFT_USES_MAX);
    assert_int_equal(store_uses(world), 0);
    assert_true(accounts_endings(world->accounts) == endings);
    restart(world);
    for (size_t at = 0; (secret = accounts_next_secret(world->accounts, &at));) {
        bool is_many = secret->user && strcmp(secret->name, "many") == 0;
        assert_true(secret->used_at == now_ms - 5 && secret_is_valid(secret, now_ms));
        assert_true(secret->ends_at == (is_many ? now_ms + 1000 : 0) &&
                    !secret->by == !is_many);
        assert_true(!secret->project || secret->serves == 1u << ENVIRONMENT_PROD);
    }
    assert_true(valid_at(world, NEW_KEY, now_ms));
}

/* ---- names ---- */

static void name_shows_what_it_is(void **state)
{
    (void)state;
    static const char *const right[] = {
        "ci", "Söhne & Co", "日本 語", "👩‍💻 Ada", "نامه‌ای", "❤️"
    };
    static const char *const wrong[] = { "",         "\u200b",   "c\u200bi",   "\ufeff",
                                         "a\u00adb", "\u200d",   "c\u200ci",   "a\ufe0f",
                                         "a\u202eb", "a\u061cb", "a\u2066b",   "\u3000",
                                         "\u2800",   "\u3164",   "\U000e0041", "a\u2060",
                                         "a\u0301\n" };
    for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
        assert_true(account_name_is_right(slice_of(right[i])));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_false(account_name_is_right(slice_of(wrong[i])));
    assert_false(account_name_is_right(SLICE("\x85")));
    assert_false(account_name_is_right(SLICE("a\xc2\x85")));
}

/* ---- sign-ins ---- */

static void sign_in_ends_with_its_token(void **state)
{
    struct world *world = *state;
    struct secret *token =
        accounts_secret(world->accounts, slice_of(world->bootstrap.personal_token), now_ms);
    struct draft draft = begin(world, now_ms);
    draft_sign_in(&draft, token->user->id, token, "tr_pat_one", now_ms + 5000);
    draft_sign_in(&draft, token->user->id, NULL, "tr_pat_two", now_ms + 5000);
    commit(world, &draft);
    restart(world);
    token =
        accounts_secret(world->accounts, slice_of(world->bootstrap.personal_token), now_ms);
    assert_false(token->signed_in);
    assert_true(accounts_secret(world->accounts, SLICE("tr_pat_one"), now_ms)->signed_in);
    draft = begin(world, now_ms);
    draft_revoke_token(&draft, token);
    commit(world, &draft);
    for (int i = 0; i < 2; i++) {
        assert_false(valid_at(world, "tr_pat_one", now_ms));
        assert_true(valid_at(world, "tr_pat_two", now_ms));
        restart(world);
    }
}

/* Makes tokens tr_pat_0 to tr_pat_19, each by the one before. Returns the first's maker. */
static struct secret *make_chain(struct world *world)
{
    struct slice first = slice_of(world->bootstrap.personal_token);
    const struct secret *by = accounts_secret(world->accounts, first, now_ms);
    for (int i = 0; i < 20; i++) {
        char token[16];
        struct draft draft = begin(world, now_ms);
        snprintf(token, sizeof(token), "tr_pat_%d", i);
        draft_token(&draft, by->user->id, by, SLICE("made"), token, 0);
        commit(world, &draft);
        by = accounts_secret(world->accounts, slice_of(token), now_ms);
        assert_non_null(by);
    }
    return accounts_secret(world->accounts, first, now_ms);
}

static void assert_chain_ended(struct world *world)
{
    for (int i = 0; i < 2; i++) {
        assert_false(valid_at(world, "tr_pat_0", now_ms));
        assert_false(valid_at(world, "tr_pat_19", now_ms));
        restart(world);
    }
}

static size_t count_stored(struct world *world)
{
    size_t count = 0;
    for (size_t i = 0; i < DOCUMENTS_MAX; i++)
        count += world->stored[i].name != NULL;
    return count;
}

/* The draft ends one of them itself, as a rotation does. */
static void expired_keys_and_tokens_are_removed_with_a_later_draft(void **state)
{
    struct world *world = *state;
    size_t before = count_stored(world);
    struct secret *by =
        accounts_secret(world->accounts, slice_of(world->bootstrap.personal_token), now_ms);
    make_key(world, "short", NEW_KEY, 5000);
    make_key(world, "longer", NEWER_KEY, 60000);
    struct draft draft = begin(world, now_ms);
    draft_token(&draft, by->user->id, by, SLICE("short"), "tr_pat_one", now_ms + 5000);
    commit(world, &draft);
    struct secret *key =
        secret_ref(accounts_secret(world->accounts, SLICE(NEW_KEY), now_ms));
    draft = begin(world, now_ms + 4999);
    draft_end_expired(&draft, world->accounts);
    assert_int_equal(draft.count, 0);
    draft = begin(world, now_ms + 5000);
    draft_end(&draft, key);
    draft_end_expired(&draft, world->accounts);
    assert_int_equal(draft.count, 2);
    commit(world, &draft);
    assert_int_equal(count_stored(world), before + 1);
    assert_null(key->key);
    assert_true(valid_at(world, NEWER_KEY, now_ms + 5000));
    secret_unref(key);
}

static void revoked_token_takes_along_whatever_it_made(void **state)
{
    struct world *world = *state;
    struct secret *first = make_chain(world);
    struct draft draft = begin(world, now_ms);
    draft_revoke_token(&draft, first);
    assert_int_equal(draft.count, 21);
    commit(world, &draft);
    assert_chain_ended(world);
}

/* A draft may have no space for all of them. */
static void token_whose_maker_is_gone_is_invalid(void **state)
{
    struct world *world = *state;
    struct secret *first = make_chain(world);
    struct draft draft = begin(world, now_ms);
    draft_end(&draft, first);
    commit(world, &draft);
    assert_chain_ended(world);
}

static void sign_in_is_fresh_for_ten_minutes_of_either_clock(void **state)
{
    struct world *world = *state;
    struct secret *one =
        accounts_secret(world->accounts, slice_of(world->bootstrap.personal_token), now_ms);
    assert_false(secret_is_fresh(one, 7, now_ms));
    secret_prove(one, 7, now_ms);
    assert_true(secret_is_fresh(one, 7, now_ms));
    assert_true(secret_is_fresh(one, 7, now_ms - 1000)); /* the clock was set back */
    assert_true(secret_is_fresh(one, 6 + SECRET_FRESH_MS, now_ms - 1000));
    assert_false(secret_is_fresh(one, 7 + SECRET_FRESH_MS, now_ms - 1000));
    assert_true(secret_is_fresh(one, 8, now_ms + SECRET_FRESH_MS - 1));
    assert_false(secret_is_fresh(one, 8, now_ms + SECRET_FRESH_MS)); /* it slept */
}

static void no_document_contains_a_new_key(void **state)
{
    struct world *world = *state;
    rotate(world, NEW_KEY, now_ms, 5000);
    for (size_t i = 0; i < DOCUMENTS_MAX; i++) {
        const struct document *one = &world->stored[i];
        if (one->name)
            assert_null(memmem(one->body->data, one->body->len, NEW_KEY, strlen(NEW_KEY)));
    }
}

/* ---- users and tokens ---- */

static void revoked_token_is_rejected(void **state)
{
    struct world *world = *state;
    struct slice token = slice_of(world->bootstrap.personal_token);
    struct secret *secret = secret_ref(accounts_secret(world->accounts, token, now_ms));
    struct draft draft = begin(world, now_ms);
    assert_non_null(secret->user);
    draft_end(&draft, secret);
    commit(world, &draft);
    assert_false(secret_is_valid(secret, now_ms));
    secret_unref(secret);
    for (int i = 0; i < 2; i++) {
        assert_null(accounts_secret(world->accounts, token, now_ms));
        restart(world);
    }
}

static void a_second_organization_has_its_own_projects_and_users(void **state)
{
    struct world *world = *state;
    static const char token[] = "tr_pat_1111111111111111111111111111111111111111";
    char organization[ID_MAX], project[ID_MAX], user[ID_MAX];
    struct draft draft = begin(world, now_ms);
    draft_organization(&draft, SLICE("Acme \"&\" Söhne"), SLICE("acme"), organization);
    draft_project(&draft, organization, "proj_acme00000", SLICE("Shop"), SLICE("shop"),
                  project);
    for (int i = 0; i < ENVIRONMENT_TYPES; i++) {
        char key[SECRET_KEY_MAX];
        bootstrap_generate_key((enum environment_type)i, key);
        draft_environment(&draft, accounts_free_number(world->accounts) + (uint32_t)i,
                          project, (enum environment_type)i, key);
    }
    draft_user(&draft, organization, SLICE("Ada"), SLICE("ada@example.com"), user);
    draft_token(&draft, user, NULL, SLICE("laptop"), token, 0);
    commit(world, &draft);
    for (int i = 0; i < 2; i++) {
        struct user *ada = accounts_user(world->accounts, SLICE("ada@example.com"));
        struct project *shop = accounts_project(world->accounts, SLICE("proj_acme00000"));
        struct project *first =
            accounts_project(world->accounts, slice_of(world->bootstrap.project_ref));
        assert_string_equal(ada->organization->name, "Acme \"&\" Söhne");
        assert_true(user_sees(ada, shop));
        assert_false(user_sees(ada, first));
        assert_ptr_equal(accounts_first_user(world->accounts, shop->organization), ada);
        assert_false(
            user_sees(accounts_first_user(world->accounts, first->organization), shop));
        assert_ptr_equal(accounts_secret(world->accounts, slice_of(token), now_ms)->user,
                         ada);
        assert_int_equal(
            accounts_environment(world->accounts, shop, ENVIRONMENT_PREVIEW)->number, 8);
        restart(world);
    }
}

/* ---- the end of a project ---- */

static void assert_deleted(struct world *world, uint32_t preview, uint32_t number)
{
    const char *key = world->bootstrap.secret_keys[ENVIRONMENT_DEV];
    assert_null(accounts_project(world->accounts, slice_of(world->bootstrap.project_ref)));
    assert_null(accounts_secret(world->accounts, slice_of(key), now_ms));
    assert_true(accounts_by_number(world->accounts, preview)->archived);
    assert_true(accounts_by_number(world->accounts, number)->archived);
    assert_null(accounts_branch(world->accounts,
                                accounts_by_number(world->accounts, preview), SLICE("a")));
    assert_true(list_empty(accounts_projects(world->accounts)));
}

static void deleted_project_is_gone_at_once_and_after_a_restart(void **state)
{
    struct world *world = *state;
    make_branch(world, "a");
    struct account *preview = environment(world, ENVIRONMENT_PREVIEW);
    uint64_t endings = accounts_endings(world->accounts);
    uint32_t numbers[] = { preview->number, branch(world, "a")->number };
    struct draft draft = begin(world, now_ms);
    draft_delete_project(&draft, preview->project);
    commit(world, &draft);
    assert_true(accounts_endings(world->accounts) > endings);
    for (int i = 0; i < 2; i++) {
        assert_deleted(world, numbers[0], numbers[1]);
        restart(world);
    }
}

static size_t forget(struct world *world)
{
    const struct list *all = accounts_deleted_projects(world->accounts);
    struct project *project = container_of(all->next, struct project, link);
    struct draft draft = begin(world, now_ms);
    draft_forget_project(&draft, world->accounts, project);
    size_t count = draft.count;
    commit(world, &draft);
    return count;
}

/* Whatever was committed before a crash, the rest can be read. No document names one that
 * was deleted. */
static void documents_of_a_deleted_project_are_removed_in_a_crash_safe_order(void **state)
{
    struct world *world = *state;
    char name[16];
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof(name), "b%d", i);
        make_branch(world, name);
    }
    struct draft draft = begin(world, now_ms);
    draft_delete_project(&draft, environment(world, ENVIRONMENT_PREVIEW)->project);
    commit(world, &draft);
    size_t count, left = 4 + 70 + 4 + 1; /* keys, branches, environments, the project */
    while ((count = forget(world))) {
        left -= count;
        if (left)
            restart(world);
    }
    assert_int_equal(left, 0);
    restart(world);
    assert_true(list_empty(accounts_deleted_projects(world->accounts)));
    accounts_note_number(world->accounts, 75);
    assert_int_equal(accounts_free_number(world->accounts), 75);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(branch_is_an_environment_with_the_preview_key),
        IN_WORLD(archived_branch_is_not_found_by_name_but_kept),
        IN_WORLD(damaged_branches_are_rejected),
        IN_WORLD(replaced_key_is_valid_until_its_grace_period_ends),
        IN_WORLD(replaced_key_without_grace_is_invalid_at_once),
        IN_WORLD(shorter_grace_applies_to_earlier_keys),
        IN_WORLD(later_rotation_does_not_extend_earlier_grace),
        IN_WORLD(new_preview_key_opens_its_branches),
        IN_WORLD(labeled_key_does_not_become_the_main_key),
        IN_WORLD(rotation_of_the_main_key_leaves_labeled_keys),
        IN_WORLD(labeled_key_is_replaced_by_one_of_the_same_label),
        IN_WORLD(second_rotation_of_a_labeled_key_ends_the_first_old_value),
        IN_WORLD(last_uses_are_stored_in_pieces_and_change_nothing_else),
        IN_WORLD(name_shows_what_it_is),
        IN_WORLD(sign_in_ends_with_its_token),
        IN_WORLD(expired_keys_and_tokens_are_removed_with_a_later_draft),
        IN_WORLD(revoked_token_takes_along_whatever_it_made),
        IN_WORLD(token_whose_maker_is_gone_is_invalid),
        IN_WORLD(sign_in_is_fresh_for_ten_minutes_of_either_clock),
        IN_WORLD(no_document_contains_a_new_key),
        IN_WORLD(revoked_token_is_rejected),
        IN_WORLD(deleted_project_is_gone_at_once_and_after_a_restart),
        IN_WORLD(documents_of_a_deleted_project_are_removed_in_a_crash_safe_order),
        IN_WORLD(a_second_organization_has_its_own_projects_and_users),
    };
    return cmocka_run_group_tests_name("account_draft", tests, NULL, NULL);
}
