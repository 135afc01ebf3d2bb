/* run_reply.h - replies to a call with a run and its relatives. */
#pragma once

#include "api/request/call.h"

/* Replies once, possibly later. Copies the run before it returns. seq: of the write that
 * changed the run; 0: none. */
void run_reply_begin(struct api_call *call, const struct run *run, uint64_t seq);

/* Returns the download URL of a payload or output of type application/store. Such a value
 * is only the name of a packet. Absent for other types. The text is in url, which the
 * caller finishes. */
struct slice run_reply_url(struct api_call *call, const struct bytes *name,
                           const struct bytes *type, struct buf *url);
