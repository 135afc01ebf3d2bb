/* peer_link.h - a follower's connection to the leader, once both have proved that they have
 * the encryption key.
 *
 *   peer_link_open ─► WebSocket ─► opening, answer, proof ─► on_open ─► on_message … ─► on_closed
 *
 * peers.h is the other end. The leader must be the gateway that the database names: its id
 * is part of the proofs. */
#pragma once

#include "base/loop.h"
#include "base/vault/vault.h"
#include "net/client/trust.h"

struct peer_link;

enum { PEER_LINK_MESSAGE_MAX = 96 << 20 }; /* bytes of a message of the leader */

struct peer_link_options {
    const char *url;     /* store_gateway::peer_url; borrowed for the call */
    uint64_t leader, me; /* store_gateway::id of both */
    const struct vault *vault;
    const struct trust *trust; /* for https; NULL: such a URL is refused */
    void (*on_open)(void *owner);
    void (*on_message)(void *owner, struct slice message);
    /* The last callback; the link is freed when it returns. Never called from inside
     * peer_link_open, peer_link_send or peer_link_cut. */
    void (*on_closed)(void *owner, const char *why);
    void *owner;
};

/* ERR_INVALID: the URL cannot be used. After an error, no callback is made. */
enum err peer_link_open(struct loop *loop, const struct peer_link_options *options,
                        struct peer_link **link, struct failure *why);

/* Call it after on_open. A message that cannot be sent ends the connection. */
void peer_link_send(struct peer_link *link, struct slice message);

/* Ends the connection; on_closed follows, with this reason unless it had ended already. No
 * more messages are delivered. */
void peer_link_cut(struct peer_link *link, const char *why);
