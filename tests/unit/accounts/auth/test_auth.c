/* Authentication: which identity a credential has, and which requests a scope grants. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "accounts/auth/auth.h"
#include "accounts/auth/jwt.h"
#include "accounts/auth/scopes.h"
#include "base/mem.h"

static const int64_t now_ms = INT64_C(1700000100000);

#define CLAIMS "\"iss\":\"https://id.trigger.dev\",\"aud\":\"https://api.trigger.dev\""

struct world {
    struct vault *vault;
    struct accounts *accounts;
    struct bootstrap bootstrap;
    struct auth *auth;
    struct account *dev, *prod;
    struct failure why;
};

static int make_world(void **state)
{
    struct world *world = mem_new(struct world);
    struct change changes[16];
    struct slice key =
        SLICE("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    assert_int_equal(vault_open(key, NULL, &world->vault, &world->why), OK);
    world->accounts = accounts_create(world->vault);
    assert_int_equal(bootstrap_prepare(&world->bootstrap, &world->why), OK);
    size_t count = accounts_bootstrap(world->accounts, &world->bootstrap, now_ms, changes);
    for (size_t i = 0; i < count; i++) {
        struct document *document = &changes[i].document;
        assert_int_equal(accounts_add(world->accounts, document, &world->why), OK);
        bytes_unref(document->name);
        bytes_unref(document->body);
    }
    assert_int_equal(accounts_link(world->accounts, &world->why), OK);
    world->dev = accounts_by_number(world->accounts, 1);
    world->prod = accounts_by_number(world->accounts, 3);
    world->auth = auth_create(world->accounts);
    *state = world;
    return 0;
}

static int end_world(void **state)
{
    struct world *world = *state;
    auth_destroy(world->auth);
    accounts_destroy(world->accounts);
    vault_close(world->vault);
    free(world);
    return 0;
}

static struct identity *identify_at(struct world *world, const char *header, int64_t at_ms)
{
    struct identity *identity = NULL;
    world->why = (struct failure){ 0 };
    enum err err = auth_identify(world->auth, slice_of(header), "client", at_ms, &identity,
                                 &world->why);
    assert_int_equal(err, identity ? OK : ERR_UNAUTHORIZED);
    return identity;
}

static struct identity *identify(struct world *world, const char *header)
{
    return identify_at(world, header, now_ms);
}

static void assert_refused(struct world *world, const char *header, const char *text)
{
    assert_null(identify(world, header));
    assert_string_equal(world->why.text, text);
}

/* Makes a terminated token with sub and further members, signed with the key of signer. */
static struct buf make_token(const char *sub, const struct account *signer,
                             const char *more)
{
    struct buf claims = { 0 }, token = { 0 };
    buf_print(&claims, "{\"sub\":\"%s\"," CLAIMS "%s}", sub, more);
    jwt_sign(buf_slice(&claims), slice_of(signer->secret_key), &token);
    buf_add_char(&token, '\0');
    buf_finish(&claims);
    return token;
}

static struct identity *identify_claims(struct world *world, const char *more)
{
    struct buf token = make_token(world->dev->id, world->dev, more);
    struct identity *identity = identify(world, token.ptr);
    buf_finish(&token);
    return identity;
}

/* ---- identities ---- */

static void secret_key_identifies_its_environment(void **state)
{
    struct world *world = *state;
    static const char *const forms[] = { "Bearer %s",       "%s",
                                         "bearer %s",       "BEARER %s",
                                         "  Bearer   %s  ", "Bearer \t%s" };
    for (int i = 0; i < ENVIRONMENT_TYPES; i++) {
        for (size_t j = 0; j < sizeof(forms) / sizeof(forms[0]); j++) {
            struct buf header = { 0 };
            size_t half = (size_t)(strchr(forms[j], '%') - forms[j]);
            buf_add(&header, (struct slice){ forms[j], half });
            buf_add_text(&header, world->bootstrap.secret_keys[i]);
            buf_add_text(&header, forms[j] + half + 2);
            buf_add_char(&header, '\0');
            struct identity *identity = identify(world, header.ptr);
            assert_non_null(identity);
            assert_int_equal(identity->kind, CREDENTIAL_SECRET_KEY);
            assert_int_equal(identity->account->number, i + 1);
            assert_int_equal(identity->expires_at, 0);
            assert_null(identity->user);
            identity_unref(identity);
            buf_finish(&header);
        }
    }
}

