/* origin.h - the address that a connection and its requests come from; private to http.
 *
 *   accept ─► address of the peer, or of the client that a PROXY header names ─► counted
 *   head ───► from a trusted proxy: the client that X-Forwarded-For names, counted while
 *             the request, or the WebSocket that it becomes, lasts */
#pragma once

#include "net/http/http_conn.h"

/* Sets the address and counts the connection. Returns false if the address has too many. */
bool origin_note(struct http_conn *conn, const struct address *address);

/* Fills in exchange.peer and counts the request. Returns false if the client has too
 * many. */
bool origin_note_request(struct http_conn *conn, struct exchange *x);

/* Stops counting the request. */
void origin_end_request(struct http_conn *conn);
