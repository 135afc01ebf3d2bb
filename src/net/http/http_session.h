/* http_session.h - what a handler keeps with a connection, across its exchanges.
 *
 *   exchange ─ http_session_begin ─► http_session_of, in each later exchange ─► on_session_end
 *
 * Only a server with on_session_end has them: other connections have no place for one. */
#pragma once

#include "net/http/http.h"

struct connection;

/* Embedded by the handler, whose memory it is until on_session_end. */
struct http_session {
    struct connection *conn;
};

/* Begins the session of the connection, which has none. on_session_end follows when the
 * connection has closed, or has become a WebSocket. */
void http_session_begin(struct exchange *x, struct http_session *session);

/* Returns the session of the connection; NULL: none. */
struct http_session *http_session_of(const struct exchange *x);

/* Closes the connection. on_session_end follows, never from inside this call. */
void http_session_close(struct http_session *session);
