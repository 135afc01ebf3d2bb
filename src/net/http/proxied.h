/* proxied.h - a connection that a proxy speaks first on, by the PROXY protocol; private to http. */
#pragma once

#include "net/http/http_conn.h"

/* The header is due: no more is read than is surely of it, where TLS is behind it. */
void proxied_begin(struct http_conn *conn);

/* Takes bytes of the header. True: it is whole, the connection's address is that of whom it names,
 * and rest, which is the caller's, has what stood behind it. */
bool proxied_take(struct http_conn *conn, struct slice bytes, struct buf *rest);
