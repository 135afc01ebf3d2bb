/* Lasting sign-ins: what a use must prove, what it changes, and when they end. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "accounts/lasting.h"
#include "accounts/user_tokens.h"
#include "base/mem.h"

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

enum { DOCUMENTS_MAX = 128, HOUR_MS = 3600 * 1000 };

static const int64_t begun = INT64_C(1700000000000);

struct world {
    struct vault *vault;
    struct accounts *accounts;
    struct bootstrap bootstrap;
    struct change changes[DRAFT_MAX];
    struct document stored[DOCUMENTS_MAX]; /* name NULL: free */
    char id[LASTING_ID_LEN + 1], code[LASTING_CODE_LEN + 1], next[LASTING_CODE_LEN + 1];
};

static struct document *place_of(struct world *world, const struct change *change)
{
    struct document *free_one = NULL;
    for (size_t i = DOCUMENTS_MAX; i-- > 0;) {
        struct document *one = &world->stored[i];
        if (!one->name)
            free_one = one;
        else if (one->kind == change->document.kind &&
                 slice_equal(bytes_slice(one->name), bytes_slice(change->document.name)))
            return one;
    }
    assert_non_null(free_one);
    return free_one;
}

/* Stores the changes as the store does, then applies them as the writer does. */
static void commit(struct world *world, struct draft *draft)
{
    struct failure why = { 0 };
    for (size_t i = 0; i < draft->count; i++) {
        struct change *change = &draft->changes[i];
        struct document *place = place_of(world, change);
        assert_int_equal(change->expected, place->name ? place->version : 0);
        change->document.version = change->expected + 1;
        assert_int_equal(accounts_apply(world->accounts, change, &why), OK);
        document_finish(place);
        *place = change->document;
        if (!place->body) {
            document_finish(place);
            memset(place, 0, sizeof(*place));
        }
    }
    assert_int_equal(accounts_link(world->accounts, &why), OK);
}

static struct draft begin(struct world *world, int64_t now_ms)
{
    return (
        struct draft){ .vault = world->vault, .now_ms = now_ms, .changes = world->changes };
}

static int make_world(void **state)
{
    struct world *world = mem_new(struct world);
    struct failure why;
    assert_int_equal(vault_open(SLICE(KEY_HEX), NULL, &world->vault, &why), OK);
    world->accounts = accounts_create(world->vault);
    assert_int_equal(bootstrap_prepare(&world->bootstrap, &why), OK);
    struct draft draft = begin(world, begun);
    draft.count =
        accounts_bootstrap(world->accounts, &world->bootstrap, begun, world->changes);
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

static struct secret *pat(struct world *world)
{
    return accounts_secret(world->accounts, slice_of(world->bootstrap.personal_token),
                           begun);
}

/* Signs in with the personal token, or with a one-time link. */
static struct secret *sign_in(struct world *world, bool by_link)
{
    char token[PERSONAL_TOKEN_MAX];
    struct draft draft = begin(world, begun);
    bootstrap_generate_token(token);
    draft_sign_in(&draft, pat(world)->user->id, by_link ? NULL : pat(world), token,
                  begun + 12 * (int64_t)HOUR_MS);
    commit(world, &draft);
    return accounts_secret(world->accounts, slice_of(token), begun);
}

static void stay_of(struct world *world, const struct secret *signed_in, int64_t now_ms)
{
    struct draft draft = begin(world, now_ms);
    lasting_generate_id(world->id);
    lasting_generate_code(world->id, world->code);
    struct lasting lasting = lasting_with_code(world->code);
    user_lasting_draft(&draft, signed_in, world->id, &lasting);
    commit(world, &draft);
}

static void stay(struct world *world, bool by_link, int64_t now_ms)
{
    stay_of(world, sign_in(world, by_link), now_ms);
}

static struct secret *found(struct world *world, int64_t now_ms)
{
    return lasting_find(world->accounts, slice_of(world->id), now_ms);
}

static enum lasting_code judge(struct world *world, const char *code, int64_t now_ms)
{
    return lasting_judge(found(world, now_ms), slice_of(code), now_ms);
}

/* Uses a code as it is judged. The next code is in world->next. */
static int64_t use(struct world *world, const char *code, int64_t now_ms)
{
    struct draft draft = begin(world, now_ms);
    lasting_generate_code(world->id, world->next);
    int64_t ends_at = lasting_draft_code(&draft, found(world, now_ms),
                                         judge(world, code, now_ms), world->next);
    commit(world, &draft);
    return ends_at;
}

static void code_has_the_id_and_no_other_text_does(void **state)
{
    struct world *world = *state;
    stay(world, true, begun);
    assert_true(slice_is(lasting_id_of(slice_of(world->code)), world->id));
    assert_null(lasting_id_of(slice_of(world->id)).ptr);
    assert_null(lasting_id_of((struct slice){ 0 }).ptr);
    assert_null(lasting_find(world->accounts, slice_of(world->code), begun));
    assert_null(
        lasting_find(world->accounts, slice_of(world->bootstrap.personal_token), begun));
    assert_true(found(world, begun)->signed_in);
    assert_null(pat(world)->lasting);
}

static void each_use_replaces_the_code(void **state)
{
    struct world *world = *state;
    char second[LASTING_CODE_LEN + 1];
    stay(world, true, begun);
    assert_int_equal(judge(world, world->code, begun), LASTING_CURRENT);
    use(world, world->code, begun + 1000);
    memcpy(second, world->next, sizeof(second));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(judge(world, second, begun + 1000), LASTING_CURRENT);
        assert_int_equal(judge(world, world->code, begun + 1000), LASTING_REPEATED);
        assert_int_equal(judge(world, world->code, begun + 30999), LASTING_REPEATED);
        assert_int_equal(judge(world, world->code, begun + 31000), LASTING_OLD);
        assert_int_equal(judge(world, world->code, begun + 999), LASTING_REPEATED);
        int64_t earliest = begun + 1000 - LASTING_CLOCK_MS;
        assert_int_equal(judge(world, world->code, earliest + 1), LASTING_REPEATED);
        assert_int_equal(judge(world, world->code, earliest), LASTING_OLD);
        restart(world);
    }
    use(world, second, begun + 2000);
    assert_int_equal(judge(world, world->code, begun + 2000), LASTING_OLD);
    assert_int_equal(judge(world, second, begun + 2000), LASTING_REPEATED);
    assert_int_equal(judge(world, world->id, begun + 2000), LASTING_OLD);
}

