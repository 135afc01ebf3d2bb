/* run_reply.h - answers a call with a whole run and its relatives. */
#pragma once

#include "api/api.h"

/* Replies later, once. The run is borrowed for this call only. seq 0: no write. */
void run_reply_begin(struct api_call *call, const struct run *run, uint64_t seq);

/* Replies that an operation on a run did not come about: why holds the reason of a
 * refusal, missing what to say when there is no such run. */
void run_reply_refused(struct api_call *call, enum err status, const struct failure *why,
                       const char *missing);
