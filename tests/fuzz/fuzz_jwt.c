/* fuzz_jwt - tokens from any client.
 *
 * The first byte chooses how the rest is used: as a token, as a header and claims that are
 * signed correctly (so that the fuzzer passes the signature check), or as claims. A token
 * is accepted only if its header names HS256. A token that we sign ourselves verifies to
 * the same bytes or not at all. */
#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "accounts/auth/jwt.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char key[] = "tr_dev_abcdefghijklmnopqrstuvwx";
static const int64_t now_ms = INT64_C(1700000100000);

static void add_part(struct buf *out, struct slice part)
{
    char *place = buf_reserve(out, 4 * part.len / 3 + 4);
    out->len += text_to_base64url(part, place);
}

static bool verify(struct slice token, struct buf *payload)
{
    struct failure why;
    return jwt_verify(token, slice_of(key), now_ms, payload, &why) == OK;
}

static void take_as_token(struct slice token)
{
    char subject[36];
    struct buf payload = { 0 };
    jwt_is_public_token(token, subject, sizeof(subject));
    assert(memchr(subject, '\0', sizeof(subject)));
    if (!verify(token, &payload))
        assert(payload.len == 0);
    buf_finish(&payload);
}

/* The input is a header, a NUL and claims; they are signed correctly. */
static void take_as_parts(struct slice input)
{
    const char *zero = input.len ? memchr(input.ptr, '\0', input.len) : NULL;
    struct slice header = { input.ptr, zero ? (size_t)(zero - input.ptr) : input.len };
    struct slice claims = zero ? slice_from(input, header.len + 1) : SLICE("");
    struct buf token = { 0 }, payload = { 0 };
    unsigned char mac[32];
    add_part(&token, header);
    buf_add_char(&token, '.');
    add_part(&token, claims);
    HMAC(EVP_sha256(), key, sizeof(key) - 1, (unsigned char *)token.ptr, token.len, mac,
         NULL);
    buf_add_char(&token, '.');
    add_part(&token, (struct slice){ (char *)mac, sizeof(mac) });

    if (verify(buf_slice(&token), &payload)) {
        assert(slice_equal(buf_slice(&payload), claims));
        assert(memmem(header.ptr, header.len, "256", 3) ||
               memchr(header.ptr, '\\', header.len));
        assert(!memmem(header.ptr, header.len, "\"crit\"", 6));
    }
    take_as_token(buf_slice(&token));
    buf_finish(&token);
    buf_finish(&payload);
}

static void take_as_claims(struct slice claims)
{
    struct buf token = { 0 }, payload = { 0 };
    jwt_sign(claims, slice_of(key), &token);
    if (verify(buf_slice(&token), &payload))
        assert(slice_equal(buf_slice(&payload), claims));
    buf_finish(&token);
    buf_finish(&payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct slice rest = { (const char *)data + 1, size - 1 };
    switch (data[0] % 3) {
    case 0: take_as_parts(rest); break;
    case 1: take_as_token(rest); break;
    default: take_as_claims(rest); break;
    }
    return 0;
}
