/* peer_proof.h - how two gateways prove to each other that they have one encryption key.
 *
 *   leader ── its random bytes and id ──────────────────────────► follower
 *          ◄── its random bytes and id, a proof by each of its keys ──
 *          ── its proof, by the key that made one of those ─────►
 *
 * A proof is an HMAC-SHA-256 over the role of its sender, both ids and both random bytes.
 * It therefore fits neither another handshake nor the other side of the same one. The key
 * is derived from the encryption key and reveals nothing about it. While that key is
 * rotated, a gateway may have two.
 *
 * Afterwards both sides have a session key, with which they authenticate each message
 * (peer_mac.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct vault;

enum {
    PEER_KEY_LEN = 32,
    PEER_KEYS_MAX = 2,
    PEER_RANDOM_LEN = 32,
    PEER_PROOF_LEN = 32,
};

/* Wipe it with secret_wipe once it is not needed any more. */
struct peer_key {
    unsigned char bytes[PEER_KEY_LEN];
};

struct peer_keys {
    struct peer_key list[PEER_KEYS_MAX];
    size_t count;
};

/* Two for replication, and two for calls that a follower forwards. */
enum peer_role { PEER_LEADER, PEER_FOLLOWER, PEER_CALLED, PEER_CALLER };

/* The statements of both sides before any proof. */
struct peer_handshake {
    uint64_t leader, follower; /* ids of the gateways (store_gateway::id) */
    unsigned char leader_random[PEER_RANDOM_LEN], follower_random[PEER_RANDOM_LEN];
};

/* Gets the keys of this gateway: that of the encryption key, and that of the next one
 * during a rotation or after an interrupted one. */
void vault_peer_keys(const struct vault *vault, struct peer_keys *keys);

/* Draws unpredictable bytes, for one handshake. */
void peer_proof_draw(unsigned char random[PEER_RANDOM_LEN]);

/* Makes the proof of one side. */
void peer_proof_make(const struct peer_key *key, enum peer_role role,
                     const struct peer_handshake *handshake,
                     unsigned char proof[PEER_PROOF_LEN]);

/* Returns the key that made one of the proofs, which the other side sent one after the
 * other; NULL if none did, or if they are not 1 … PEER_KEYS_MAX proofs. role: of the other
 * side. Takes the same time for each wrong proof. */
const struct peer_key *peer_proof_check(const struct peer_keys *keys, enum peer_role role,
                                        const struct peer_handshake *handshake,
                                        struct slice proofs);

/* Makes the session key, once both proofs were right. */
void peer_proof_session(const struct peer_key *key, const struct peer_handshake *handshake,
                        struct peer_key *session);
