/* signed_url.c - signs and verifies URLs: an HMAC over method, name and expiry. */
#include "accounts/auth/signed_url.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/buf.h"

static void sign(const char *key, const struct account *account, const char *method,
                 struct slice name, int64_t expires_s, char out[URL_SIGNATURE_LEN + 1])
{
    unsigned char mac[HASH_LEN];
    unsigned len = 0;
    struct buf text = { 0 };

    buf_print(&text, "runcast-url%c%s%c%s%c%lld%c", 0, account->id, 0, method, 0,
              (long long)expires_s, 0);
    buf_add(&text, name);
    const unsigned char *made = HMAC(EVP_sha256(), key, (int)strlen(key),
                                     (const unsigned char *)text.ptr, text.len, mac, &len);
    assert(made && len == HASH_LEN);
    size_t count = text_to_base64url((struct slice){ (char *)mac, HASH_LEN }, out);
    assert(count == URL_SIGNATURE_LEN);
    out[count] = '\0';
    buf_finish(&text);
}

void url_sign(const struct account *account, const char *method, struct slice name,
              int64_t expires_s, char out[URL_SIGNATURE_LEN + 1])
{
    sign(account->secret_key, account, method, name, expires_s, out);
}

/* Returns true if any valid key of the environment has signed the URL.
 *
 * A replaced key signs nothing new, and its URLs are valid until its grace period ends. */
static bool is_signed(struct account *account, const char *method, struct slice name,
                      int64_t expires_s, struct slice signature, int64_t now_ms)
{
    char expected[URL_SIGNATURE_LEN + 1];
    if (signature.len != URL_SIGNATURE_LEN)
        return false;
    list_each (link, &account_of_keys(account)->secrets) {
        const struct secret *secret = container_of(link, struct secret, of_owner);
        if (!secret_is_valid(secret, now_ms))
            continue;
        sign(secret->key, account, method, name, expires_s, expected);
        if (CRYPTO_memcmp(signature.ptr, expected, URL_SIGNATURE_LEN) == 0)
            return true;
    }
    return false;
}

enum err url_verify(struct account *account, const char *method, struct slice name,
                    int64_t expires_s, struct slice signature, int64_t now_ms,
                    struct failure *why)
{
    if (!account || account->archived ||
        !is_signed(account, method, name, expires_s, signature, now_ms))
        return explain(why, ERR_FORBIDDEN,
                       "The signature of this URL is wrong; request a new URL");
    if (expires_s * 1000 <= now_ms)
        return explain(why, ERR_FORBIDDEN, "This URL has expired; request a new one");
    return OK;
}
