/* Public tokens: those that the official SDK signs are accepted, others are rejected. */
#include "tests/support/world/unit.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "accounts/auth/jwt.h"
#include "base/text.h"

static const int64_t now_ms = INT64_C(1700000100000);

#define KEY "tr_dev_abcdefghijklmnopqrstuvwx"
#define HS256 "{\"alg\":\"HS256\"}"
#define ISS "\"iss\":\"https://id.trigger.dev\""
#define AUD "\"aud\":\"https://api.trigger.dev\""
#define EXP "\"exp\":1700000900"
#define SUB "\"sub\":\"env_1\""
#define GOOD "{" SUB "," ISS "," AUD "," EXP ",\"pub\":true}"

/* Made from the same key by another program (node's crypto). */
static const char sdk_claims[] =
    "{\"sub\":\"env_1\",\"pub\":true,\"scopes\":[\"read:runs:run_1\"],\"iat\":1700000000,"
    "\"iss\":\"https://id.trigger.dev\",\"aud\":\"https://api.trigger.dev\","
    "\"exp\":1700000900}";
static const char sdk_token[] = "eyJhbGciOiJIUzI1NiJ9."
                                "eyJzdWIiOiJlbnZfMSIsInB1YiI6dHJ1ZSwic2NvcGVzIjpbInJlYWQ6cn"
                                "VuczpydW5fMSJdLCJpYXQiOjE3MDAw"
                                "MDAwMDAsImlzcyI6Imh0dHBzOi8vaWQudHJpZ2dlci5kZXYiLCJhdWQiOi"
                                "JodHRwczovL2FwaS50cmlnZ2VyLmRl"
                                "diIsImV4cCI6MTcwMDAwMDkwMH0."
                                "IiuOsDUBDnuOIEp_i8lvVxF9ynUVweZUwD7_6TkHFRg";

static void add_part(struct buf *out, const void *bytes, size_t len)
{
    struct slice part = { bytes, len };
    char *place = buf_reserve(out, 4 * len / 3 + 4);
    out->len += text_to_base64url(part, place);
}

/* Makes a token with any header and payload, signed with any digest. Terminated. An
 * attacker who knows the key, or a library that is too clever, could make it. */
static struct buf forge(const char *header, const char *payload, const char *key,
                        const EVP_MD *digest)
{
    struct buf token = { 0 };
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    add_part(&token, header, strlen(header));
    buf_add_char(&token, '.');
    add_part(&token, payload, strlen(payload));
    HMAC(digest, key, (int)strlen(key), (unsigned char *)token.ptr, token.len, mac, &len);
    buf_add_char(&token, '.');
    add_part(&token, mac, len);
    return token;
}

static enum err verify(struct slice token, const char *key)
{
    struct buf payload = { 0 };
    struct failure why = { 0 };
    enum err err = jwt_verify(token, slice_of(key), now_ms, &payload, &why);
    assert_int_equal(err, why.code);
    assert_int_equal(!err, payload.len > 0); /* nothing is returned with an error */
    buf_finish(&payload);
    return err;
}

static enum err verify_text(const char *token)
{
    return verify(slice_of(token), KEY);
}

static enum err verify_claims(const char *payload)
{
    struct buf token = forge(HS256, payload, KEY, EVP_sha256());
    enum err err = verify(buf_slice(&token), KEY);
    buf_finish(&token);
    return err;
}

static void token_signed_by_the_sdk_is_accepted(void **state)
{
    (void)state;
    struct buf payload = { 0 };
    struct failure why;
    assert_int_equal(jwt_verify(slice_of(sdk_token), slice_of(KEY), now_ms, &payload, &why),
                     OK);
    assert_true(slice_is(buf_slice(&payload), sdk_claims));
    buf_finish(&payload);
}

static void signed_token_equals_that_of_the_sdk(void **state)
{
    (void)state;
    struct buf token = { 0 };
    buf_add_text(&token, "kept:");
    jwt_sign(slice_of(sdk_claims), slice_of(KEY), &token);
    assert_true(slice_is(slice_from(buf_slice(&token), 5), sdk_token));
    buf_finish(&token);
}

