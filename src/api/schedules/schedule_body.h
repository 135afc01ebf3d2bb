/* schedule_body.h - schedules in requests and responses of the API. */
#pragma once

#include "api/request/call.h"
#include "api/schedules/schedules.h"

/* Whether the next run of an inactive schedule is shown. */
enum schedule_next_shown { NEXT_IF_ACTIVE, NEXT_ALWAYS };

/* Reads task, cron, timezone (default UTC), and the optional externalId and window.
 * with_key: also deduplicationKey, which is required but may be empty. Checks types and
 * lengths only. On ERR_INVALID the call has its reply. The caller finishes *requested. */
enum err schedule_body_read(struct api_call *call, bool with_key,
                            struct schedule_facts *requested);

/* Checks cron, time zone, window and task, in this order. Returns ERR_RULE with a message
 * about the first mistake. */
enum err schedule_body_check(struct api_call *call, const struct schedule_facts *requested,
                             struct failure *why);

/* Finds a zone by name. Returns ERR_RULE with the message if the system does not have
 * it. */
enum err schedule_body_find_zone(struct api_call *call, struct slice name,
                                 const struct zone **zone, struct failure *why);

/* Returns true for "30m", "2h", "50%", and if it is absent. */
bool schedule_window_is_valid(struct slice window);

void schedule_body_write(const struct api_call *call, struct schedule *schedule,
                         enum schedule_next_shown next, struct buf *out);

/* Appends the schedule as its runs show it; nothing if there is no such schedule. */
void schedule_body_brief(const struct api_call *call, struct slice id, struct buf *out);

/* POST /api/v1/schedules/preview (schedule_preview.c). */
enum err schedule_preview(struct api_call *call);
