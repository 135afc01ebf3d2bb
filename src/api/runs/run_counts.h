/* run_counts.h - the route that counts runs by status. */
#pragma once

#include "api/request/call.h"

/* Handler of GET /api/v1/runs/counts. */
enum err run_counts(struct api_call *call);

/* Appends {"byStatus":{"EXECUTING":3,…},"total":N}. counts has RUN_STATUS_COUNT
 * elements. */
void run_counts_add(enum vocabulary vocabulary, const uint64_t *counts, struct buf *out);
