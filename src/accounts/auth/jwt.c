/* jwt.c - tokens that our clients sign themselves.
 *
 *   header.payload.signature   each base64url, unpadded and canonical
 *                  └── HMAC-SHA256 of "header.payload" with the environment's secret key
 *
 * Anyone can send a token, so nothing is parsed before its MAC was verified. The sub claim,
 * which names the key, is found by one scan over the payload, which may be any text.
 *
 * The algorithm is not the header's to choose: the MAC is computed as HS256 before the
 * header is read, and a header with another alg is rejected. crit is rejected because we
 * support no extension (RFC 7515 §4.1.11). */
#include "accounts/auth/jwt.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <strings.h>

#include "base/json/json_tree.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/text.h"

enum { MAC_LEN = 32, MAC_TEXT_LEN = 43, LEEWAY_S = 5, KEY_KEPT_MAX = 128 };

static const char issuer[] = "https://id.trigger.dev";
static const char audience[] = "https://api.trigger.dev";

struct jwt_parts {
    struct slice header, payload, signature;
    struct slice body; /* header, dot and payload */
};

static enum err split(struct slice token, struct jwt_parts *parts)
{
    struct slice rest = token;
    struct jwt_parts found;
    if (!token.len || token.len > JWT_TEXT_MAX)
        return ERR_INVALID;
    if (!slice_split(&rest, '.', &found.header) ||
        !slice_split(&rest, '.', &found.payload) ||
        !slice_split(&rest, '.', &found.signature) || rest.ptr)
        return ERR_INVALID;
    found.body = (struct slice){ token.ptr, found.header.len + 1 + found.payload.len };
    *parts = found;
    return OK;
}

/* Decodes the header or payload of a token, and appends its bytes to text unless NULL.
 *
 * Numbers become doubles, so that a huge time is far away and not an error. Returns NULL
 * unless the part is base64url of one JSON object without duplicate names. */
static json_t *decode(struct slice part, struct buf *text)
{
    unsigned char *bytes = mem_alloc(part.len);
    size_t len;
    json_t *object = NULL;
    if (text_from_base64url(part, bytes, &len) == OK)
        object = json_tree_read((struct slice){ (char *)bytes, len },
                                TREE_ONE_OF_EACH | TREE_REALS | TREE_NO_ZERO, NULL);
    if (object && !json_is_object(object)) {
        json_decref(object);
        object = NULL;
    }
    if (object && text)
        buf_add(text, (struct slice){ (char *)bytes, len });
    free(bytes);
    return object;
}

/* A MAC context that keeps the last key.
 *
 * Setting a key hashes it twice, which costs more than restarting with the same one; most
 * tokens of a gateway belong to one environment. */
struct keyed {
    EVP_MAC_CTX *context;
    char key[KEY_KEPT_MAX];
    size_t key_len; /* 0: none */
};

static bool set_key(struct keyed *keyed, struct slice key)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    OPENSSL_cleanse(keyed->key, sizeof(keyed->key));
    keyed->key_len = key.len <= sizeof(keyed->key) ? key.len : 0;
    if (keyed->key_len)
        memcpy(keyed->key, key.ptr, key.len);
    return EVP_MAC_init(keyed->context, (const unsigned char *)key.ptr, key.len, params);
}

static bool begin_mac(struct keyed *keyed, struct slice key)
{
    if (!keyed->context) { /* once: a fetch costs more than the MAC of a token */
        EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
        keyed->context = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
        EVP_MAC_free(hmac);
        assert(keyed->context);
    }
    if (keyed->key_len && slice_equal((struct slice){ keyed->key, keyed->key_len }, key))
        return EVP_MAC_init(keyed->context, NULL, 0, NULL);
    return set_key(keyed, key);
}

static void sign(struct slice body, struct slice key, unsigned char mac[MAC_LEN])
{
    static struct keyed keyed;
    size_t len = 0;
    bool made = begin_mac(&keyed, key) &&
                EVP_MAC_update(keyed.context, (const unsigned char *)body.ptr, body.len) &&
                EVP_MAC_final(keyed.context, mac, &len, MAC_LEN);
    assert(made && len == MAC_LEN);
}

static bool signature_is_right(const struct jwt_parts *parts, struct slice key)
{
    unsigned char given[MAC_LEN], expected[MAC_LEN];
    size_t len;
    if (!key.len || parts->signature.len != MAC_TEXT_LEN ||
        text_from_base64url(parts->signature, given, &len) || len != MAC_LEN)
        return false;
    sign(parts->body, key, expected);
    return CRYPTO_memcmp(given, expected, MAC_LEN) == 0;
}

static bool json_text_is(const json_t *value, const char *text)
{
    return json_is_string(value) && json_string_length(value) == strlen(text) &&
           strcmp(json_string_value(value), text) == 0;
}

