/* run_end.h - the errors that the gateway ends runs with, and whether a request names the newest
 * snapshot of a run or was carried out already. */
#pragma once

#include "runcast/run.h"

/* The error of a run for a reason: {"type":"STRING_ERROR","raw":…} or
 * {"type":"INTERNAL_ERROR","code":…,"message":…}. */
struct bytes *error_text(const char *text);
struct bytes *error_internal(const char *code, const char *message);

/* The run ends with this error, and nothing is due any more. Takes over the error. */
void run_end_with(struct run *next, struct bytes *error, unsigned *marks);

/* ttl of a queued run in ms; 0: none. */
int64_t run_ttl_ms(const struct run *run);

/* Is it the id of the run's newest snapshot? */
bool run_is_newest(const struct run *run, struct slice snapshot);

/* Is this the request that took the run to its state? */
bool run_was_asked_by(const struct run *run, struct slice request_id);
void run_remember_request(struct run *run, struct slice request_id);
