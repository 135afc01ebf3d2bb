/* ws_handshake.h - the opening handshake (RFC 6455 §4.2); private to http. */
#pragma once

#include "base/error.h"
#include "http/http_check.h"

struct server;

enum { WS_ACCEPT_LEN = 28 }; /* of the answer to a key */

/* Fetches what the answer is computed with. */
enum err ws_handshake_init(struct server *server, struct failure *why);
void ws_handshake_finish(struct server *server);

/* Why the request cannot become a WebSocket; status 0: it can. */
struct http_fault ws_handshake_check(const struct exchange *x);

/* Sec-WebSocket-Accept for the key, terminated. */
void ws_handshake_answer(struct server *server, struct slice key,
                         char answer[WS_ACCEPT_LEN + 1]);