/* The time for repeats does not begin again, and the code that was lost is an old one. */
static void repeat_without_the_next_code_replaces_that(void **state)
{
    struct world *world = *state;
    char lost[LASTING_CODE_LEN + 1];
    stay(world, true, begun);
    use(world, world->code, begun);
    memcpy(lost, world->next, sizeof(lost));
    restart(world);
    use(world, world->code, begun + 20000);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(judge(world, world->next, begun + 20000), LASTING_CURRENT);
        assert_int_equal(judge(world, lost, begun + 20000), LASTING_OLD);
        assert_int_equal(judge(world, world->code, begun + 29999), LASTING_REPEATED);
        assert_int_equal(judge(world, world->code, begun + 30000), LASTING_OLD);
        restart(world);
    }
}

static void next_code_is_in_memory_until_it_is_used(void **state)
{
    struct world *world = *state;
    stay(world, true, begun);
    use(world, world->code, begun);
    assert_null(found(world, begun)->lasting->next);
    lasting_note_next(found(world, begun), world->next);
    assert_string_equal(found(world, begun)->lasting->next, world->next);
    use(world, world->next, begun);
    assert_null(found(world, begun)->lasting->next);
}

static void lasts_12_hours_after_a_use_and_30_days_in_all(void **state)
{
    struct world *world = *state;
    int64_t now_ms = begun, last = begun + INT64_C(30) * 24 * HOUR_MS;
    stay(world, true, begun);
    assert_true(found(world, begun)->ends_at == begun + 12 * HOUR_MS);
    assert_null(found(world, begun + 12 * HOUR_MS));
    while ((now_ms += 11 * HOUR_MS) < last) {
        int64_t ends_at = use(world, world->next[0] ? world->next : world->code, now_ms);
        assert_true(ends_at ==
                    (now_ms + 12 * HOUR_MS < last ? now_ms + 12 * HOUR_MS : last));
        restart(world);
        assert_true(found(world, now_ms)->ends_at == ends_at);
        assert_true(found(world, now_ms)->created_at == begun);
    }
    assert_non_null(found(world, last - 1));
    assert_null(found(world, last));
}

