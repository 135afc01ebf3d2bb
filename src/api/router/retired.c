/* retired.c - frees the environments of archived branches and deleted projects.
 *
 *   archived ─► retired: runs are canceled, open calls are ended (revocation.c)
 *                 │
 *                 └─ every second: is it still held? ─► no: bulk actions, streams, open
 *                    batches, schedules and the engine's part are freed, in time slices
 *
 * Code that returns to an environment later holds it (core/live/environment.h), so that
 * code that frees something here need not know all others. Only the account stays, which is
 * small: the environment's tokens are still known to belong to one that no longer
 * exists. */
#include "api/router/retired.h"

#include "api/batches/open_batches.h"
#include "api/bulk/bulk.h"
#include "api/deployments/deployments.h"
#include "api/request/quotas.h"
#include "api/schedules/schedules.h"
#include "api/streams/streams.h"
#include "base/mem.h"

enum { EVERY_MS = 1000 };

struct retired {
    struct api *api;
    uint32_t *numbers; /* of retired environments */
    size_t count, capacity;
    size_t next; /* index of the one to check next */
    struct timer timer;
    uint32_t kind;
};

static struct loop *loop_of(const struct retired *retired)
{
    return engine_loop(api_engine(retired->api));
}

/* Frees what parts of the API hold for the environment. Returns false if the time slice
 * ended before that; the next turn continues. */
static bool free_parts(struct api *api, struct environment *env,
                       struct timeslice *timeslice)
{
    return streams_forget(api_streams(api), env, timeslice) &&
           open_batches_forget(api_open_batches(api), env, timeslice) &&
           schedules_forget(api_schedules(api), env, timeslice);
}

enum step { STAYS, IS_LEAVING, HAS_LEFT };

static enum step leave(struct api *api, uint32_t number, struct timeslice *timeslice)
{
    struct engine *engine = api_engine(api);
    struct environment *env = engine_environment(engine, number);
    if (!engine_may_drop_environment(engine, env) ||
        schedules_are_busy(api_schedules(api), env) || !bulks_forget(api_bulks(api), env) ||
        !deployments_forget(api_deployments(api), env))
        return STAYS;
    if (!free_parts(api, env, timeslice))
        return IS_LEAVING;
    quotas_forget(api_quotas(api), env);
    engine_drop_environment(engine, env);
    accounts_shrink(accounts_by_number(api_accounts(api), number));
    return HAS_LEFT;
}

/* Checks each retired environment, in time slices. */
static void on_time(struct timer *timer)
{
    struct retired *retired = container_of(timer, struct retired, timer);
    struct timeslice timeslice = loop_timeslice(loop_of(retired));
    enum step step = STAYS;
    while (retired->next < retired->count && step != IS_LEAVING &&
           timeslice_left(&timeslice)) {
        step = leave(retired->api, retired->numbers[retired->next], &timeslice);
        if (step == HAS_LEFT)
            retired->numbers[retired->next] = retired->numbers[--retired->count];
        else if (step == STAYS)
            retired->next++;
    }
    bool all = retired->next == retired->count;
    if (all)
        retired->next = 0;
    if (retired->count)
        loop_set_timer(loop_of(retired), timer, retired->kind, all ? EVERY_MS : 1);
}

/* Returns true also if it was retired by a gateway that followed, and leads now. */
static bool is_known(const struct retired *retired, uint32_t number)
{
    for (size_t i = 0; i < retired->count; i++)
        if (retired->numbers[i] == number)
            return true;
    return false;
}

void retired_add(struct retired *retired, uint32_t number)
{
    if (is_known(retired, number))
        return;
    if (retired->count == retired->capacity) {
        retired->capacity = retired->capacity ? 2 * retired->capacity : 16;
        retired->numbers =
            mem_resize(retired->numbers, retired->capacity * sizeof(uint32_t));
    }
    retired->numbers[retired->count++] = number;
    if (!retired->timer.place)
        loop_set_timer(loop_of(retired), &retired->timer, retired->kind, EVERY_MS);
}

struct retired *retired_create(struct api *api)
{
    struct retired *retired = mem_new(struct retired);
    retired->api = api;
    retired->kind = timers_kind(loop_timers(loop_of(retired)), on_time);
    return retired;
}

void retired_destroy(struct retired *retired)
{
    if (!retired)
        return;
    timers_clear(loop_timers(loop_of(retired)), &retired->timer);
    free(retired->numbers);
    free(retired);
}
