/* ws_peer.h - the client's side of a WebSocket, frame by frame.
 *
 * The server's frames are shown as text: T(hello) B(..) O(pong) P(ping) X1002, one after
 * another. X is the close frame; X alone has no code. A zero byte is shown as 0. */
#pragma once

#include "tests/support/world/net_world.h"

/* Opens the connection and the WebSocket; drops what was received so far. */
void ws_peer_open(struct net_world *world, struct peer *peer, const char *path);

/* Sends a frame of the client: its first byte, a mask, the payload. */
void ws_peer_add_frame(struct buf *out, unsigned char first, struct slice payload);

/* Returns what was received, as text; incomplete frames are left out. */
void ws_peer_print(struct peer *peer, struct buf *out);

bool ws_peer_said(struct peer *peer, const char *text);

/* Runs turns until exactly this was received, or the server has closed the connection. */
bool ws_peer_hears(struct net_world *world, struct peer *peer, const char *text);

/* The same, but the test fails if it was not. */
void ws_peer_await(struct net_world *world, struct peer *peer, const char *text);

/* Drops what was received. */
void ws_peer_clear(struct peer *peer);
