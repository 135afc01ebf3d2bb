/* batches.h - handlers of the batch routes, one file each. */
#pragma once

#include "api/request/route.h"

route_fn batch_call_v1, batch_call_v2; /* batch_call.c */
enum err batch_call_piece(struct api_call *call, struct slice piece);
route_fn batch_create; /* batch_create.c */
route_fn batch_items;  /* batch_stream.c */
enum err batch_items_piece(struct api_call *call, struct slice piece);
route_fn batch_results; /* batch_results.c */
route_fn batch_list;    /* batch_list.c */
