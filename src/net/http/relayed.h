/* relayed.h - where a request came from, as text for the server that gets it next.
 *
 *   "203.0.113.9 s-": the address of the client; s: through TLS; h: its proxy is untrusted
 *
 * The text must reach the next server by a way that no client can use. */
#pragma once

#include "net/http/http.h"

/* The header that carries the text. Only a server for which exchange::relayed is set accepts
 * it. */
#define RELAYED_HEADER "x-runcast-forwarded"

/* A header of a 503 for a relayed request: nothing of it was executed, so another server may
 * get it. */
#define RELAYED_UNTAKEN "x-runcast-untaken"

/* A header of a 503 for a relayed request: it may still be executed. */
#define RELAYED_UNSURE "x-runcast-unsure"

/* Appends where the request came from. */
void relayed_write(const struct exchange *x, struct buf *out);

/* Attributes the exchange to the client that the text names. Returns false if it is
 * malformed; the exchange stays as it is. */
bool relayed_read(struct slice text, struct exchange *x);
