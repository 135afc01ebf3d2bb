/* peer_mac.h - authenticates the messages of a connection between two gateways.
 *
 *   MAC = HMAC-SHA-256(session key, role of the sender | number of the message | hash of it),
 *         cut to 16 bytes
 *
 * Messages are numbered from 0 in each direction, so one that is repeated, missing, or
 * moved to another connection or to the other direction does not fit. The hash is that of the
 * message (vault_hash), or that of its seal, which a leader makes once for all followers
 * (peer_group.h).
 *
 *   MAC = GMAC(key made of the session key, nonce: role and number; message)
 *
 * is for messages that are long and have one receiver: GMAC takes a fourth of the time of a
 * hash. A message has one of the two MACs, and both use the same numbers. */
#pragma once

#include "base/vault/peer_proof.h"
#include "base/vault/vault.h"

enum { PEER_MAC_LEN = 16 };

/* One direction of a connection. */
struct peer_mac;

/* Never returns NULL. Copies the session key. */
struct peer_mac *peer_mac_create(const struct peer_key *session, enum peer_role sender);

/* Wipes the key. Ignores NULL. */
void peer_mac_destroy(struct peer_mac *mac);

/* Makes the MAC of the next message to send. */
void peer_mac_next(struct peer_mac *mac, const unsigned char hash[HASH_LEN],
                   unsigned char out[PEER_MAC_LEN]);

/* Returns true if given is the MAC of the next message received. After false, the connection
 * must end. */
bool peer_mac_check(struct peer_mac *mac, const unsigned char hash[HASH_LEN],
                    const unsigned char given[PEER_MAC_LEN]);

/* The same by GMAC, of the message itself. */
void peer_mac_seal(struct peer_mac *mac, struct slice message,
                   unsigned char out[PEER_MAC_LEN]);
bool peer_mac_check_seal(struct peer_mac *mac, struct slice message,
                         const unsigned char given[PEER_MAC_LEN]);