static void only_hs256_is_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        bool accepted;
    } cases[] = {
        { HS256, true },
        { "{\"alg\":\"HS256\",\"typ\":\"JWT\"}", true },
        { " { \"typ\" : \"JWT\" , \"alg\" : \"HS256\" } ", true },
        { "{\"alg\":\"\\u0048S256\"}", true }, /* the same text with an escape */
        { "{\"alg\":\"none\"}", false },
        { "{\"alg\":\"None\"}", false },
        { "{\"alg\":\"NONE\"}", false },
        { "{\"alg\":\"nOnE\"}", false },
        { "{\"alg\":\"hs256\"}", false },
        { "{\"alg\":\"HS384\"}", false },
        { "{\"alg\":\"HS512\"}", false },
        { "{\"alg\":\"RS256\"}", false },
        { "{\"alg\":\"ES256\"}", false },
        { "{\"alg\":\"PS256\"}", false },
        { "{\"alg\":\"EdDSA\"}", false },
        { "{\"alg\":\"HS256 \"}", false },
        { "{\"alg\":\"HS256\\u0000\"}", false },
        { "{\"alg\":\"\"}", false },
        { "{\"alg\":null}", false },
        { "{\"alg\":256}", false },
        { "{\"alg\":[\"HS256\"]}", false },
        { "{\"ALG\":\"HS256\"}", false },
        { "{\"typ\":\"JWT\"}", false },
        { "{\"alg\":\"HS256\",\"typ\":\"jwt\"}", true }, /* RFC 7519 §5.1 */
        { "{\"alg\":\"HS256\",\"typ\":\"at+jwt\"}", false },
        { "{\"alg\":\"HS256\",\"typ\":\"JWE\"}", false },
        { "{\"alg\":\"HS256\",\"typ\":\"JWTS\"}", false },
        { "{\"alg\":\"HS256\",\"typ\":\"JWT\\u0000\"}", false },
        { "{\"alg\":\"HS256\",\"typ\":\"\"}", false },
        { "{\"alg\":\"HS256\",\"typ\":null}", false },
        { "{\"alg\":\"HS256\",\"typ\":[\"JWT\"]}", false },
        { "{}", false },
        { "{\"alg\":\"HS256\",\"crit\":[\"exp\"]}", false },
        { "{\"alg\":\"HS256\",\"crit\":[]}", false },
        { "{\"alg\":\"HS256\",\"crit\":null}", false },
        { "{\"alg\":\"none\",\"alg\":\"HS256\"}", false },
        { "{\"alg\":\"HS256\",\"alg\":\"none\"}", false },
        { "{\"alg\":\"HS256\"}{\"alg\":\"HS256\"}", false },
        { "{\"alg\":\"HS256\"", false },
        { "[\"HS256\"]", false },
        { "\"HS256\"", false },
        { "", false },
    };
    const EVP_MD *digests[] = { EVP_sha256(), EVP_sha384(), EVP_sha512() };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t j = 0; j < sizeof(digests) / sizeof(digests[0]); j++) {
            struct buf token = forge(cases[i].header, GOOD, KEY, digests[j]);
            enum err expected = cases[i].accepted && j == 0 ? OK : ERR_UNAUTHORIZED;
            if (verify(buf_slice(&token), KEY) != expected)
                fail_msg("%s with digest %zu", cases[i].header, j);
            buf_finish(&token);
        }
    }
}

static void token_without_signature_is_rejected(void **state)
{
    (void)state;
    static const char *const headers[] = { HS256, "{\"alg\":\"none\"}",
                                           "{\"alg\":\"None\"}" };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct buf token = forge(headers[i], GOOD, KEY, EVP_sha256());
        while (token.ptr[token.len - 1] != '.')
            token.len--;
        assert_int_equal(verify(buf_slice(&token), KEY), ERR_UNAUTHORIZED); /* h.p. */
        token.len--;
        assert_int_equal(verify(buf_slice(&token), KEY), ERR_UNAUTHORIZED); /* h.p */
        buf_finish(&token);
    }
}

static void token_must_have_three_canonical_parts(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after;
    } around[] = {
        { "", "." },
        { "", ".." },
        { ".", "" },
        { "", "=" },
        { "", "==" },
        { "", "A" },
        { "", " " },
        { " ", "" },
        { "", "\n" },
        { "eyJhbGciOiJIUzI1NiJ9.", "" }, /* two headers */
        { "", ".eyJhbGciOiJIUzI1NiJ9" },
    };
    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        struct buf token = { 0 };
        buf_print(&token, "%s%s%s", around[i].before, sdk_token, around[i].after);
        if (verify(buf_slice(&token), KEY) != ERR_UNAUTHORIZED)
            fail_msg("'%s' before and '%s' after", around[i].before, around[i].after);
        buf_finish(&token);
    }
    static const char *const texts[] = {
        "",      ".",        "..",
        "...",   "a",        "a.b",
        "a.b.c", "e30.e30.", "eyJhbGciOiJIUzI1NiJ9.e30.AAAA"
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(verify_text(texts[i]), ERR_UNAUTHORIZED);
    assert_int_equal(verify((struct slice){ 0 }, KEY), ERR_UNAUTHORIZED);
}

