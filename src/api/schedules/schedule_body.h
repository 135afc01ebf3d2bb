/* schedule_body.h - schedules as clients write and read them. */
#pragma once

#include "api/request/call.h"
#include "api/schedules/schedules.h"

/* Whether a schedule that is switched off is shown with its next run. */
enum schedule_next_shown { NEXT_IF_ACTIVE, NEXT_ALWAYS };

/* task, cron, and what may be left out: timezone (UTC), externalId, window; with_key also
 * deduplicationKey, which must be there and may be empty. Only shapes are looked at. On
 * ERR_INVALID the call has been answered. The texts are the caller's to finish. */
enum err schedule_body_read(struct api_call *call, bool with_key,
                            struct schedule_facts *wish);

/* Checks cron, time zone, window and task, in this order: of several mistakes the first is
 * told. ERR_RULE with the text. */
enum err schedule_body_check(struct api_call *call, const struct schedule_facts *wish,
                             struct failure *why);

/* The zone of a name. ERR_RULE with the text: the system knows none. */
enum err schedule_body_find_zone(struct api_call *call, struct slice name,
                                 const struct zone **zone, struct failure *why);

/* "30m", "2h", "50%"; an absent one is fine. */
bool schedule_window_is_valid(struct slice window);

void schedule_body_write(const struct api_call *call, struct schedule *schedule,
                         enum schedule_next_shown next, struct buf *out);

/* As a run shows the schedule it comes from; nothing when there is no such schedule. */
void schedule_body_brief(const struct api_call *call, struct slice id, struct buf *out);

/* POST /api/v1/schedules/preview (schedule_preview.c). */
enum err schedule_preview(struct api_call *call);
