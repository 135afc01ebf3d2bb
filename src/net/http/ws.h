/* ws.h - one WebSocket connection (RFC 6455), as a handler sees it.
 *
 *   exchange ─ ws_accept ─► on_message … on_message ─► on_closed
 *                  ▲ ws_send: whole shared frames, one vectored write, no queue of ours
 *
 * Input is parsed by wslay, borrowed from a pool while a message is in flight: an idle
 * connection holds no parser and no buffer. Data frames are made once by ws_frame and
 * sent to many; what the kernel does not take at once stays in the outbox as references
 * until it does, and on_drained tells. Control frames, pings and their deadlines, limits
 * and close codes are this layer's business. */
#pragma once

#include "base/rope.h"
#include "net/http/http.h"

struct ws;

struct ws_ops {
    /* Text, valid UTF-8. Binary messages are refused with 1003 before they come here. */
    void (*on_message)(struct ws *ws, struct slice message);
    /* No bytes are unsent any more. Never from inside ws_send. */
    void (*on_drained)(struct ws *ws);
    /* The last call: gone, for whatever reason; ws is freed when it returns. */
    void (*on_closed)(struct ws *ws);
};

/* Checks the handshake (RFC 6455 §4.2.1: GET, version 13 else 426, key) and either takes
 * the connection over from the exchange, which is gone then, or replies the refusal and
 * returns NULL. protocol NULL: none is named in the answer. Now or any time later; what the
 * peer has said meanwhile is heard after the call. */
struct ws *ws_accept(struct exchange *x, const char *protocol, const struct ws_ops *ops,
                     void *owner);

void *ws_owner(const struct ws *ws);

/* Like http_trust, for a credential that came as a message. Before that a message is small,
 * and when strangers together hold too much of what they have not finished, the one that
 * began first is closed. */
void ws_trust(struct ws *ws);

/* What is unsent takes room there from now on, when it is more than LITTLE_UNSENT. */
void ws_count_in(struct ws *ws, struct room *room);

/* An unmasked, unfragmented data frame around the payload, with one reference. */
struct bytes *ws_frame(struct slice payload, bool binary);
struct bytes *ws_frame_rope(const struct rope *payload, bool binary);

/* Writes frames in order, taking references for what is left over. False when bytes are
 * unsent now: send no more before on_drained. At most 64 frames a call. */
bool ws_send(struct ws *ws, struct bytes *const *frames, size_t count);

/* Brings into the caches what ws_send looks at. Worth it where many are sent to in turn, and each of
 * them was last looked at long ago. */
void ws_fetch(const struct ws *ws);

/* A ping behind what was sent: once the peer has answered, it has read all of that. */
void ws_ping(struct ws *ws);

/* The peer has not answered every ping. */
bool ws_reads_still(const struct ws *ws);

/* Bytes that the kernel did not take yet. */
size_t ws_unsent(const struct ws *ws);

/* Starts the closing handshake (RFC 6455 §7.1.2) behind what is unsent; at most 123 bytes
 * of reason. on_closed follows, at the latest 5 s later. */
void ws_close(struct ws *ws, int code, const char *reason);

/* Says why, as far as the kernel takes it at once, and waits for no answer. */
void ws_cut(struct ws *ws, int code, const char *reason);

/* True after ws_close or a close by the peer. */
bool ws_closing(const struct ws *ws);
