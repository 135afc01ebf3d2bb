/* schedule_sync.h - keeps declared schedules in step with the code of tasks.
 *
 *   tasks of the current worker version,
 *   in dev of all sessions ──────────────┐
 *                                        ├─► create, change, remove: one command each
 *   existing declared schedules ─────────┘
 *
 * Each command uses the version that is current when it is decided, so neither further
 * registrations meanwhile nor a stop of the gateway halfway does any harm. */
#pragma once

#include "api/request/call.h"
#include "core/fleet/worker_versions.h"

struct schedule_sync {
    struct api *api;
    struct account *account;
    struct environment *env;
    void (*done)(struct schedule_sync *sync, enum err status);

    enum err status;      /* the first error; OK: none */
    struct bytes **tasks; /* tasks whose schedules may have to change */
    size_t count, next;
    size_t pending;
    struct deferred deferred;
};

/* Checks the schedule that a task declares. Returns ERR_INVALID if its expression, time
 * zone or window is invalid. is_new: it is not stored yet, so cron_read_new checks it. */
enum err schedule_sync_check(struct api *api, const struct worker_task *task, bool is_new,
                             struct failure *why);

void schedule_sync_begin(struct api *api, struct account *account,
                         struct schedule_sync *sync,
                         void (*done)(struct schedule_sync *sync, enum err status));

/* Synchronizes all environments at start, and each one when its sessions change. */
void schedule_sync_all(struct api *api);
