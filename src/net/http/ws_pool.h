/* ws_pool.h - what WebSocket connections of a server hear with, lent to them from the first
 * byte of a frame to the end of its message; private to http. */
#pragma once

#include "net/http/ws_input.h"

struct server;

struct ws_input *ws_pool_take(struct server *server);
void ws_pool_give_back(struct server *server, struct ws_input *input);
