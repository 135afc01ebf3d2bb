/* client.h - a connection of a simulation: a feed, the frames on their way, a mirror.
 *
 *   feed ──► what is on its way (so many frames, then the socket is full) ──► mirror
 *
 * Cut at any moment: what is on its way is lost. It counts the gaps that a client would see
 * in the deltas of patches, when they are sent, for that is what the gateway counts. */
#pragma once

#include "core/live/feed.h"
#include "tests/support/fakes/mirror.h"

struct client {
    struct feed feed; /* while connected */
    struct mirror mirror;
    struct world *world;
    bool connected, lost;
    bool sleepy;         /* seldom reads: the simulation's */
    struct bytes **wire; /* frames on their way, oldest first */
    size_t count, capacity;
    size_t window; /* above so many the socket is full */
    int64_t every_ms;
    uint64_t synced; /* seq of the last sync that was sent in this connection */
    struct sent *sent;
    size_t sent_count;
    uint64_t gaps; /* of all connections */
};

struct client *client_create(struct world *world, const struct view *view);
void client_destroy(struct client *client);

/* Connects with what it has: each subscription from the position, if it may. */
void client_connect(struct client *client);
void client_cut(struct client *client);

/* Takes over the filter. */
void client_subscribe(struct client *client, struct filter *filter);
void client_unsubscribe(struct client *client, unsigned choice);

/* One frame arrives, if there is one. */
bool client_receive(struct client *client);

/* The gateway's ping, if it may be sent. */
void client_ping(struct client *client);

/* Nothing is on its way and everything is complete. */
bool client_rests(struct client *client);
