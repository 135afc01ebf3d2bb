/* activity_document.h - the samples and task figures of an environment as a text, so that
 * they survive a restart.
 *
 *   {"from":…,
 *    "samples":[[at,triggers,queued,queuedSince,deliveries,p50,p99,ends…],…],
 *    "tasks":[{"task":…,"failedAt":…,"failedRun":…,
 *              "slots":[[at,triggers,completed,failed,canceled,expired,bucket,count,…],…]},…]}
 *
 * A slot names only the buckets with a nonzero count. The text covers at most the six hours
 * that are in memory. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "core/counters/stats.h"
#include "core/counters/task_figures.h"

/* Leaves out the open sample. */
void activity_document_write(const struct stats *stats, const struct task_table *tasks,
                             struct buf *out);

/* Fills empty samples and tasks. Skips entries older than six hours, or later than now.
 *
 * Returns ERR_INVALID with why if the text is damaged; entries read before the damage
 * stay. */
enum err activity_document_read(struct slice text, int64_t now_ms, struct stats *stats,
                                struct task_table *tasks, struct failure *why);
