/* ws_peer.h - a client's side of a WebSocket, frame by frame.
 *
 * What the server says is written as text: T(hello) B(..) O(pong) P(ping) X1002, one after
 * the other. X is the close frame; X alone has no code. A zero byte is written as 0. */
#pragma once

#include "tests/support/world/net_world.h"

/* Opens the connection and the WebSocket; what came so far is forgotten. */
void ws_peer_open(struct net_world *world, struct peer *peer, const char *path);

/* A frame of the client: its first byte, a mask, the payload. */
void ws_peer_add_frame(struct buf *out, unsigned char first, struct slice payload);

/* What has come, as text; frames that are not complete are left out. */
void ws_peer_print(struct peer *peer, struct buf *out);

bool ws_peer_said(struct peer *peer, const char *text);

/* Turns until exactly this has been said, or the server has ended the connection. */
bool ws_peer_hears(struct net_world *world, struct peer *peer, const char *text);

/* The same, and the test fails. */
void ws_peer_await(struct net_world *world, struct peer *peer, const char *text);

/* Forgets what has been said. */
void ws_peer_clear(struct peer *peer);
