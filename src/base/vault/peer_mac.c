/* peer_mac.c - MACs by a context that keeps its key, since setting a key hashes it twice. */
#include "base/vault/peer_mac.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>

#include "base/mem.h"

enum { NUMBER_LEN = 8, STATED_LEN = 1 + NUMBER_LEN + HASH_LEN };

struct peer_mac {
    EVP_MAC_CTX *context;
    uint64_t number; /* of the next message */
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
    free(mac);
}

void peer_mac_next(struct peer_mac *mac, const unsigned char hash[HASH_LEN],
                   unsigned char out[PEER_MAC_LEN])
{
    unsigned char stated[STATED_LEN] = { (unsigned char)mac->sender }, whole[HASH_LEN];
    size_t len = 0;
    for (int i = 0; i < NUMBER_LEN; i++)
        stated[1 + i] = (unsigned char)(mac->number >> (8 * (NUMBER_LEN - 1 - i)));
    memcpy(stated + 1 + NUMBER_LEN, hash, HASH_LEN);
    mac->number++;
    bool made = EVP_MAC_init(mac->context, NULL, 0, NULL) &&
                EVP_MAC_update(mac->context, stated, sizeof(stated)) &&
                EVP_MAC_final(mac->context, whole, &len, sizeof(whole));
    assert(made && len == sizeof(whole));
    memcpy(out, whole, PEER_MAC_LEN);
}

bool peer_mac_check(struct peer_mac *mac, const unsigned char hash[HASH_LEN],
                    const unsigned char given[PEER_MAC_LEN])
{
    unsigned char expected[PEER_MAC_LEN];
    peer_mac_next(mac, hash, expected);
    return !CRYPTO_memcmp(given, expected, PEER_MAC_LEN);
}
