/* key_proof.c - verifies ECDSA signatures of P-256 (FIPS 186-5) with OpenSSL. */
#include "accounts/auth/key_proof.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/params.h>

enum { HALF = KEY_PROOF_LEN / 2, DER_MAX = 80 };

/* Returns NULL if the bytes are not an uncompressed point of the curve. */
static EVP_PKEY *read_key(const unsigned char bytes[KEY_PROOF_KEY_LEN])
{
    char curve[] = "prime256v1";
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, curve, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (void *)bytes,
                                          KEY_PROOF_KEY_LEN),
        OSSL_PARAM_construct_end(),
    };
    if (bytes[0] == POINT_CONVERSION_UNCOMPRESSED && context &&
        EVP_PKEY_fromdata_init(context) == 1 &&
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    EVP_PKEY_CTX_free(context);
    return key;
}

bool key_proof_key_is_right(const unsigned char key[KEY_PROOF_KEY_LEN])
{
    EVP_PKEY *read = read_key(key);
    EVP_PKEY_CTX *context = read ? EVP_PKEY_CTX_new_from_pkey(NULL, read, NULL) : NULL;
    bool right = context && EVP_PKEY_public_check(context) == 1;
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(read);
    return right;
}

/* Writes the signature as OpenSSL reads it. Returns its length; 0: out of memory. */
static int to_der(const unsigned char signature[KEY_PROOF_LEN], unsigned char der[DER_MAX])
{
    ECDSA_SIG *both = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, HALF, NULL);
    BIGNUM *s = BN_bin2bn(signature + HALF, HALF, NULL);
    int len = 0;
    if (both && r && s && ECDSA_SIG_set0(both, r, s) == 1) {
        len = i2d_ECDSA_SIG(both, &der);
    } else {
        BN_free(r);
        BN_free(s);
    }
    ECDSA_SIG_free(both);
    return len > 0 ? len : 0;
}

bool key_proof_is_right(const unsigned char key[KEY_PROOF_KEY_LEN], struct slice text,
                        const unsigned char signature[KEY_PROOF_LEN])
{
    unsigned char der[DER_MAX];
    int len = to_der(signature, der);
    EVP_PKEY *read = read_key(key);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool right = len && read && context &&
                 EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, read) == 1 &&
                 EVP_DigestVerify(context, der, (size_t)len,
                                  (const unsigned char *)text.ptr, text.len) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(read);
    return right;
}
