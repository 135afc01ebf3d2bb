/* ws_handshake.h - the server's side of the opening handshake (RFC 6455 §4.2); private to http.
 */
#pragma once

#include "net/http/http_check.h"

/* Why the request cannot become a WebSocket; status 0: it can. */
struct http_fault ws_handshake_check(const struct exchange *x);