static void personal_token_identifies_its_user(void **state)
{
    struct world *world = *state;
    struct identity *identity = identify(world, world->bootstrap.personal_token);
    assert_non_null(identity);
    assert_int_equal(identity->kind, CREDENTIAL_PERSONAL_TOKEN);
    assert_string_equal(identity->user->email, "admin@example.com");
    assert_null(identity->account);
    assert_false(identity_may(identity, "read", "runs", (struct slice){ 0 }));
    identity_unref(identity);
}

static void unknown_credentials_are_rejected_with_the_texts_of_trigger_dev(void **state)
{
    struct world *world = *state;
    char key[SECRET_KEY_MAX + 8];
    struct identity *identity = NULL;
    assert_int_equal(auth_identify(world->auth, (struct slice){ 0 }, "client", now_ms,
                                   &identity, &world->why),
                     ERR_UNAUTHORIZED);
    assert_string_equal(world->why.text, "No authorization header provided");
    assert_refused(world, "", "No authorization header provided");
    assert_refused(world, "  ", "No authorization header provided");
    static const char *const unknown[] = {
        "Bearer ",
        "Bearer x",
        "Basic dXNlcjpwYXNz",
        "tr_dev_0123456789abcdefghijklmn",
        "a.b.c",
        "eyJhbGciOiJIUzI1NiJ9.e30.AAAA", /* a JWT, but not a public one */
    };
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        assert_refused(world, unknown[i], "Invalid API key");
    assert_refused(world, "tr_pat_0123456789abcdefghijklmnopqrstuvwxyz1234",
                   "Invalid or Missing PAT: the personal access token is unknown, expired "
                   "or revoked");
    assert_refused(world, "tr_wgt_0123456789abcdefghijklmnopqrstuvwxyz1234",
                   "Invalid API key: the worker token is unknown, expired or revoked");

    snprintf(key, sizeof(key), "%s", world->bootstrap.secret_keys[0]);
    for (size_t i = 0; key[i]; i++) {
        key[i] ^= 1;
        assert_refused(world, key, "Invalid API key");
        key[i] ^= 1;
    }
    snprintf(key, sizeof(key), "Bearer%s", world->bootstrap.secret_keys[0]);
    assert_refused(world, key, "Invalid API key");
}

static void too_long_credential_is_not_hashed(void **state)
{
    struct world *world = *state;
    char *long_text = mem_alloc(20000);
    memset(long_text, 'a', 19999);
    assert_refused(world, long_text, "Invalid API key");
    free(long_text);
}

static void public_token_identifies_its_environment_and_scopes(void **state)
{
    struct world *world = *state;
    struct identity *identity = identify_claims(
        world,
        ",\"pub\":true,\"exp\":1700000900.7,\"otu\":true,\"act\":{\"sub\":\"user_9\"},"
        "\"scopes\":[\"read:runs:run_1\",5,null,\"trigger:tasks:a:b\"],"
        "\"realtime\":{\"skipColumns\":[\"payload\",{},\"output\"]}");
    assert_non_null(identity);
    assert_int_equal(identity->kind, CREDENTIAL_PUBLIC_TOKEN);
    assert_ptr_equal(identity->account, world->dev);
    assert_true(identity->expires_at == INT64_C(1700000900000));
    assert_true(identity->one_time);
    assert_string_equal(identity->subject, "user_9");
    assert_int_equal(identity->scope_count, 2);
    assert_string_equal(identity->scopes[1], "trigger:tasks:a:b");
    assert_int_equal(identity->skip_count, 2);
    assert_string_equal(identity->skip_columns[1], "output");
    assert_true(identity_may(identity, "read", "runs", SLICE("run_1")));
    assert_false(identity_may(identity, "read", "runs", SLICE("run_2")));
    assert_true(identity_may(identity, "trigger", "tasks", SLICE("a:b")));
    identity_unref(identity);
}

