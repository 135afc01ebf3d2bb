/* packet_body.h - payloads and outputs that travel beside their run, as they are written and
 * read behind the signed URLs of packet_name.h. */
#pragma once

#include "api/request/route.h"

enum { PACKET_BYTES_MAX = (10 << 20) + (64 << 10) };

/* The handlers of the signed URLs; params are the environment's id and the name. */
enum err packet_take_piece(struct api_call *call, struct slice piece);
route_fn packet_write, packet_read;
