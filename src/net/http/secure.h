/* secure.h - TLS under a connection: from its first byte to the end of its handshake; private to
 * http.
 *
 *   readable ─► in line (server::shaking) ─► a step ─► not whole yet: reads on
 *                                             ├─► open: the connection reads and sends by it
 *                                             ├─► it was no TLS but HTTP: 400, in plain text
 *                                             └─► failed: closed
 *
 * A step may cost a millisecond, a signature by RSA, and whoever connects may ask for it. So each
 * turn takes one from the line, and more while it has time: who has a connection already waits
 * for one handshake, not for all. Until it is open the connection is a stranger's, which a
 * deadline ends, and which is closed for others when connections run short.
 *
 * What a handshake holds is up to 200 KiB, by what the peer says. Of those that have begun and do
 * not end there are at most HANDSHAKES_MAX: the oldest one is closed for a new one. */
#pragma once

#include "net/http/connection.h"

enum { HANDSHAKES_MAX = 512 };

void secure_init(struct server *server);

/* What comes next on the connection is a handshake. Nothing has been sent. */
void secure_begin(struct connection *conn);