static void missing_or_invalid_claims_grant_nothing(void **state)
{
    struct world *world = *state;
    static const char *const claims[] = {
        "",
        ",\"scopes\":null",
        ",\"scopes\":\"admin\"",
        ",\"scopes\":{\"0\":\"admin\"}",
        ",\"scopes\":[]",
        ",\"scopes\":[[\"admin\"]]",
        ",\"otu\":\"true\",\"act\":[],\"realtime\":[\"skipColumns\"]",
    };
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        struct buf more = { 0 };
        buf_print(&more, ",\"pub\":true,\"exp\":1700000900%s", claims[i]);
        buf_add_char(&more, '\0');
        struct identity *identity = identify_claims(world, more.ptr);
        assert_non_null(identity);
        assert_false(identity_may(identity, "read", "runs", SLICE("run_1")));
        assert_false(identity->one_time);
        assert_int_equal(identity->skip_count, 0);
        assert_string_equal(identity->subject, world->dev->id);
        identity_unref(identity);
        buf_finish(&more);
    }
}

static void public_token_of_an_unknown_environment_is_rejected(void **state)
{
    struct world *world = *state;
    static const char *const subjects[] = { "env_unknown", "",
                                            "a_subject_longer_than_any_id_of_ours" };
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        struct buf token =
            make_token(subjects[i], world->dev, ",\"pub\":true,\"exp\":1700000900");
        assert_refused(world, token.ptr, "Public Access Token is invalid");
        buf_finish(&token);
    }
}

static void token_signed_by_another_environment_is_rejected(void **state)
{
    struct world *world = *state;
    struct buf token =
        make_token(world->prod->id, world->dev, ",\"pub\":true,\"exp\":1700000900");
    assert_refused(world, token.ptr, "Public Access Token is invalid");
    buf_finish(&token);
}

static void expired_token_is_rejected_even_if_cached(void **state)
{
    struct world *world = *state;
    struct buf token =
        make_token(world->dev->id, world->dev, ",\"pub\":true,\"exp\":1700000200");
    for (int i = 0; i < 3; i++) {
        struct identity *identity = identify_at(world, token.ptr, INT64_C(1700000199999));
        assert_non_null(identity);
        identity_unref(identity);
        assert_null(identify_at(world, token.ptr, INT64_C(1700000200000)));
        assert_string_equal(world->why.text, "Public Access Token is invalid");
    }
    buf_finish(&token);
}

static void a_token_of_a_far_future_never_overflows(void **state)
{
    struct world *world = *state;
    struct identity *identity = identify_claims(world, ",\"pub\":true,\"exp\":1e300");
    assert_non_null(identity);
    assert_true(identity->expires_at > now_ms);
    identity_unref(identity);
}

static void accepted_identity_is_cached(void **state)
{
    struct world *world = *state;
    struct buf token =
        make_token(world->dev->id, world->dev, ",\"pub\":true,\"exp\":1700000900");
    struct identity *first = identify(world, token.ptr),
                    *second = identify(world, token.ptr);
    assert_ptr_equal(first, second);
    identity_unref(second);

    auth_destroy(world->auth); /* the identity that we hold stays valid */
    world->auth = auth_create(world->accounts);
    assert_int_equal(first->refs, 1);
    identity_unref(first);
    buf_finish(&token);
}

static struct identity *identify_numbered(struct world *world, int number)
{
    char more[64];
    snprintf(more, sizeof(more), ",\"pub\":true,\"exp\":1700000900,\"n\":%d", number);
    return identify_claims(world, more);
}

static void ten_thousand_identities_are_cached_and_the_oldest_evicted(void **state)
{
    struct world *world = *state;
    struct identity *oldest = identify_numbered(world, 0);
    for (int i = 1; i < 10000; i++)
        identity_unref(identify_numbered(world, i));
    assert_int_equal(oldest->refs, 2);
    identity_unref(identify_numbered(world, 10000));
    assert_int_equal(oldest->refs, 1);
    identity_unref(oldest);
}

