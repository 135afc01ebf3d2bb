/* view.c - the names of a run's fields in messages, and the uses of a view. */
#include "core/wire/view.h"

#include <assert.h>

/* clang-format off */
static const char *const names[FIELD_COUNT] = {
    [FIELD_ID]              = "id",
    [FIELD_TASK]            = "taskIdentifier",
    [FIELD_STATUS]          = "status",
    [FIELD_CREATED_AT]      = "createdAt",
    [FIELD_UPDATED_AT]      = "updatedAt",
    [FIELD_TAGS]            = "tags",
    [FIELD_BATCH_ID]        = "batchId",
    [FIELD_PAYLOAD]         = "payload",
    [FIELD_OUTPUT]          = "output",
    [FIELD_NUMBER]          = "number",
    [FIELD_DURATION_MS]     = "durationMs",
    [FIELD_COST]            = "costInCents",
    [FIELD_BASE_COST]       = "baseCostInCents",
    [FIELD_IDEMPOTENCY_KEY] = "idempotencyKey",
    [FIELD_EXPIRED_AT]      = "expiredAt",
    [FIELD_TTL]             = "ttl",
    [FIELD_FINISHED_AT]     = "finishedAt",
    [FIELD_STARTED_AT]      = "startedAt",
    [FIELD_DELAYED_UNTIL]   = "delayedUntil",
    [FIELD_QUEUED_AT]       = "queuedAt",
    [FIELD_METADATA]        = "metadata",
    [FIELD_ERROR]           = "error",
    [FIELD_IS_TEST]         = "isTest",
    [FIELD_VERSION]         = "version",
    [FIELD_ATTEMPT_COUNT]   = "attemptCount",
    [FIELD_STREAMS]         = "realtimeStreams",
    [FIELD_QUEUE]           = "queue",
};
/* clang-format on */

const char *field_name(enum field field)
{
    assert(field < FIELD_COUNT);
    return names[field];
}

enum field field_from_name(struct slice name)
{
    for (unsigned field = 0; field < FIELD_COUNT; field++)
        if (slice_is(name, names[field]))
            return (enum field)field;
    return FIELD_COUNT;
}

void view_use(struct view *view)
{
    if (!view->users++)
        quota_take(view->quota, 1);
}

void view_release(struct view *view)
{
    assert(view->users > 0);
    if (!--view->users)
        quota_release(view->quota, 1);
}
