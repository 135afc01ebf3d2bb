/* run_end.h - errors with which the gateway ends runs, and checks of worker requests.
 *
 * A worker's request names a snapshot of the run. The checks are whether that is the newest
 * one, and whether the request was already carried out. */
#pragma once

#include "runcast/run.h"

/* Return the error of a run: {"type":"STRING_ERROR","raw":…} or
 * {"type":"INTERNAL_ERROR","code":…,"message":…}. */
struct bytes *error_text(const char *text);
struct bytes *error_internal(const char *code, const char *message);

/* Sets the error of a run that ends, and clears due_at. Takes ownership of the error. */
void run_end_with(struct run *next, struct bytes *error, unsigned *marks);

/* Returns the ttl of a queued run in ms; 0: none. */
int64_t run_ttl_ms(const struct run *run);

/* Returns true if this is the id of the run's newest snapshot. */
bool run_is_newest(const struct run *run, struct slice snapshot);

/* Returns true if this request brought the run into its current state. */
bool run_was_asked_by(const struct run *run, struct slice request_id);
void run_remember_request(struct run *run, struct slice request_id);