/* The signature's last character has two unused bits. So three other spellings decode to
 * the same bytes; all are rejected. */
static void any_changed_character_is_detected(void **state)
{
    (void)state;
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/. \"";
    char token[sizeof(sdk_token)];
    memcpy(token, sdk_token, sizeof(token));
    for (size_t i = 0; i < sizeof(token) - 1; i++) {
        for (size_t j = 0; j < sizeof(alphabet) - 1; j++) {
            token[i] = alphabet[j];
            enum err expected = token[i] == sdk_token[i] ? OK : ERR_UNAUTHORIZED;
            if (verify_text(token) != expected)
                fail_msg("character %zu as '%c'", i, token[i]);
        }
        token[i] = sdk_token[i];
    }
}

static void padded_parts_are_rejected_even_when_signed(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "eyJhbGciOiJIUzI1NiJ9.eyJwdWIiOnRydWV9==",
        "eyJhbGciOiJIUzI1NiJ9=.eyJwdWIiOnRydWV9",
        "eyJhbGciOiJIUzI1NiJ9\n.eyJwdWIiOnRydWV9",
        "eyJhbGciOiJIUzI1NiK.eyJwdWIiOnRydWV9",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct buf token = { 0 };
        unsigned char mac[32];
        buf_add_text(&token, bodies[i]);
        HMAC(EVP_sha256(), KEY, (int)strlen(KEY), (unsigned char *)token.ptr, token.len,
             mac, NULL);
        buf_add_char(&token, '.');
        add_part(&token, mac, sizeof(mac));
        assert_int_equal(verify(buf_slice(&token), KEY), ERR_UNAUTHORIZED);
        buf_finish(&token);
    }
}

static void issuer_audience_and_expiry_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *claims;
        bool accepted;
    } cases[] = {
        { GOOD, true },
        { "{" ISS ",\"aud\":[\"https://api.trigger.dev\"]," EXP "}", true },
        { "{" ISS ",\"aud\":[1,\"x\",\"https://api.trigger.dev\"]," EXP "}", true },
        { "{" AUD "," EXP "}", false },
        { "{\"iss\":\"https://id.trigger.dev/\"," AUD "," EXP "}", false },
        { "{\"iss\":\"https://id.trigger.dev.evil\"," AUD "," EXP "}", false },
        { "{\"iss\":\"https://id.trigger.dev\\u0000\"," AUD "," EXP "}", false },
        { "{\"iss\":null," AUD "," EXP "}", false },
        { "{\"iss\":[\"https://id.trigger.dev\"]," AUD "," EXP "}", false },
        { "{" ISS "," EXP "}", false },
        { "{" ISS ",\"aud\":\"https://api.trigger.de\"," EXP "}", false },
        { "{" ISS ",\"aud\":[]," EXP "}", false },
        { "{" ISS ",\"aud\":[[\"https://api.trigger.dev\"]]," EXP "}", false },
        { "{" ISS ",\"aud\":{\"a\":\"https://api.trigger.dev\"}," EXP "}", false },
        /* Now is 1700000100. Expiry has no leeway: a token is expired in the second that
         * exp names. */
        { "{" ISS "," AUD "}", true },
        { "{" ISS "," AUD ",\"exp\":1700000101}", true },
        { "{" ISS "," AUD ",\"exp\":1700000100}", false },
        { "{" ISS "," AUD ",\"exp\":1700000099}", false },
        { "{" ISS "," AUD ",\"exp\":1700000101.9}", true },
        { "{" ISS "," AUD ",\"exp\":1700000100.9}", false },
        { "{" ISS "," AUD ",\"exp\":1.7e9}", false },
        { "{" ISS "," AUD ",\"exp\":1.8e9}", true },
        { "{" ISS "," AUD ",\"exp\":1e300}", true },
        { "{" ISS "," AUD ",\"exp\":99999999999999999999999999}", true },
        { "{" ISS "," AUD ",\"exp\":9223372036854775807}", true },
        { "{" ISS "," AUD ",\"exp\":1e400}", false },
        { "{" ISS "," AUD ",\"exp\":-1}", false },
        { "{" ISS "," AUD ",\"exp\":-99999999999999999999999999}", false },
        { "{" ISS "," AUD ",\"exp\":0}", false },
        { "{" ISS "," AUD ",\"exp\":NaN}", false },
        { "{" ISS "," AUD ",\"exp\":\"1700000900\"}", false },
        { "{" ISS "," AUD ",\"exp\":null}", false },
        { "{" ISS "," AUD ",\"exp\":true}", false },
        { "{" ISS "," AUD ",\"exp\":[1700000900]}", false },
        { "{" ISS "," AUD ",\"exp\":1,\"exp\":1700000900}", false },
        { "{" ISS "," AUD "," EXP ",\"nbf\":1700000105}", true },
        { "{" ISS "," AUD "," EXP ",\"nbf\":1700000106}", false },
        { "{" ISS "," AUD "," EXP ",\"nbf\":\"1\"}", false },
        { "{" ISS "," AUD "," EXP ",\"nbf\":null}", false },
        { "{" ISS "," AUD "," EXP ",\"iat\":1700000105.5}", true },
        { "{" ISS "," AUD "," EXP ",\"iat\":1700000106}", false },
        { "{" ISS "," AUD "," EXP ",\"iat\":1e300}", false },
        { "{" ISS "," AUD "," EXP ",\"iat\":\"now\"}", false },
        { "[" GOOD "]", false },
        { GOOD "x", false },
        { "{" ISS "," AUD "," EXP, false },
        { "null", false },
        { "", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum err expected = cases[i].accepted ? OK : ERR_UNAUTHORIZED;
        if (verify_claims(cases[i].claims) != expected)
            fail_msg("%s", cases[i].claims);
    }
}

