/* commands.h - what the bench can measure: one function, one file each.
 *
 * Each prints its report and returns the exit status: 1 when the server lost or refused
 * something. */
#pragma once

#include "options.h"

/* N subscribers, M changes a second: latency, CPU a frame, memory, losses. */
int fanout_main(const struct options *options);

/* Durable triggers a second at a concurrency. */
int trigger_main(const struct options *options);

/* Retrieves a second at a concurrency. */
int retrieve_main(const struct options *options);

/* From a trigger to the worker that holds a poll. */
int dequeue_main(const struct options *options);

/* One subscriber joins a topic of many runs. */
int snapshot_main(const struct options *options);

/* The gateway is stopped and started beneath its clients: who comes back when, and what is
 * lost. */
int upgrade_main(const struct options *options);

/* Memory of a run, and latencies of trigger, retrieve and list as the table grows. */
int scale_main(const struct options *options);

/* What SQLite writes a second by itself, of the rows of a trigger. */
int bare_main(const struct options *options);