static void key_signs_a_challenge_that_is_in_memory_only(void **state)
{
    struct world *world = *state;
    const unsigned char key[LASTING_KEY_LEN] = { 4, 1, 2, 3 };
    struct lasting lasting = lasting_with_key(key);
    const struct secret *signed_in = sign_in(world, true);
    struct draft draft = begin(world, begun);
    lasting_generate_id(world->id);
    user_lasting_draft(&draft, signed_in, world->id, &lasting);
    commit(world, &draft);
    char challenge[LASTING_CHALLENGE_LEN + 1];
    snprintf(challenge, sizeof(challenge), "%s", lasting_challenge(found(world, begun)));
    assert_int_equal(strlen(challenge), LASTING_CHALLENGE_LEN);
    uint64_t endings = accounts_endings(world->accounts);
    draft = begin(world, begun + 1000);
    lasting_draft_signed(&draft, found(world, begun));
    commit(world, &draft);
    assert_true(accounts_endings(world->accounts) == endings); /* nothing has ended */
    assert_string_equal(found(world, begun)->lasting->challenge, challenge);
    assert_string_not_equal(lasting_challenge(found(world, begun)), challenge);
    lasting_end_challenge(found(world, begun));
    for (int i = 0; i < 2; i++) {
        const struct secret *secret = found(world, begun + 1000);
        assert_true(secret->lasting->has_key);
        assert_memory_equal(secret->lasting->key, key, sizeof(key));
        assert_true(secret->ends_at == begun + 1000 + 12 * HOUR_MS);
        assert_true(secret->used_at == begun + 1000);
        assert_string_equal(secret->lasting->challenge, "");
        restart(world);
    }
}

/* That of a link stays. Other sign-ins, and tokens, do not make way for one. */
static void oldest_of_a_maker_makes_way(void **state)
{
    struct world *world = *state;
    char by_link[LASTING_ID_LEN + 1], oldest[LASTING_ID_LEN + 1];
    stay(world, true, begun);
    memcpy(by_link, world->id, sizeof(by_link));
    const struct secret *signed_in = sign_in(world, false);
    stay(world, false, begun + 1);
    memcpy(oldest, world->id, sizeof(oldest));
    for (int i = 0; i < LASTING_MAX; i++) {
        bool lives = lasting_find(world->accounts, slice_of(oldest), begun + 100) != NULL;
        assert_int_equal(lives, true);
        stay(world, false, begun + 2 + i);
    }
    assert_null(lasting_find(world->accounts, slice_of(oldest), begun + 100));
    assert_non_null(lasting_find(world->accounts, slice_of(by_link), begun + 100));
    assert_true(secret_is_valid(signed_in, begun));
    restart(world);
    assert_null(lasting_find(world->accounts, slice_of(oldest), begun + 100));
}

static void ends_with_the_token_that_signed_in(void **state)
{
    struct world *world = *state;
    char by_link[LASTING_ID_LEN + 1];
    stay(world, true, begun);
    memcpy(by_link, world->id, sizeof(by_link));
    stay(world, false, begun);
    use(world, world->code, begun);
    struct draft draft = begin(world, begun);
    draft_revoke_token(&draft, pat(world));
    commit(world, &draft);
    for (int i = 0; i < 2; i++) {
        assert_null(found(world, begun));
        assert_non_null(lasting_find(world->accounts, slice_of(by_link), begun));
        restart(world);
    }
}

static void ends_no_later_than_the_token_that_confirmed(void **state)
{
    struct world *world = *state;
    const int64_t proof_ends_at = begun + 13 * (int64_t)HOUR_MS;
    struct secret *signed_in = sign_in(world, true);
    signed_in->proof_ends_at = proof_ends_at;
    stay_of(world, signed_in, begun);
    assert_true(found(world, begun)->ends_at == begun + 12 * (int64_t)HOUR_MS);
    for (int i = 0; i < 2; i++) {
        assert_true(use(world, world->code, begun + 2 * HOUR_MS + i) == proof_ends_at);
        memcpy(world->code, world->next, sizeof(world->code));
        restart(world);
        assert_non_null(found(world, proof_ends_at - 1));
        assert_null(found(world, proof_ends_at));
    }
}

static void signing_out_everywhere_ends_all_but_tokens(void **state)
{
    struct world *world = *state;
    const struct user *user = pat(world)->user;
    for (int i = 0; i < 5; i++)
        stay(world, i % 2, begun);
    assert_int_equal(secrets_count(&user->secrets, begun), 11);
    struct draft draft = begin(world, begun);
    draft.count = DRAFT_MAX - 4;
    assert_true(user_sign_out_draft(&draft, user));
    assert_int_equal(draft.count, DRAFT_MAX);
    for (size_t i = DRAFT_MAX - 4; i < DRAFT_MAX; i++)
        change_finish(&draft.changes[i]);
    draft = begin(world, begun);
    assert_false(user_sign_out_draft(&draft, user));
    commit(world, &draft);
    assert_int_equal(secrets_count(&user->secrets, begun), 1);
    assert_non_null(pat(world));
}

