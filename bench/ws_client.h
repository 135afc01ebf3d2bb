/* ws_client.h - runs.v1 over WebSocket: pings are answered; compression and fragmented
 * messages are not asked for and not read. */
#pragma once

#include "client.h"

/* Sends one text message. */
void ws_client_send(struct client *client, struct slice text);
