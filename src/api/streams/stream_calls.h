/* stream_calls.h - the handlers of the stream routes. */
#pragma once

#include "api/request/route.h"

/* stream_read.c */
route_fn stream_open_output, stream_open_input;

/* stream_write.c */
route_fn stream_create, stream_append_part, stream_pipe, stream_probe, stream_send;
enum err stream_take_piece(struct api_call *call, struct slice piece);
