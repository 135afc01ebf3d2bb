/* client.h - a connection of a simulation: a feed, the frames in flight, a mirror.
 *
 *   feed ──► frames in flight (window of them, then the socket is full) ──► mirror
 *
 * It can be cut at any moment: frames in flight are lost. Like the gateway, it counts the
 * gaps that a client would see in the deltas of patches at the moment they are sent. */
#pragma once

#include "core/live/feed.h"
#include "tests/support/fakes/mirror.h"

struct client {
    struct feed feed; /* while connected */
    struct mirror mirror;
    struct world *world;
    bool connected, lost;
    bool sleepy;         /* the simulation rarely reads it */
    struct bytes **wire; /* frames in flight, oldest first */
    size_t count, capacity;
    size_t window; /* with more frames the socket is full */
    int64_t every_ms;
    uint64_t synced; /* seq of the last sync that was sent in this connection */
    struct sent *sent;
    size_t sent_count;
    uint64_t gaps; /* of all connections */
};

struct client *client_create(struct world *world, const struct view *view);
void client_destroy(struct client *client);

/* Connects and subscribes to everything it has, from the position where possible. */
void client_connect(struct client *client);
void client_cut(struct client *client);

/* Takes ownership of filter. */
void client_subscribe(struct client *client, struct filter *filter);
void client_unsubscribe(struct client *client, unsigned choice);

/* Delivers one frame. Returns false if there is none. */
bool client_receive(struct client *client);

/* Sends the gateway's ping, if it may be sent. */
void client_ping(struct client *client);

/* Returns true if no frame is in flight and every subscription is complete. */
bool client_rests(struct client *client);