static void token_is_rejected_with_another_key(void **state)
{
    (void)state;
    static const char *const keys[] = { "tr_dev_abcdefghijklmnopqrstuvwy", KEY "x",
                                        "tr_dev_abcdefghijklmnopqrstuvw", "", (" " KEY) };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_int_equal(verify(slice_of(sdk_token), keys[i]), ERR_UNAUTHORIZED);

    /* Without a key, no token is valid: one signed with the empty key is rejected. */
    struct buf token = forge(HS256, GOOD, "", EVP_sha256());
    assert_int_equal(verify(buf_slice(&token), ""), ERR_UNAUTHORIZED);
    buf_finish(&token);
}

/* Verifies a correctly signed payload of the given size, padded with white space. */
static enum err verify_long(size_t size)
{
    struct buf payload = { 0 };
    buf_add_text(&payload, GOOD);
    while (payload.len < size)
        buf_add_char(&payload, ' ');
    buf_add_char(&payload, '\0');
    enum err err = verify_claims(payload.ptr);
    buf_finish(&payload);
    return err;
}

static void token_of_more_than_16_kib_is_rejected(void **state)
{
    (void)state;
    size_t overhead = strlen("eyJhbGciOiJIUzI1NiJ9..") + 43;
    size_t longest = (JWT_TEXT_MAX - overhead) / 4 * 3;
    assert_int_equal(verify_long(longest), OK);
    assert_int_equal(verify_long(longest + 3), ERR_UNAUTHORIZED);
    assert_int_equal(verify_long(1 << 20), ERR_UNAUTHORIZED);
}

static void deep_claims_do_not_exhaust_the_stack(void **state)
{
    (void)state;
    struct buf payload = { 0 };
    for (int i = 0; i < 12000; i++)
        buf_add_char(&payload, '[');
    buf_add_char(&payload, '\0');
    assert_int_equal(verify_claims(payload.ptr), ERR_UNAUTHORIZED);
    buf_finish(&payload);
}

