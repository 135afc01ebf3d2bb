/* run_reply.h - answers a call with a whole run and its relatives. */
#pragma once

#include "api/request/call.h"

/* Replies later, once. The run is borrowed for this call only. seq 0: no write. */
void run_reply_begin(struct api_call *call, const struct run *run, uint64_t seq);

/* Where the packet is read that a payload or output only names, as application/store says;
 * absent for all others. The text is in url, which is the caller's to finish. */
struct slice run_reply_url(struct api_call *call, const struct bytes *name,
                           const struct bytes *type, struct buf *url);
