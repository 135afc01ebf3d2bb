/* peer_mac.c - MACs by a context that keeps its key, since setting a key hashes it twice. */
#include "base/vault/peer_mac.h"

#include <assert.h>
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>

#include "base/mem.h"

enum { NUMBER_LEN = 8, STATED_LEN = 1 + NUMBER_LEN + HASH_LEN, NONCE_LEN = 12 };

struct peer_mac {
    EVP_MAC_CTX *context;
    EVP_CIPHER_CTX *cipher; /* of GMAC, with its key; NULL: nothing was sealed yet */
    uint64_t number;        /* of the next message */
    enum peer_role sender;
};

struct peer_mac *peer_mac_create(const struct peer_key *session, enum peer_role sender)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    struct peer_mac *mac = mem_new(struct peer_mac);
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    mac->sender = sender;
    mac->context = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
    EVP_MAC_free(hmac);
    bool done =
        mac->context && EVP_MAC_init(mac->context, session->bytes, PEER_KEY_LEN, params);
    assert(done);
    return mac;
}

void peer_mac_destroy(struct peer_mac *mac)
{
    if (!mac)
        return;
    EVP_MAC_CTX_free(mac->context);
    EVP_CIPHER_CTX_free(mac->cipher);
    free(mac);
}

static void make_mac(struct peer_mac *mac, const unsigned char *text, size_t text_len,
                     unsigned char whole[HASH_LEN])
{
    size_t len = 0;
    bool made = EVP_MAC_init(mac->context, NULL, 0, NULL) &&
                EVP_MAC_update(mac->context, text, text_len) &&
                EVP_MAC_final(mac->context, whole, &len, HASH_LEN);
    assert(made && len == HASH_LEN);
}

static void take_number(struct peer_mac *mac, unsigned char number[NUMBER_LEN])
{
    for (int i = 0; i < NUMBER_LEN; i++)
        number[i] = (unsigned char)(mac->number >> (8 * (NUMBER_LEN - 1 - i)));
    mac->number++;
}

void peer_mac_next(struct peer_mac *mac, const unsigned char hash[HASH_LEN],
                   unsigned char out[PEER_MAC_LEN])
{
    unsigned char stated[STATED_LEN] = { (unsigned char)mac->sender }, whole[HASH_LEN];
    take_number(mac, stated + 1);
    memcpy(stated + 1 + NUMBER_LEN, hash, HASH_LEN);
    make_mac(mac, stated, sizeof(stated), whole);
    memcpy(out, whole, PEER_MAC_LEN);
}

bool peer_mac_check(struct peer_mac *mac, const unsigned char hash[HASH_LEN],
                    const unsigned char given[PEER_MAC_LEN])
{
    unsigned char expected[PEER_MAC_LEN];
    peer_mac_next(mac, hash, expected);
    return !CRYPTO_memcmp(given, expected, PEER_MAC_LEN);
}

/* ---- GMAC: AES-256-GCM of no text, with the message as additional data ---- */

/* No other MAC of the session key is that of a text of this length. */
static void create_cipher(struct peer_mac *mac)
{
    static const unsigned char label[] = "runcast peer seal key";
    static_assert(sizeof(label) != STATED_LEN, "the label is not a statement");
    unsigned char key[HASH_LEN];
    EVP_CIPHER *gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    mac->cipher = EVP_CIPHER_CTX_new();
    make_mac(mac, label, sizeof(label), key);
    bool done =
        gcm && mac->cipher && EVP_EncryptInit_ex2(mac->cipher, gcm, key, NULL, NULL);
    EVP_CIPHER_free(gcm);
    OPENSSL_cleanse(key, sizeof(key));
    assert(done);
}

void peer_mac_seal(struct peer_mac *mac, struct slice message,
                   unsigned char out[PEER_MAC_LEN])
{
    unsigned char nonce[NONCE_LEN] = { (unsigned char)mac->sender };
    int len;
    if (!mac->cipher)
        create_cipher(mac);
    take_number(mac, nonce + NONCE_LEN - NUMBER_LEN);
    assert(message.len <= INT_MAX);
    bool done = EVP_EncryptInit_ex2(mac->cipher, NULL, NULL, nonce, NULL) &&
                EVP_EncryptUpdate(mac->cipher, NULL, &len,
                                  (const unsigned char *)message.ptr, (int)message.len) &&
                EVP_EncryptFinal_ex(mac->cipher, out, &len) &&
                EVP_CIPHER_CTX_ctrl(mac->cipher, EVP_CTRL_AEAD_GET_TAG, PEER_MAC_LEN, out);
    assert(done);
}

bool peer_mac_check_seal(struct peer_mac *mac, struct slice message,
                         const unsigned char given[PEER_MAC_LEN])
{
    unsigned char expected[PEER_MAC_LEN];
    peer_mac_seal(mac, message, expected);
    return !CRYPTO_memcmp(given, expected, PEER_MAC_LEN);
}
