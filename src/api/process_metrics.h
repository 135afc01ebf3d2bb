/* process_metrics.h - metrics that are not counted, but looked up when somebody reads them. */
#pragma once

#include "call/call.h"

/* Prometheus text behind that of metrics_print: version, memory, size of the database, workers
 * that wait. */
void process_metrics_print(const struct api *api, struct buf *out);
