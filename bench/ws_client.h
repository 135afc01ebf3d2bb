/* ws_client.h - runs.v1 over WebSocket, plain or wrapped in a peer's protocol (peer.h).
 *
 * Pings get a pong. Compression is not requested; fragmented messages are an error. */
#pragma once

#include "client.h"

/* Sends one text message. */
void ws_client_send(struct client *client, struct slice text);

/* Publishes a message of runs.v1 to all subscribers of a peer; the group must have one. */
void ws_client_publish(struct client *client, struct slice message);
