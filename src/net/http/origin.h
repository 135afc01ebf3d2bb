/* origin.h - the address that a connection and its requests come from; private to http.
 *
 *   accept ─► address of the peer, or of the client that a PROXY header names ─► counted
 *   head ───► of a trusted proxy: the client that X-Forwarded-For names, counted for as
 *             long as the request, or the WebSocket that it becomes, lasts */
#pragma once

#include "net/http/http_conn.h"

/* Notes the address and counts the connection. False: its address has too many. */
bool origin_note(struct http_conn *conn, const struct address *address);

/* Fills in exchange.peer and counts the request. False: its address has too many. */
bool origin_note_request(struct http_conn *conn, struct exchange *x);

/* The request is over. */
void origin_end_request(struct http_conn *conn);
