/* process_metrics.h - metrics of the process, measured whenever they are read. */
#pragma once

#include "api/request/call.h"

/* Appends Prometheus text: build, readiness, memory, CPU, descriptors, size of the
 * database, certificates. descriptors: how many are open. */
void process_metrics_print(const struct api *api, int64_t descriptors, struct buf *out);
