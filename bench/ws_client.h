/* ws_client.h - runs.v1 over WebSocket, by itself or inside what a peer says (peer.h): pings
 * are answered; compression and fragmented messages are not asked for and not read. */
#pragma once

#include "client.h"

/* Sends one text message. */
void ws_client_send(struct client *client, struct slice text);

/* Has a peer tell everybody a message of runs.v1. The group has one. */
void ws_client_publish(struct client *client, struct slice message);
