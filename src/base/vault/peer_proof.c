/* peer_proof.c - proofs and session keys: HMACs over what both gateways stated. */
#include "base/vault/peer_proof.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

enum {
    LABEL_LEN = 24,
    ID_LEN = 8,
    STATED_LEN = LABEL_LEN + 2 * ID_LEN + 2 * PEER_RANDOM_LEN
};

/* All have the same length, so no two purposes can give the same input. */
static const char role_labels[][LABEL_LEN] = {
    [PEER_LEADER] = "runcast peer leader",
    [PEER_FOLLOWER] = "runcast peer follower",
    [PEER_CALLED] = "runcast peer called",
    [PEER_CALLER] = "runcast peer caller",
};
static const char session_label[LABEL_LEN] = "runcast peer session";

void peer_proof_draw(unsigned char random[PEER_RANDOM_LEN])
{
    int done = RAND_bytes(random, PEER_RANDOM_LEN);
    assert(done == 1);
}

static unsigned char *put(unsigned char *at, const void *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static unsigned char *put_id(unsigned char *at, uint64_t id)
{
    for (int i = 0; i < ID_LEN; i++)
        *at++ = (unsigned char)(id >> (8 * (ID_LEN - 1 - i)));
    return at;
}

/* Writes the HMAC of label and handshake, 32 bytes. */
static void sign(const struct peer_key *key, const char label[LABEL_LEN],
                 const struct peer_handshake *handshake, unsigned char out[PEER_PROOF_LEN])
{
    unsigned char stated[STATED_LEN], *at = put(stated, label, LABEL_LEN);
    at = put_id(at, handshake->leader);
    at = put_id(at, handshake->follower);
    at = put(at, handshake->leader_random, PEER_RANDOM_LEN);
    at = put(at, handshake->follower_random, PEER_RANDOM_LEN);
    const unsigned char *made = HMAC(EVP_sha256(), key->bytes, PEER_KEY_LEN, stated,
                                     (size_t)(at - stated), out, NULL);
    assert(made);
}

void peer_proof_make(const struct peer_key *key, enum peer_role role,
                     const struct peer_handshake *handshake,
                     unsigned char proof[PEER_PROOF_LEN])
{
    sign(key, role_labels[role], handshake, proof);
}

const struct peer_key *peer_proof_check(const struct peer_keys *keys, enum peer_role role,
                                        const struct peer_handshake *handshake,
                                        struct slice proofs)
{
    const struct peer_key *found = NULL;
    unsigned char proof[PEER_PROOF_LEN];
    if (!proofs.len || proofs.len % PEER_PROOF_LEN ||
        proofs.len / PEER_PROOF_LEN > PEER_KEYS_MAX)
        return NULL;
    for (size_t i = 0; i < keys->count; i++) {
        peer_proof_make(&keys->list[i], role, handshake, proof);
        for (size_t at = 0; at < proofs.len; at += PEER_PROOF_LEN)
            if (!CRYPTO_memcmp(proof, proofs.ptr + at, PEER_PROOF_LEN))
                found = &keys->list[i];
    }
    return found;
}

void peer_proof_session(const struct peer_key *key, const struct peer_handshake *handshake,
                        struct peer_key *session)
{
    sign(key, session_label, handshake, session->bytes);
}
