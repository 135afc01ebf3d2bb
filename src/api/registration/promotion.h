/* promotion.h - makes a newer or older version the current one of its environment.
 *
 *   promotion_begin ─► pointer written, synced
 *     ├─► current in memory; its queues have its limits
 *     ├─► the sweep checks waiting and queued runs
 *     └─► its declared schedules are written ─► done
 *
 * The pointer is one document of the environment, and all that is stored. The rest is
 * derived from it at each start, so a crash cannot leave a promotion half done. Concurrent
 * promotions are written one after another; each that lost decides again, from what is
 * current by then.
 *
 * In dev nothing is promoted: the newest registration is current. The same holds elsewhere
 * until the first promotion. */
#pragma once

#include "api/schedules/schedule_sync.h"

enum promotion_rule {
    PROMOTION_ANY,   /* even an older version, to roll back */
    PROMOTION_NEWER, /* only if the current one is not newer */
};

enum promotion_outcome {
    PROMOTION_MADE,
    PROMOTION_WAS_CURRENT, /* it was already current; its schedules were written again */
    PROMOTION_OLDER,       /* with PROMOTION_NEWER: nothing was changed */
};

/* Embedded by the operation, which sets the rule before it begins. */
struct promotion {
    enum promotion_rule rule;
    enum promotion_outcome outcome; /* set when done gets OK */
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

/* Promotes a version. Calls done once, later. ERR_NOT_FOUND: there is no such version, its
 * deployment is not DEPLOYED, it is no longer kept, or the environment is an archived
 * branch's. After any other error the pointer may have been written. The version is then
 * current, and the next start writes its schedules, as does repeating the promotion. */
void promotion_begin(struct promotion *promotion, struct api *api, struct account *account,
                     struct slice version,
                     void (*done)(struct promotion *promotion, enum err status));

/* Applies a document of DOC_CURRENT at startup, once all versions are loaded. */
enum err promotion_restore(struct environment *env, const struct document *document,
                           struct failure *why);
