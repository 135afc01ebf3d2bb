/* forwarder.h - the connections by which a follower forwards calls to the leader.
 *
 *   leading_leader ─► its peer_url ─► relay_pool, whose connections prove the key (call_wire.h)
 *      another leader ─► another pool; calls to the old one end by themselves */
#pragma once

#include "base/vault/vault.h"
#include "net/client/relay.h"
#include "runcast/store.h"

struct forwarder;

struct forwarder_options {
    const struct vault *vault; /* borrowed */
    const struct trust *trust; /* for https; NULL: such a leader gets no calls */
    /* Returns our store_gateway::id; 0: not known yet. */
    uint64_t (*me)(void *owner);
    /* Returns the gateway that leads; NULL: none, or this one (leading_leader). */
    const struct store_gateway *(*leader)(void *owner);
    void *owner;
};

struct forwarder *forwarder_create(struct loop *loop,
                                   const struct forwarder_options *options);

/* Returns the connections to the leader; NULL: no call can be forwarded now. Borrowed until
 * the loop runs again. */
struct relay_pool *forwarder_pool(struct forwarder *forwarder);

/* The leader does not answer: its connections are used no more, and the next call opens
 * another. Calls in progress are those of a gateway that was left (forwarding_look). */
void forwarder_renew(struct forwarder *forwarder);

/* Calls closed once the last call has ended; the memory is freed by then. */
void forwarder_close(struct forwarder *forwarder, void (*closed)(void *owner), void *owner);
