/* run_counts.h - how many runs there are by status, as REST says it. */
#pragma once

#include "api/request/call.h"

/* Handler of GET /api/v1/runs/counts. */
enum err run_counts(struct api_call *call);

/* Appends {"byStatus":{"EXECUTING":3,…},"total":N}, of RUN_STATUS_COUNT counts. */
void run_counts_add(enum vocabulary vocabulary, const uint64_t *counts, struct buf *out);
