/* registration_limits.h - concurrency limits and gates that a version declares.
 *
 *   metadata.concurrencyLimits      [{"name":"openai","perKey":2,"total":10}]
 *   metadata.tasks[].concurrency    {"inline":{"total":1},"limits":["openai"]}
 *   metadata.tasks[].gates          [{"queue":"q","concurrencyKey":"all"}]
 *
 * The inline limit of a task is a limit with the name "task/<id>". */
#pragma once

#include "api/registration/member.h"
#include "core/fleet/worker_versions.h"
#include "core/live/environment.h"

/* Reads the concurrency and the gates of a task: what its runs need. Adds its inline limit
 * to the worker. */
enum err registration_read_needs(const struct member_location *location, const json_t *json,
                                 struct worker_task *task, struct worker *worker);

/* Reads the list of limits, which may be absent, after all tasks and queues are read and
 * sorted. In a version that was not stored before, each limit that a task names must be in
 * it, and each gate must be a queue of the version. */
enum err registration_read_limits(struct slice list, bool is_stored, struct worker *worker,
                                  struct failure *why);

/* Writes what the two functions above read. */
void registration_write_needs(struct buf *out, const struct worker *worker,
                              const struct worker_task *task);
void registration_write_limits(struct buf *out, const struct worker *worker);

/* Makes the limits of the worker count, and makes them the effective ones. */
void registration_register_limits(const struct worker *worker, struct environment *env);
void registration_forget_limits(const struct worker *worker, struct environment *env);
