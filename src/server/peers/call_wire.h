/* call_wire.h - how the calls that a follower forwards are authenticated.
 *
 *   follower                                            leader
 *     ── POST /peer/calls ──────────────────────────────►
 *     ◄── opening: random bytes, its id ─────────────────
 *     ── POST /peer/calls: random bytes, its id, its proofs ──►
 *     ◄── its proof ─────────────────────────────────────
 *     ── a call, with its origin and a MAC ──────────────►   again and again
 *     ── or GET /peer/mux, with a MAC ────────────────►
 *     ── calls and their origins, with one MAC ──────────►   again and again (net/mux.h)
 *
 * The proofs are those of base/vault/peer_proof.h, with roles of their own, so that none of
 * a replication fits. The MAC covers the head of the call and its origin, and counts the
 * calls of the connection. Like the changes of a replication, bodies are private only
 * through TLS, or in a private network. */
#pragma once

#include "base/buf.h"
#include "base/vault/peer_mac.h"
#include "net/http/http.h"

#define PEER_CALLS_TARGET "/peer/calls"

/* The target by which a follower makes a connection multiplexed, and what it sends instead
 * of an origin: clients choose the targets of their calls, but not the origin. No client has
 * this address. A leader of an older version takes it as one, and responds with 404. With the
 * older origin, messages have the MAC of their hash. */
#define PEER_MUX_TARGET "/peer/mux"
#define PEER_MUX_ORIGIN "mux2 --"
#define PEER_MUX_OLDER_ORIGIN "mux --"

enum peer_mux { PEER_MUX_NONE, PEER_MUX_HASHED, PEER_MUX_SEALED };

/* Appends the header line for the next call. head: request line and headers, as sent;
 * origin: relayed_write. */
void call_wire_sign(struct peer_mac *mac, struct slice head, struct slice origin,
                    struct buf *line);

/* Checks the next call of a connection, of which only the head has arrived. Attributes it to
 * its client, and removes the header. *mux: PEER_MUX_NONE for a call; otherwise, it asks for a
 * multiplexed connection. After false the connection must end. */
bool call_wire_check(struct peer_mac *mac, struct exchange *x, enum peer_mux *mux);

/* Appends the MAC of the next message of a multiplexed connection, which covers all items. */
void call_wire_seal(struct peer_mac *mac, enum peer_mux mux, struct slice items,
                    struct buf *out);

/* Takes the MAC off the front of such a message, and checks it. After false the connection must
 * end. */
bool call_wire_open(struct peer_mac *mac, enum peer_mux mux, struct slice *message);
