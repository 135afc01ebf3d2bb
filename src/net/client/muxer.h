/* muxer.h - the connection that the brief requests of a pool share; private to client.
 *
 *   muxer_begin ─► the items of this turn ─► its end: one message (net/mux.h)
 *        ▲                                        │
 *        │ false: not open yet, or full           ▼
 *     a connection of its own          on_answer, in any order; on_end after a failure
 *
 * It is a tunnel of the pool, opened when it is first needed. Brief requests that it cannot
 * take use connections of their own, so none waits for it. */
#pragma once

#include "net/client/relay.h"

struct muxer;

/* pool: it has a greeter with a mux_target. first_byte_ms: for each response. */
struct muxer *muxer_create(struct loop *loop, struct relay_pool *pool,
                           const struct relay_greeter *greeter, int64_t first_byte_ms);

/* Ignores NULL. Requires muxer_close, and that no request is left. */
void muxer_destroy(struct muxer *muxer);

/* The pool is closing: once no request is left, the tunnel ends. */
void muxer_close(struct muxer *muxer);

/* Takes a request whose parts were checked. Returns false if it cannot. */
bool muxer_begin(struct muxer *muxer, struct relay *relay,
                 const struct relay_request *request, const struct relay_ops *ops);

/* relay_leave, and relay_cancel, for a request that was taken and has not ended. */
void muxer_leave(struct relay *relay);
void muxer_cancel(struct relay *relay);