static void public_token_is_recognized_by_its_payload(void **state)
{
    (void)state;
    static const struct {
        const char *payload;
        bool is_public;
    } cases[] = {
        { "{\"pub\":true}", true },   { " {\"a\":1,\"pub\":true} ", true },
        { "{\"pub\":false}", false }, { "{\"pub\":\"true\"}", false },
        { "{\"pub\":1}", false },     { "{}", false },
        { "[true]", false },          { "true", false },
        { "{\"pub\":true", false },   { "{\"pub\":true,\"pub\":false}", false },
        { "{\"Pub\":true}", false },  { "", false },
    };
    char subject[8];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf token = forge("not even a header", cases[i].payload, KEY, EVP_sha256());
        assert_int_equal(jwt_is_public_token(buf_slice(&token), subject, sizeof(subject)),
                         cases[i].is_public);
        buf_finish(&token);
    }
    assert_true(jwt_is_public_token(slice_of(sdk_token), subject, sizeof(subject)));
    assert_string_equal(subject, "env_1");
    static const char *const others[] = { "tr_dev_abcdefghijklmnopqrstuvwx", "a.b", "" };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(jwt_is_public_token(slice_of(others[i]), subject, sizeof(subject)));
        assert_string_equal(subject, "");
    }
}

static void the_subject_is_read_before_the_signature(void **state)
{
    (void)state;
    static const struct {
        const char *payload, *subject; /* "": no subject */
    } cases[] = {
        { "{\"sub\":\"env_1\"}", "env_1" },
        { "{\"sub\":\"1234567\"}", "1234567" },
        { "{\"s\\u0075b\":\"a\\u0062c\"}", "abc" },
        { "{\"sub\":\"12345678\"}", "" }, /* does not fit into eight bytes */
        { "{\"sub\":\"\"}", "" },
        { "{\"sub\":5}", "" },
        { "{\"sub\":\"a\\u0000b\"}", "" },
        { "{\"sub", "" },
        { "{}", "" },
        { "[]", "" },
        { "", "" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char subject[8] = "before";
        struct buf token = forge(HS256, cases[i].payload, "any key", EVP_sha256());
        jwt_is_public_token(buf_slice(&token), subject, sizeof(subject));
        assert_string_equal(subject, cases[i].subject);
        buf_finish(&token);
    }
}

static size_t parsed; /* calls of jansson's allocator */

static void *count_parsing(size_t size)
{
    parsed++;
    return malloc(size);
}

/* Any client can send a token: parsing each would cost 35 times as much as a wrong key. */
static void payload_is_parsed_only_after_the_signature_check(void **state)
{
    (void)state;
    struct buf payload = { 0 }, read = { 0 };
    struct failure why;
    char subject[8];
    buf_add_text(&payload, "{" SUB "," ISS "," AUD "," EXP ",\"pub\":true,\"x\":[1");
    for (int i = 0; i < 4000; i++)
        buf_add_text(&payload, ",1");
    buf_add_text(&payload, "]}");
    buf_add_char(&payload, '\0');

    json_set_alloc_funcs(count_parsing, free);
    struct buf forged = forge(HS256, payload.ptr, "tr_dev_of_somebody_else", EVP_sha256());
    assert_true(jwt_is_public_token(buf_slice(&forged), subject, sizeof(subject)));
    assert_string_equal(subject, "env_1");
    assert_int_equal(verify(buf_slice(&forged), KEY), ERR_UNAUTHORIZED);
    assert_int_equal(parsed, 0);

    struct buf signed_by_us = forge(HS256, payload.ptr, KEY, EVP_sha256());
    assert_int_equal(jwt_verify(buf_slice(&signed_by_us), SLICE(KEY), now_ms, &read, &why),
                     OK);
    assert_true(parsed > 4000);
    json_set_alloc_funcs(malloc, free);
    buf_finish(&payload);
    buf_finish(&read);
    buf_finish(&forged);
    buf_finish(&signed_by_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_signed_by_the_sdk_is_accepted),
        cmocka_unit_test(signed_token_equals_that_of_the_sdk),
        cmocka_unit_test(only_hs256_is_accepted),
        cmocka_unit_test(token_without_signature_is_rejected),
        cmocka_unit_test(token_must_have_three_canonical_parts),
        cmocka_unit_test(any_changed_character_is_detected),
        cmocka_unit_test(padded_parts_are_rejected_even_when_signed),
        cmocka_unit_test(issuer_audience_and_expiry_are_checked),
        cmocka_unit_test(token_is_rejected_with_another_key),
        cmocka_unit_test(token_of_more_than_16_kib_is_rejected),
        cmocka_unit_test(deep_claims_do_not_exhaust_the_stack),
        cmocka_unit_test(public_token_is_recognized_by_its_payload),
        cmocka_unit_test(the_subject_is_read_before_the_signature),
        cmocka_unit_test(payload_is_parsed_only_after_the_signature_check),
    };
    return cmocka_run_group_tests_name("jwt", tests, NULL, NULL);
}
