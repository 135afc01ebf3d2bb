/* process_metrics.h - what is asked for when metrics are read, and counted nowhere. */
#pragma once

#include "call/call.h"

/* Prometheus text behind that of metrics_print: version, memory, size of the database, workers
 * that wait. */
void process_metrics_print(const struct api *api, struct buf *out);
