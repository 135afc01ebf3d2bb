/* schedule_sync.h - schedules that are declared in the code of tasks.
 *
 *   tasks of the current worker version,
 *   in dev of all sessions ──────────────┐
 *                                        ├─► made, changed, removed: one command each
 *   declarative schedules there are ─────┘
 *
 * Each command looks at the current version when it is decided, so it does not matter how
 * many registrations come meanwhile, or that the gateway went down in the middle. */
#pragma once

#include "api/request/call.h"
#include "core/fleet/worker_versions.h"

struct schedule_sync {
    struct api *api;
    struct account *account;
    struct environment *env;
    void (*done)(struct schedule_sync *sync, enum err status);

    enum err status;      /* the first that was not OK */
    struct bytes **tasks; /* whose schedules may have to change */
    size_t count, next;
    size_t pending;
    struct deferred deferred;
};

/* is_new: a registration declares it now, and it is not stored yet; cron_read_new judges it.
 * ERR_INVALID: the expression, time zone or window that a task declares is invalid. */
enum err schedule_sync_check(struct api *api, const struct worker_task *task, bool is_new,
                             struct failure *why);

void schedule_sync_begin(struct api *api, struct account *account,
                         struct schedule_sync *sync,
                         void (*done)(struct schedule_sync *sync, enum err status));

/* All environments, at start. */
void schedule_sync_all(struct api *api);
