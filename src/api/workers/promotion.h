/* promotion.h - another version becomes the current one of its environment, or an old one again.
 *
 *   promotion_begin ─► pointer written, synced ─┬─► current in memory; its queues have its limits
 *                                               ├─► the sweep judges what waits and is queued
 *                                               └─► its declared schedules are written ─► done
 *
 * The pointer is one document of the environment, and all that is remembered: the rest follows
 * from it at each start, so nothing that a crash cut off is missed. Of several promotions at once
 * one is written after the other; each that lost decides anew from what is current by then.
 *
 * In dev nothing is promoted: the newest registration is current there. So it is elsewhere as
 * long as nothing was, as in data directories from before. */
#pragma once

#include "api/schedules/schedule_sync.h"

enum promotion_rule {
    PROMOTION_ANY,   /* an older version too: to roll back */
    PROMOTION_NEWER, /* only if the current one is not newer */
};

enum promotion_outcome {
    PROMOTION_MADE,
    PROMOTION_WAS_CURRENT, /* it was current before; its schedules were looked after again */
    PROMOTION_OLDER,       /* PROMOTION_NEWER: nothing was changed */
};

/* Embedded by the operation, which sets the rule before it begins. */
struct promotion {
    enum promotion_rule rule;
    enum promotion_outcome outcome; /* when done with OK */
    struct failure why;             /* of a refusal */

    struct api *api;
    struct account *account;
    struct environment *env;
    void (*done)(struct promotion *promotion, enum err status);
    char version[WORKER_VERSION_MAX];
    enum err refused;
    unsigned tries;
    struct document_write write;
    struct schedule_sync sync;
    struct deferred deferred;
};

/* done comes once, later. ERR_NOT_FOUND: there is no such version, its deployment is not
 * DEPLOYED, it is not kept any more, or the environment is an archived branch's. Any other error: when the pointer was written the
 * version is current all the same, and the next start looks after its schedules; as does the
 * same promotion again. */
void promotion_begin(struct promotion *promotion, struct api *api, struct account *account,
                     struct slice version,
                     void (*done)(struct promotion *promotion, enum err status));

/* What a document of DOC_CURRENT says, at start, when all versions are there. */
enum err promotion_restore(struct environment *env, const struct document *document,
                           struct failure *why);