static struct user *add_user(struct world *world, const char *organization_id,
                             const char *email)
{
    char id[ID_MAX];
    struct draft draft = begin(world, begun);
    draft_user(&draft, organization_id, SLICE("Ada"), slice_of(email), id);
    commit(world, &draft);
    return accounts_user(world->accounts, slice_of(id));
}

static void add_sign_in(struct world *world, const struct user *user)
{
    char token[PERSONAL_TOKEN_MAX];
    struct draft draft = begin(world, begun);
    bootstrap_generate_token(token);
    draft_sign_in(&draft, user->id, NULL, token, begun + HOUR_MS);
    commit(world, &draft);
}

static void signing_out_everywhere_is_for_all_users_of_the_person(void **state)
{
    struct world *world = *state;
    const struct user *user = pat(world)->user;
    char organization_id[ID_MAX];
    struct draft draft = begin(world, begun);
    draft_organization(&draft, SLICE("Other"), SLICE("other"), organization_id);
    commit(world, &draft);
    const struct user *same = add_user(world, organization_id, user->email);
    const struct user *other = add_user(world, organization_id, "ada@example.org");
    add_sign_in(world, user);
    add_sign_in(world, same);
    add_sign_in(world, other);
    draft = begin(world, begun);
    assert_false(user_sign_out_draft(&draft, same));
    commit(world, &draft);
    assert_int_equal(secrets_count(&user->secrets, begun), 1);
    assert_int_equal(secrets_count(&same->secrets, begun), 0);
    assert_int_equal(secrets_count(&other->secrets, begun), 1);
}

static void damaged_documents_are_rejected(void **state)
{
    static const char *const members[] = {
        ",\"code\":5",
        ",\"code\":\"ab\",\"codeBefore\":\"ab\"",
        ",\"publicKey\":7",
        ",\"publicKey\":\"BAAA\"",
    };
    struct world *world = *state;
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        struct failure why = { 0 };
        struct buf body = { 0 };
        char hash[] = "00000000000000000000000000000000000000000000000000000000000000a0";
        hash[sizeof(hash) - 2] = (char)('0' + i);
        buf_print(&body,
                  "{\"hash\":\"%s\",\"user\":\"%s\",\"signIn\":true,\"name\":\"x\"%s}",
                  hash, pat(world)->user->id, members[i]);
        struct document document = { .kind = DOC_TOKEN,
                                     .name = bytes_create(slice_of(hash)),
                                     .body = buf_to_bytes(&body) };
        assert_int_equal(accounts_add(world->accounts, &document, &why), ERR_INVALID);
        document_finish(&document);
        buf_finish(&body);
    }
    restart(world);
}

/* A stored code would open what it belongs to. */
static void no_document_contains_a_code(void **state)
{
    struct world *world = *state;
    stay(world, true, begun);
    use(world, world->code, begun);
    for (size_t i = 0; i < DOCUMENTS_MAX; i++) {
        struct slice body = bytes_slice(world->stored[i].body);
        const char *const secrets[] = { world->id, world->code + LASTING_ID_LEN + 1,
                                        world->next + LASTING_ID_LEN + 1 };
        for (size_t j = 0; j < 3 && body.len; j++)
            assert_null(memmem(body.ptr, body.len, secrets[j], LASTING_ID_LEN));
    }
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(code_has_the_id_and_no_other_text_does),
        IN_WORLD(each_use_replaces_the_code),
        IN_WORLD(repeat_without_the_next_code_replaces_that),
        IN_WORLD(next_code_is_in_memory_until_it_is_used),
        IN_WORLD(lasts_12_hours_after_a_use_and_30_days_in_all),
        IN_WORLD(key_signs_a_challenge_that_is_in_memory_only),
        IN_WORLD(oldest_of_a_maker_makes_way),
        IN_WORLD(ends_with_the_token_that_signed_in),
        IN_WORLD(ends_no_later_than_the_token_that_confirmed),
        IN_WORLD(signing_out_everywhere_ends_all_but_tokens),
        IN_WORLD(signing_out_everywhere_is_for_all_users_of_the_person),
        IN_WORLD(damaged_documents_are_rejected),
        IN_WORLD(no_document_contains_a_code),
    };
    return cmocka_run_group_tests_name("lasting", tests, NULL, NULL);
}
