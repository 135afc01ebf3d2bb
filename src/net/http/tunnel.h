/* tunnel.h - a connection that has left HTTP: bytes both ways, as they are.
 *
 *   exchange ─ tunnel_accept ─► on_bytes … ─► on_closed
 *                  ▲ tunnel_send; after a full buffer, on_drained
 *
 * It is for an exchange that another server has answered with 101. This layer does not know
 * the protocol, so a tunnel has no deadline: its far side ends it. */
#pragma once

#include "net/http/http.h"

struct tunnel;

struct tunnel_ops {
    void (*on_bytes)(struct tunnel *tunnel, struct slice bytes);
    void (*on_drained)(struct tunnel *tunnel);
    /* The last callback; the tunnel is freed when it returns. */
    void (*on_closed)(struct tunnel *tunnel);
};

/* Responds with 101 and these header lines, and takes the connection from the exchange,
 * which is then gone. Requires a complete request of a peer that has not left. */
struct tunnel *tunnel_accept(struct exchange *x, struct slice headers,
                             const struct tunnel_ops *ops, void *owner);

void *tunnel_owner(const struct tunnel *tunnel);

/* Returns false if too many bytes are unsent: send no more before on_drained. */
bool tunnel_send(struct tunnel *tunnel, struct slice bytes);

/* Pauses or resumes on_bytes; once more, it may still be called. */
void tunnel_pause(struct tunnel *tunnel, bool paused);

/* Closes once the unsent bytes are sent, within some seconds; on_bytes is not called any
 * more, but on_closed is. */
void tunnel_close(struct tunnel *tunnel);
