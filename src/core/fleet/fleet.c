/* fleet.c - creates and destroys the parts of a fleet together. */
#include "core/fleet/fleet.h"

#include "base/mem.h"
#include "core/fleet/dev_sessions.h"
#include "core/fleet/leases.h"
#include "core/fleet/line.h"
#include "core/fleet/worker_versions.h"

void fleets_init(struct fleets *fleets)
{
    fleets->session_kind = timers_kind(loop_timers(fleets->loop), dev_sessions_on_time);
    fleets->waiting_log_kind = timers_kind(loop_timers(fleets->loop), waiting_log_on_time);
}

void fleet_create(struct fleets *fleets, struct environment *env)
{
    struct fleet *fleet = mem_new(struct fleet);
    fleet->shared = fleets;
    fleet->workers = workers_create();
    fleet->leases = leases_create();
    fleet->sessions = dev_sessions_create(fleet, env);
    fleet->waiting_log.env = env;
    list_init(&fleet->line);
    table_init(&fleet->named, line_key);
    env->fleet = fleet;
}

void fleet_destroy(struct fleet *fleet)
{
    timers_clear(loop_timers(fleet->shared->loop), &fleet->waiting_log.timer);
    dev_sessions_destroy(fleet->sessions);
    leases_destroy(fleet->leases);
    table_finish(&fleet->named);
    workers_destroy(fleet->workers);
    free(fleet);
}
