/* packet_body.h - handlers of the signed URLs that packet_name.h makes.
 *
 * A packet is a payload or output stored separately from its run. */
#pragma once

#include "api/request/route.h"

enum { PACKET_BYTES_MAX = (10 << 20) + (64 << 10) };

/* Handlers; the params are the environment's id and the packet's name. */
enum err packet_take_piece(struct api_call *call, struct slice piece);
route_fn packet_write, packet_read;
