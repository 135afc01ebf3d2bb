/* peer_group.c - GMAC: AES-256-GCM of no text, with the message as additional data. */
#include "base/vault/peer_group.h"

#include <assert.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include "base/mem.h"

enum { NUMBER_LEN = 8, NONCE_LEN = 12, TAG_LEN = PEER_SEAL_LEN - NUMBER_LEN };

struct peer_group {
    unsigned char key[PEER_GROUP_KEY_LEN];
    EVP_CIPHER_CTX *cipher; /* has the key, since setting it costs more than a short seal */
    uint64_t number;        /* of the next message */
};

static struct peer_group *group_of(const unsigned char key[PEER_GROUP_KEY_LEN])
{
    struct peer_group *group = mem_new(struct peer_group);
    EVP_CIPHER *gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    memcpy(group->key, key, PEER_GROUP_KEY_LEN);
    group->cipher = EVP_CIPHER_CTX_new();
    bool done = gcm && group->cipher &&
                EVP_EncryptInit_ex2(group->cipher, gcm, group->key, NULL, NULL);
    EVP_CIPHER_free(gcm);
    assert(done);
    return group;
}

struct peer_group *peer_group_create(void)
{
    unsigned char key[PEER_GROUP_KEY_LEN];
    int drawn = RAND_priv_bytes(key, sizeof(key));
    assert(drawn == 1);
    struct peer_group *group = group_of(key);
    OPENSSL_cleanse(key, sizeof(key));
    return group;
}

void peer_group_destroy(struct peer_group *group)
{
    if (!group)
        return;
    EVP_CIPHER_CTX_free(group->cipher);
    OPENSSL_cleanse(group->key, sizeof(group->key));
    free(group);
}

/* ---- the key on its way ---- */

/* Adds a pad modulo 2, which no other use of the session key makes. */
static void add_pad(const struct peer_key *session, const unsigned char *in,
                    unsigned char out[PEER_GROUP_KEY_LEN])
{
    static const char label[] = "runcast peer group key";
    unsigned char pad[PEER_GROUP_KEY_LEN];
    const unsigned char *made =
        HMAC(EVP_sha256(), session->bytes, PEER_KEY_LEN, (const unsigned char *)label,
             sizeof(label), pad, NULL);
    assert(made);
    for (int i = 0; i < PEER_GROUP_KEY_LEN; i++)
        out[i] = in[i] ^ pad[i];
    OPENSSL_cleanse(pad, sizeof(pad));
}

void peer_group_wrap(const struct peer_group *group, const struct peer_key *session,
                     unsigned char wrapped[PEER_GROUP_KEY_LEN])
{
    add_pad(session, group->key, wrapped);
}

struct peer_group *peer_group_unwrap(const unsigned char wrapped[PEER_GROUP_KEY_LEN],
                                     const struct peer_key *session)
{
    unsigned char key[PEER_GROUP_KEY_LEN];
    add_pad(session, wrapped, key);
    struct peer_group *group = group_of(key);
    OPENSSL_cleanse(key, sizeof(key));
    return group;
}

/* ---- seals ---- */

/* The nonce is the number after four zero bytes. */
static void make_tag(struct peer_group *group, const unsigned char number[NUMBER_LEN],
                     struct slice message, unsigned char tag[TAG_LEN])
{
    unsigned char nonce[NONCE_LEN] = { 0 };
    int len;
    memcpy(nonce + NONCE_LEN - NUMBER_LEN, number, NUMBER_LEN);
    assert(message.len <= INT_MAX);
    bool done = EVP_EncryptInit_ex2(group->cipher, NULL, NULL, nonce, NULL) &&
                EVP_EncryptUpdate(group->cipher, NULL, &len,
                                  (const unsigned char *)message.ptr, (int)message.len) &&
                EVP_EncryptFinal_ex(group->cipher, tag, &len) &&
                EVP_CIPHER_CTX_ctrl(group->cipher, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, tag);
    assert(done);
}

void peer_group_seal(struct peer_group *group, struct slice message, struct peer_seal *seal)
{
    for (int i = 0; i < NUMBER_LEN; i++)
        seal->bytes[i] = (unsigned char)(group->number >> (8 * (NUMBER_LEN - 1 - i)));
    group->number++;
    make_tag(group, seal->bytes, message, seal->bytes + NUMBER_LEN);
    vault_hash((struct slice){ (const char *)seal->bytes, PEER_SEAL_LEN }, seal->hash);
}

bool peer_group_check(struct peer_group *group, struct slice message,
                      const unsigned char seal[PEER_SEAL_LEN])
{
    unsigned char tag[TAG_LEN];
    make_tag(group, seal, message, tag);
    return !CRYPTO_memcmp(tag, seal + NUMBER_LEN, TAG_LEN);
}
