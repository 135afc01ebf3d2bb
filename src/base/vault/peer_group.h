/* peer_group.h - seals a message of a leader once for all its followers.
 *
 *   seal = number of the message, 8 bytes | its GMAC by the group key, 16 bytes
 *
 * A hash without a key would do, but hashing a payload of 256 KiB costs eight times as much
 * as its GMAC. The leader draws the group key when it starts, and never uses a number twice.
 * Each follower gets the key encrypted with its session key. The seal proves that the
 * message is the leader's; the MAC of its hash (peer_mac.h), that it is the next one of
 * this connection. */
#pragma once

#include "base/vault/peer_proof.h"
#include "base/vault/vault.h"

enum {
    PEER_GROUP_KEY_LEN = 32,
    PEER_SEAL_LEN = 24,
};

struct peer_group;

struct peer_seal {
    unsigned char bytes[PEER_SEAL_LEN]; /* they travel with the message */
    unsigned char hash[HASH_LEN];       /* of the bytes, for peer_mac_next */
};

/* Draws a key, for a leader. Never returns NULL. */
struct peer_group *peer_group_create(void);

/* Encrypts the key for a follower. Call it once for each session key. */
void peer_group_wrap(const struct peer_group *group, const struct peer_key *session,
                     unsigned char wrapped[PEER_GROUP_KEY_LEN]);

/* Makes the group of a follower. If wrapped was changed on the way, no seal fits. */
struct peer_group *peer_group_unwrap(const unsigned char wrapped[PEER_GROUP_KEY_LEN],
                                     const struct peer_key *session);

/* Wipes the key. Ignores NULL. */
void peer_group_destroy(struct peer_group *group);

/* Seals a message; for the leader only. */
void peer_group_seal(struct peer_group *group, struct slice message,
                     struct peer_seal *seal);

/* Returns true if the bytes of the seal, which were checked by their MAC, fit the
 * message. */
bool peer_group_check(struct peer_group *group, struct slice message,
                      const unsigned char seal[PEER_SEAL_LEN]);
