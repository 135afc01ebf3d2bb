/* muxed_calls.h - the leader's end of a connection on which a follower sends calls together.
 *
 *   callers.h ─ muxed_calls_open ─► message: its MAC ─► each call ─► http_carry ─► the API
 *                                       └─ wrong: the connection ends      │
 *   answers of a turn, in one message ◄──────────────── http_reply ────────┘
 *
 * net/mux.h has the format, call_wire.h the MAC. A follower that does not read what it
 * asked for gets no more of its calls executed. */
#pragma once

#include "base/loop.h"
#include "net/http/server.h"
#include "server/peers/call_wire.h"

/* Responds with 101, and serves the calls that follow as requests of the server. Takes
 * ownership of the mac. */
void muxed_calls_open(struct loop *loop, struct server *server, struct exchange *x,
                      struct peer_mac *mac, enum peer_mux mux);

/* Returns where the client of an exchange comes from, as the follower names it; absent: the
 * exchange was not multiplexed. */
struct slice muxed_calls_origin(const struct exchange *x);
