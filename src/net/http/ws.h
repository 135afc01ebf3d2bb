/* ws.h - one WebSocket connection (RFC 6455), as a handler sees it.
 *
 *   exchange ─ ws_accept ─► on_message … on_message ─► on_closed
 *                  ▲ ws_send: whole shared frames, one vectored write, no queue of our own
 *
 * wslay parses the input. A connection takes a parser from a pool only while a message is
 * in progress: an idle connection holds no parser and no buffer. ws_frame makes data
 * frames, each once for many connections. Frames that the kernel does not accept at once
 * stay in the outbox as references until it does; then on_drained is called. This layer
 * handles control frames, pings and their deadlines, limits and close codes. */
#pragma once

#include "base/rope.h"
#include "net/http/http.h"

struct ws;

struct ws_ops {
    /* Text, valid UTF-8. Binary messages are rejected with 1003 before this. */
    void (*on_message)(struct ws *ws, struct slice message);
    /* All bytes were sent. Never called from inside ws_send. */
    void (*on_drained)(struct ws *ws);
    /* The peer has answered a ping, which had this payload. NULL: not needed. */
    void (*on_pong)(struct ws *ws, struct slice payload);
    /* The last callback, however the connection ended; ws is freed when it returns. */
    void (*on_closed)(struct ws *ws);
};

/* Checks the handshake (RFC 6455 §4.2.1) and takes the connection from the exchange, which
 * is then gone. The request must be a GET of version 13 (otherwise 426) with a key. If a
 * check fails, replies and returns NULL. protocol NULL: the response names none. May be
 * called now or any time later; messages that arrive before are delivered after the
 * call. */
struct ws *ws_accept(struct exchange *x, const char *protocol, const struct ws_ops *ops,
                     void *owner);

void *ws_owner(const struct ws *ws);

/* Like http_trust, for a credential that came as a message. Until then, messages must be
 * small; and if unauthenticated peers together hold too many bytes of incomplete messages,
 * the one that began first is closed. */
void ws_trust(struct ws *ws);

/* Sets the memory quota for unsent bytes; up to LITTLE_UNSENT do not count. */
void ws_count_in(struct ws *ws, struct quota *quota);

/* Returns an unmasked, unfragmented data frame around the payload, with one reference. */
struct bytes *ws_frame(struct slice payload, bool binary);
struct bytes *ws_frame_rope(const struct rope *payload, bool binary);

/* Returns the two frames of one binary message whose end is shared by several connections:
 * send them one right after the other. */
struct bytes *ws_frame_begin(struct slice first);
struct bytes *ws_frame_end(struct slice rest);

/* Sends frames in order, at most 64 a call; takes references to those that remain unsent.
 * Returns false if bytes are now unsent: send no more before on_drained. */
bool ws_send(struct ws *ws, struct bytes *const *frames, size_t count);

/* Sends one binary message, like ws_send of its two frames. Copies what remains unsent. first
 * has at most 125 bytes. */
bool ws_send_split(struct ws *ws, struct slice first, struct slice rest);

/* Prefetches the memory that ws_send accesses. Useful if frames are sent to many
 * connections in turn, each of which was last used long ago. */
void ws_fetch(const struct ws *ws);

/* Sends a ping after the frames; once the peer answers it, it has read all of them. payload has
 * at most 125 bytes. */
void ws_ping(struct ws *ws);
void ws_ping_with(struct ws *ws, struct slice payload);

/* Returns true if the peer has not answered every ping. */
bool ws_reads_still(const struct ws *ws);

/* Returns the number of bytes that the kernel has not accepted yet. */
size_t ws_unsent(const struct ws *ws);

/* Starts the closing handshake (RFC 6455 §7.1.2) after the unsent bytes. reason has at most
 * 123 bytes. on_closed follows within 5 s. */
void ws_close(struct ws *ws, int code, const char *reason);

/* Sends the reason, as far as the kernel accepts it at once, and closes without waiting. */
void ws_cut(struct ws *ws, int code, const char *reason);

/* Returns true after ws_close or a close by the peer. */
bool ws_closing(const struct ws *ws);