/* Returns true if typ is absent or JWT.
 *
 * Other kinds of tokens have their own typ, so that none is mistaken for another (RFC 8725
 * §3.11). */
static bool type_is_ours(const json_t *typ)
{
    return !typ || (json_is_string(typ) && json_string_length(typ) == 3 &&
                    strcasecmp(json_string_value(typ), "JWT") == 0);
}

static bool header_is_ours(const struct jwt_parts *parts)
{
    json_t *header = decode(parts->header, NULL);
    bool ours = header && json_text_is(json_object_get(header, "alg"), "HS256") &&
                type_is_ours(json_object_get(header, "typ")) &&
                !json_object_get(header, "crit");
    json_decref(header);
    return ours;
}

static bool is_for_us(const json_t *aud)
{
    size_t i;
    json_t *one;
    if (json_text_is(aud, audience))
        return true;
    json_array_foreach(aud, i, one)
    {
        if (json_text_is(one, audience))
            return true;
    }
    return false;
}

/* Returns true if the time is past or absent; false if it is not a number. */
static bool is_past(const json_t *time, double now)
{
    return !time || (json_is_number(time) &&
                     trunc(json_number_value(time)) <= now + (double)LEEWAY_S);
}

static const char *mistake_in(const json_t *claims, int64_t now_ms)
{
    double now = floor((double)now_ms / 1000);
    const json_t *exp = json_object_get(claims, "exp");

    if (!json_text_is(json_object_get(claims, "iss"), issuer))
        return "the issuer (iss) is not https://id.trigger.dev";
    if (!is_for_us(json_object_get(claims, "aud")))
        return "the audience (aud) is not https://api.trigger.dev";
    if (exp && !json_is_number(exp))
        return "the expiry (exp) is not a number";
    if (exp && trunc(json_number_value(exp)) <= now)
        return "the token has expired";
    if (!is_past(json_object_get(claims, "nbf"), now))
        return "the token is not valid yet (nbf)";
    if (!is_past(json_object_get(claims, "iat"), now))
        return "the token was issued in the future (iat)";
    return NULL;
}

bool jwt_is_public_token(struct slice token, char *subject, size_t size)
{
    static const char *const names[] = { "pub", "sub" };
    struct slice values[2];
    struct jwt_parts parts;
    struct buf text = { 0 };
    size_t len;

    *subject = '\0';
    if (split(token, &parts))
        return false;
    unsigned char *bytes = mem_alloc(parts.payload.len);
    if (text_from_base64url(parts.payload, bytes, &len))
        len = 0;
    members_find((struct slice){ (char *)bytes, len }, names, 2, values);
    if (scan_string(values[1], &text) && text.len && text.len < size &&
        !memchr(text.ptr, '\0', text.len)) {
        memcpy(subject, text.ptr, text.len);
        subject[text.len] = '\0';
    }
    bool is_public = slice_is(values[0], "true");
    buf_finish(&text);
    free(bytes);
    return is_public;
}

enum err jwt_verify(struct slice token, struct slice key, int64_t now_ms,
                    struct buf *payload, struct failure *why)
{
    struct jwt_parts parts;
    if (split(token, &parts))
        return explain(why, ERR_UNAUTHORIZED, "the token does not have three parts");
    if (!signature_is_right(&parts, key))
        return explain(why, ERR_UNAUTHORIZED, "the signature is wrong");
    if (!header_is_ours(&parts))
        return explain(why, ERR_UNAUTHORIZED,
                       "the header is not that of a JWT signed with HS256");

    struct buf text = { 0 };
    json_t *claims = decode(parts.payload, &text);
    const char *mistake = claims ? mistake_in(claims, now_ms) : "the payload is not JSON";
    if (!mistake)
        buf_add(payload, buf_slice(&text));
    json_decref(claims);
    buf_finish(&text);
    return mistake ? explain(why, ERR_UNAUTHORIZED, "%s", mistake) : OK;
}

static void add_base64url(struct buf *out, struct slice bytes)
{
    char *place = buf_reserve(out, (bytes.len * 4 + 2) / 3);
    out->len += text_to_base64url(bytes, place);
}

void jwt_sign(struct slice claims, struct slice key, struct buf *out)
{
    unsigned char mac[MAC_LEN];
    size_t start = out->len;
    add_base64url(out, SLICE("{\"alg\":\"HS256\"}"));
    buf_add_char(out, '.');
    add_base64url(out, claims);
    sign((struct slice){ out->ptr + start, out->len - start }, key, mac);
    buf_add_char(out, '.');
    add_base64url(out, (struct slice){ (char *)mac, MAC_LEN });
}
