/* process_metrics.h - metrics of the process, looked up when somebody reads them. */
#pragma once

#include "api/request/call.h"

/* Prometheus text: the build, whether it is ready, memory, CPU, descriptors (those that are
 * open were counted), size of the database. */
void process_metrics_print(const struct api *api, int64_t descriptors, struct buf *out);
