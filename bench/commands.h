/* commands.h - the measurements of the bench: one function, one file each.
 *
 * Each prints its report and returns the exit status: 1 if the server lost or refused
 * something. */
#pragma once

#include "options.h"

/* N subscribers, M changes a second: latency, CPU per frame, memory, losses. */
int fanout_main(const struct options *options);

/* Durable triggers per second at a concurrency. */
int trigger_main(const struct options *options);

/* Retrieves per second at a concurrency. */
int retrieve_main(const struct options *options);

/* From a trigger to a worker with a held poll. */
int dequeue_main(const struct options *options);

/* One subscriber joins a topic of many runs. */
int snapshot_main(const struct options *options);

/* Restarts the gateway while clients are connected: when each is back, and what is lost. */
int upgrade_main(const struct options *options);

/* Memory per run, and latencies of trigger, retrieve and list as the table grows. */
int scale_main(const struct options *options);

/* How many trigger rows or changes SQLite alone writes per second. */
int bare_main(const struct options *options);
