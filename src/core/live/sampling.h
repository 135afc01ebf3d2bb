/* sampling.h - closes samples of an environment's activity (core/counters/stats.h).
 *
 * A closed sample also has the length of the queue at that moment, and the age of its
 * oldest run. */
#pragma once

#include <stdint.h>

struct environment;

/* Returns when the run that has waited longest in a queue was queued; Unix ms; 0: none is
 * waiting. */
int64_t sampling_queued_since(const struct environment *env);

/* Closes the open sample if its time is up. Call it before anything is noted, and before
 * samples are read. */
void sampling_pass(struct environment *env);

/* Closes the open sample early, if it has events. For process exit. */
void sampling_end(struct environment *env);