/* The cache is limited to 16 MiB: tokens with thousands of scopes do not fill memory. */
static void large_identities_are_evicted_earlier(void **state)
{
    struct world *world = *state;
    struct buf more = { 0 };
    buf_add_text(&more, ",\"pub\":true,\"exp\":1700000900,\"scopes\":[\"a\"");
    for (int i = 0; i < 2000; i++)
        buf_add_text(&more, ",\"b\"");
    buf_add_text(&more, "],\"n\":");
    size_t len = more.len;
    struct identity *oldest = NULL;
    int others = 0;
    for (int i = 0; i < 1000 && (!oldest || oldest->refs > 1); i++) {
        more.len = len;
        buf_print(&more, "%d", i);
        buf_add_char(&more, '\0');
        struct identity *identity = identify_claims(world, more.ptr);
        assert_non_null(identity);
        assert_int_equal(identity->scope_count, 2001);
        if (oldest) {
            identity_unref(identity);
            others++;
        } else {
            oldest = identity;
        }
    }
    assert_int_equal(oldest->refs, 1);
    assert_in_range(others, 100, 400);
    identity_unref(oldest);
    buf_finish(&more);
}

static void expired_identities_are_evicted_when_others_arrive(void **state)
{
    struct world *world = *state;
    struct identity *old = identify_claims(world, ",\"pub\":true,\"exp\":1700000101");
    struct buf token =
        make_token(world->dev->id, world->dev, ",\"pub\":true,\"exp\":1700000900");
    identity_unref(identify_at(world, token.ptr, now_ms + 2000));
    assert_int_equal(old->refs, 1);
    identity_unref(old);
    buf_finish(&token);
}

/* ---- scopes ---- */

/* Lists the scopes that grant action on type:id; no other scope grants it. */
static bool is_expected(const char *scope, const char *action, const char *type,
                        const char *id)
{
    const char *const actions[] = { action, "*" }, *const types[] = { type, "all" };
    char text[128];
    if (strcmp(scope, "admin") == 0)
        return true;
    for (int i = 0; i < 8; i++) {
        bool with_id = i & 4;
        if (with_id && !id)
            continue;
        if (with_id)
            snprintf(text, sizeof(text), "%s:%s:%s", actions[i & 1], types[i >> 1 & 1], id);
        else
            snprintf(text, sizeof(text), "%s:%s", actions[i & 1], types[i >> 1 & 1]);
        if (strcmp(scope, text) == 0)
            return true;
    }
    return false;
}

/* Checks every scope of these actions, types and ids against every request. */
static void scopes_match_their_truth_table(void **state)
{
    (void)state;
    static const char *const actions[] = { "read",         "write", "trigger",
                                           "batchTrigger", "*",     "admin",
                                           "rea",          "reads", "" };
    static const char *const types[] = { "runs", "tags", "tasks", "batch", "queues", "all",
                                         "all_", "run",  "*",     "",      NULL };
    static const char *const ids[] = { "run_1", "run_12", "run_", "a:b",
                                       "a",     "all",    "*",    NULL };
    enum {
        ACTIONS = 9,
        TYPES = 11,
        IDS = 8,
        ASKED_ACTIONS = 4,
        ASKED_TYPES = 5,
        ASKED_IDS = 5
    };
    size_t granted = 0, cells = 0;
    for (int i = 0; i < ACTIONS * TYPES * IDS; i++) {
        const char *type = types[i / ACTIONS % TYPES], *id = ids[i / ACTIONS / TYPES];
        char scope[64];
        snprintf(scope, sizeof(scope), "%s%s%s%s%s", actions[i % ACTIONS], type ? ":" : "",
                 type ? type : "", type && id ? ":" : "", type && id ? id : "");
        for (int j = 0; j < ASKED_ACTIONS * ASKED_TYPES * ASKED_IDS; j++) {
            const char *action = actions[j % ASKED_ACTIONS];
            const char *asked_type = types[j / ASKED_ACTIONS % ASKED_TYPES];
            int asked = j / ASKED_ACTIONS / ASKED_TYPES;
            const char *asked_id = asked == ASKED_IDS - 1 ? NULL : ids[asked];
            bool expected = is_expected(scope, action, asked_type, asked_id);
            if (scope_grants(slice_of(scope), action, asked_type, slice_of(asked_id)) !=
                expected)
                fail_msg("'%s' for %s on %s:%s", scope, action, asked_type,
                         asked_id ? asked_id : "(all)");
            if (expected && !scope_grants_some(slice_of(scope), action, asked_type))
                fail_msg("'%s' for %s on some of %s", scope, action, asked_type);
            granted += expected;
            cells++;
        }
    }
    assert_int_equal(cells, 79200);
    assert_in_range(granted, 1000, 20000);
}

