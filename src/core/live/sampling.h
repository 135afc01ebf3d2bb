/* sampling.h - closes samples of what happened in an environment (core/counters/stats.h).
 *
 * A closed sample also has the length of the queue at that moment, and its oldest run. */
#pragma once

#include <stdint.h>

struct environment;

/* Returns when the run that has waited in a queue for longest was queued; Unix ms; 0: none
 * waits. */
int64_t sampling_queued_since(const struct environment *env);

/* Closes the open sample if its time has passed. Call it before anything is noted, and
 * before samples are read. */
void sampling_pass(struct environment *env);

/* Closes the open sample before its time, if it has events. For the end of the process. */
void sampling_end(struct environment *env);
