/* peer_wire.h - the messages of a connection between two gateways, around those that they
 * exchange.
 *
 *   leader                                             follower
 *     ── opening: random bytes, its id ────────────────►
 *     ◄── answer: random bytes, its id, its proofs ─────   in base64url
 *     ── its proof, the encrypted group key ───────────►
 *     ── MAC, seal, message ───────────────────────────►
 *     ◄── MAC, message ─────────────────────────────────   in base64url
 *
 * The leader sends binary messages. The follower sends text, because a server of net/http
 * takes only that; its messages are short. base/vault/peer_proof.h explains the proofs,
 * base/vault/peer_group.h the seals. */
#pragma once

#include "base/buf.h"
#include "base/vault/peer_group.h"
#include "base/vault/peer_mac.h"
#include "base/vault/peer_proof.h"

#define PEER_TARGET "/peer/replication"
#define PEER_PROTOCOL "runcast.repl.1"

enum {
    PEER_HANDSHAKE_MS = 5 * 1000, /* from the opened WebSocket to both proofs */
    PEER_ID_LEN = 8,
    PEER_OPENING_LEN = PEER_RANDOM_LEN + PEER_ID_LEN,
    /* Decoded bytes of the longest message of a follower: an operator's command. Leaders before
     * the version of commands take 1,024. */
    PEER_TEXT_MAX = 8 * 1024,
};

/* Appends the statement of one side: its random bytes and its id. */
void peer_wire_add_statement(struct buf *out, const unsigned char random[PEER_RANDOM_LEN],
                             uint64_t id);

/* Takes a statement off the front. Returns false if it is too short. */
bool peer_wire_take_statement(struct slice *message, unsigned char random[PEER_RANDOM_LEN],
                              uint64_t *id);

/* Appends the base64url of the bytes. */
void peer_wire_add_text(struct buf *out, struct slice bytes);

/* Decodes a message of a follower into bytes. Returns false if it is not base64url, or too
 * long. */
bool peer_wire_read_text(struct slice text, unsigned char bytes[PEER_TEXT_MAX],
                         struct slice *message);

/* Takes the MAC off the front of a message and checks it. Returns false if it is wrong: then
 * the connection must end. */
bool peer_wire_open(struct peer_mac *mac, struct slice *message);

/* The same for MAC and seal of a message of the leader. */
bool peer_wire_open_sealed(struct peer_mac *mac, struct peer_group *group,
                           struct slice *message);
