/* registration_limits.h - concurrency limits that a version declares.
 *
 *   metadata.concurrencyLimits      [{"name":"openai","perKey":2,"total":10}]
 *   metadata.tasks[].concurrency    {"inline":{"total":1},"limits":["openai"]}
 *
 * The inline limit of a task is a limit with the name "task/<id>". */
#pragma once

#include "api/registration/member.h"
#include "core/fleet/worker_versions.h"
#include "core/live/environment.h"

/* Reads the concurrency of a task: which limits its runs need. Adds its inline limit to the
 * worker. */
enum err registration_read_concurrency(const struct member_location *location,
                                       const json_t *concurrency, struct worker_task *task,
                                       struct worker *worker);

/* Reads the list of limits, which may be absent, after all tasks. In a version that was not
 * stored before, each limit that a task names must be in it. */
enum err registration_read_limits(struct slice list, bool is_stored, struct worker *worker,
                                  struct failure *why);

/* Writes what the two functions above read. */
void registration_write_concurrency(struct buf *out, const struct worker *worker,
                                    const struct worker_task *task);
void registration_write_limits(struct buf *out, const struct worker *worker);

/* Makes the limits of the worker count, and makes them the effective ones. */
void registration_register_limits(const struct worker *worker, struct environment *env);
void registration_forget_limits(const struct worker *worker, struct environment *env);
