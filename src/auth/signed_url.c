/* signed_url.c - see signed_url.h. */
#include "auth/signed_url.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/buf.h"

void url_sign(const struct account *account, const char *method, struct slice name,
              int64_t expires_s, char out[URL_SIGNATURE_LEN + 1])
{
    unsigned char mac[HASH_LEN];
    unsigned len = 0;
    struct buf text = { 0 };

    buf_print(&text, "runcast-url%c%s%c%s%c%lld%c", 0, account->id, 0, method, 0,
              (long long)expires_s, 0);
    buf_add(&text, name);
    const unsigned char *made =
        HMAC(EVP_sha256(), account->secret_key, (int)strlen(account->secret_key),
             (const unsigned char *)text.ptr, text.len, mac, &len);
    assert(made && len == HASH_LEN);
    size_t count = text_to_base64url((struct slice){ (char *)mac, HASH_LEN }, out);
    assert(count == URL_SIGNATURE_LEN);
    out[count] = '\0';
    buf_finish(&text);
}

enum err url_verify(const struct account *account, const char *method, struct slice name,
                    int64_t expires_s, struct slice signature, int64_t now_ms,
                    struct failure *why)
{
    char expected[URL_SIGNATURE_LEN + 1];
    if (account)
        url_sign(account, method, name, expires_s, expected);
    if (!account || signature.len != URL_SIGNATURE_LEN ||
        CRYPTO_memcmp(signature.ptr, expected, URL_SIGNATURE_LEN) != 0)
        return explain(why, ERR_FORBIDDEN,
                       "The signature of this URL is wrong: ask for a new one");
    if (expires_s * 1000 <= now_ms)
        return explain(why, ERR_FORBIDDEN, "This URL has expired: ask for a new one");
    return OK;
}
