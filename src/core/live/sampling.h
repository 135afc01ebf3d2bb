/* sampling.h - closes the samples of what has happened in an environment
 * (core/counters/stats.h), with the queue as it is then. */
#pragma once

struct environment;

/* Closes the open sample if its time is over: to be called before anything is noted, and before the
 * samples are read. */
void sampling_pass(struct environment *env);
