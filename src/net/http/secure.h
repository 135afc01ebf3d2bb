/* secure.h - the TLS handshake of a connection; private to http.
 *
 *   readable ─► in line (server::handshaking) ─► a step ─► incomplete: reads on
 *                                             ├─► open: the connection uses it
 *                                             ├─► it was HTTP, not TLS: 400, in plain text
 *                                             └─► failed: closed
 *
 * A step may take a millisecond, for an RSA signature, and any client can cause one. So
 * each turn does one step, and more while it has time: existing connections wait for one
 * handshake, not for all. Until the handshake is complete, the connection is
 * unauthenticated (server_state.h): it has a deadline, and is closed to make way for others
 * when connections run short.
 *
 * A handshake holds up to 200 KiB, depending on what the peer sends. At most HANDSHAKES_MAX
 * may be in progress: a new one then closes the oldest. */
#pragma once

#include "net/http/connection.h"

enum { HANDSHAKES_MAX = 512 };

void secure_init(struct server *server);

/* Begins a handshake on a connection that has sent nothing. */
void secure_begin(struct connection *conn);