static void malformed_scope_grants_nothing(void **state)
{
    (void)state;
    static const char *const nothing[] = {
        "read",       "read:", "read:runs:", "write:runs", "read:tags:x",
        "read:run:x", "*",     "",           "admin:"
    };
    for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
        assert_false(scope_grants_some(slice_of(nothing[i]), "read", "runs"));
    assert_true(scope_grants_some(SLICE("read:runs:x"), "read", "runs"));
    assert_true(scope_grants_some(SLICE("*:all"), "read", "runs"));
    assert_true(scope_grants_some(SLICE("admin"), "read", "runs"));
}

static void scopes_of_the_sdk_grant_their_resources(void **state)
{
    (void)state;
    static const struct {
        const char *scope, *action, *type, *id;
        bool grants;
    } cases[] = {
        { "read:runs", "read", "runs", "run_1", true },
        { "read:runs", "read", "runs", NULL, true },
        { "read:runs", "write", "runs", "run_1", false },
        { "read:runs", "read", "tags", "t", false },
        { "read:runs:run_1", "read", "runs", "run_1", true },
        { "read:runs:run_1", "read", "runs", NULL, false },
        { "read:runs:run_1", "read", "runs", "run_10", false },
        { "read:tags:user:7", "read", "tags", "user:7", true },
        { "read:tags:user:7", "read", "tags", "user", false },
        { "read:tags:user", "read", "tags", "user:7", false },
        { "trigger:tasks:hello", "trigger", "tasks", "hello", true },
        { "trigger:tasks:hello", "batchTrigger", "tasks", "hello", false },
        { "read:all", "read", "batch", "batch_1", true },
        { "*:runs", "write", "runs", "run_1", true },
        { "admin", "anything", "at", "all", true },
        { "admin:", "read", "runs", "run_1", false },
        { "Admin", "read", "runs", "run_1", false },
        { "read", "read", "runs", "run_1", false },
        { "read:", "read", "runs", "run_1", false },
        { "read:runs:", "read", "runs", "run_1", false },
        { "read:runs:", "read", "runs", "", false },
        { ":runs", "read", "runs", "run_1", false },
        { "", "read", "runs", "run_1", false },
        { " read:runs", "read", "runs", "run_1", false },
        { "*", "read", "runs", "run_1", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (scope_grants(slice_of(cases[i].scope), cases[i].action, cases[i].type,
                         slice_of(cases[i].id)) != cases[i].grants)
            fail_msg("'%s' for %s on %s:%s", cases[i].scope, cases[i].action, cases[i].type,
                     cases[i].id ? cases[i].id : "(all)");
    }
}

static void secret_key_grants_everything(void **state)
{
    struct world *world = *state;
    struct identity *identity = identify(world, world->dev->secret_key);
    assert_true(identity_may(identity, "write", "runs", SLICE("run_1")));
    assert_true(identity_may(identity, "batchTrigger", "tasks", (struct slice){ 0 }));
    identity_unref(identity);
}

/* ---- signing ---- */

static void signed_token_is_accepted_until_it_expires(void **state)
{
    struct world *world = *state;
    static const char *const scopes[] = { "read:runs:run_1", "write:inputStreams:run_1" };
    struct identity *caller = identify(world, world->dev->secret_key);
    struct buf token = { 0 };
    auth_sign_for(caller, scopes, 2, now_ms, 3600000, &token);
    identity_unref(caller);
    buf_add_char(&token, '\0');
    struct identity *identity = identify(world, token.ptr);
    assert_non_null(identity);
    assert_ptr_equal(identity->account, world->dev);
    assert_int_equal(identity->scope_count, 2);
    assert_string_equal(identity->scopes[0], scopes[0]);
    assert_true(identity->expires_at == now_ms + 3600000);
    assert_false(identity->one_time);
    assert_null(identify_at(world, token.ptr, now_ms + 3600000));
    identity_unref(identity);
    buf_finish(&token);
}

static void special_characters_in_a_scope_are_kept(void **state)
{
    struct world *world = *state;
    static const char *const scopes[] = { "read:tags:\"quoted\\\" \n \xc3\xa9" };
    struct identity *caller = identify(world, world->dev->secret_key);
    struct buf token = { 0 };
    auth_sign_for(caller, scopes, 1, now_ms, 3600000, &token);
    identity_unref(caller);
    buf_add_char(&token, '\0');
    struct identity *identity = identify(world, token.ptr);
    assert_non_null(identity);
    assert_string_equal(identity->scopes[0], scopes[0]);
    identity_unref(identity);
    buf_finish(&token);
}

static void signed_token_keeps_the_hidden_columns_of_its_caller(void **state)
{
    struct world *world = *state;
    static const char *const scopes[] = { "read:runs:run_1" };
    struct identity *caller = identify_claims(
        world, ",\"pub\":true,\"exp\":1700000900,\"otu\":true,\"scopes\":[\"admin\"],"
               "\"realtime\":{\"skipColumns\":[\"payload\",\"output\"]}");
    struct buf token = { 0 };
    auth_sign_for(caller, scopes, 1, now_ms, 3600000, &token);
    buf_add_char(&token, '\0');
    struct identity *made = identify(world, token.ptr);
    assert_non_null(made);
    assert_int_equal(made->scope_count, 1);
    assert_int_equal(made->skip_count, 2);
    assert_string_equal(made->skip_columns[0], "payload");
    assert_string_equal(made->skip_columns[1], "output");
    assert_false(made->one_time);
    identity_unref(made);
    identity_unref(caller);
    buf_finish(&token);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, end_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(secret_key_identifies_its_environment),
        IN_WORLD(personal_token_identifies_its_user),
        IN_WORLD(unknown_credentials_are_rejected_with_the_texts_of_trigger_dev),
        IN_WORLD(too_long_credential_is_not_hashed),
        IN_WORLD(public_token_identifies_its_environment_and_scopes),
        IN_WORLD(missing_or_invalid_claims_grant_nothing),
        IN_WORLD(public_token_of_an_unknown_environment_is_rejected),
        IN_WORLD(token_signed_by_another_environment_is_rejected),
        IN_WORLD(expired_token_is_rejected_even_if_cached),
        IN_WORLD(a_token_of_a_far_future_never_overflows),
        IN_WORLD(accepted_identity_is_cached),
        IN_WORLD(ten_thousand_identities_are_cached_and_the_oldest_evicted),
        IN_WORLD(large_identities_are_evicted_earlier),
        IN_WORLD(expired_identities_are_evicted_when_others_arrive),
        cmocka_unit_test(scopes_match_their_truth_table),
        cmocka_unit_test(malformed_scope_grants_nothing),
        cmocka_unit_test(scopes_of_the_sdk_grant_their_resources),
        IN_WORLD(secret_key_grants_everything),
        IN_WORLD(signed_token_is_accepted_until_it_expires),
        IN_WORLD(special_characters_in_a_scope_are_kept),
        IN_WORLD(signed_token_keeps_the_hidden_columns_of_its_caller),
    };
    return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
