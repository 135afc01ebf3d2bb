/* leaving.c - frees the environments of archived branches and deleted projects.
 *
 *   archived ─► retired: runs are canceled, what is open is ended (revocation.c)
 *                 │
 *                 └─ every second: is it still held? ─► no: bulk actions, streams, open
 *                    batches, schedules and the engine's part are freed, in time slices
 *
 * Code that comes back to an environment later holds it (core/live/environment.h), so that
 * code that frees something here need not know all others. Only the account stays, which is
 * small: tokens of the environment are still known to belong to one that has ended. */
#include "api/router/leaving.h"

#include "api/batches/open_batches.h"
#include "api/bulk/bulk.h"
#include "api/deployments/deployments.h"
#include "api/request/rooms.h"
#include "api/schedules/schedules.h"
#include "api/streams/streams.h"
#include "base/mem.h"

enum { EVERY_MS = 1000 };

struct leaving {
    struct api *api;
    uint32_t *numbers; /* of retired environments */
    size_t count, capacity;
    size_t next; /* index of the one to look at next */
    struct timer timer;
    uint32_t kind;
};

static struct loop *loop_of(const struct leaving *leaving)
{
    return engine_loop(api_engine(leaving->api));
}

/* Frees what parts of the API hold for the environment. Returns false if the time slice
 * ended before that; the next turn continues. */
static bool free_parts(struct api *api, struct environment *env, struct stint *stint)
{
    return streams_forget(api_streams(api), env, stint) &&
           open_batches_forget(api_open_batches(api), env, stint) &&
           schedules_forget(api_schedules(api), env, stint);
}

enum step { STAYS, IS_LEAVING, HAS_LEFT };

static enum step leave(struct api *api, uint32_t number, struct stint *stint)
{
    struct engine *engine = api_engine(api);
    struct environment *env = engine_environment(engine, number);
    if (!engine_may_drop_environment(engine, env) ||
        schedules_are_busy(api_schedules(api), env) || !bulks_forget(api_bulks(api), env) ||
        !deployments_forget(api_deployments(api), env))
        return STAYS;
    if (!free_parts(api, env, stint))
        return IS_LEAVING;
    rooms_forget(api_rooms(api), env);
    engine_drop_environment(engine, env);
    accounts_shrink(accounts_by_number(api_accounts(api), number));
    return HAS_LEFT;
}

/* Looks at each retired environment, in time slices. */
static void on_time(struct timer *timer)
{
    struct leaving *leaving = container_of(timer, struct leaving, timer);
    struct stint stint = loop_stint(loop_of(leaving));
    enum step step = STAYS;
    while (leaving->next < leaving->count && step != IS_LEAVING && stint_goes_on(&stint)) {
        step = leave(leaving->api, leaving->numbers[leaving->next], &stint);
        if (step == HAS_LEFT)
            leaving->numbers[leaving->next] = leaving->numbers[--leaving->count];
        else if (step == STAYS)
            leaving->next++;
    }
    bool all = leaving->next == leaving->count;
    if (all)
        leaving->next = 0;
    if (leaving->count)
        loop_set_timer(loop_of(leaving), timer, leaving->kind, all ? EVERY_MS : 1);
}

void leaving_add(struct leaving *leaving, uint32_t number)
{
    if (leaving->count == leaving->capacity) {
        leaving->capacity = leaving->capacity ? 2 * leaving->capacity : 16;
        leaving->numbers =
            mem_resize(leaving->numbers, leaving->capacity * sizeof(uint32_t));
    }
    leaving->numbers[leaving->count++] = number;
    if (!leaving->timer.place)
        loop_set_timer(loop_of(leaving), &leaving->timer, leaving->kind, EVERY_MS);
}

struct leaving *leaving_create(struct api *api)
{
    struct leaving *leaving = mem_new(struct leaving);
    leaving->api = api;
    leaving->kind = timers_kind(loop_timers(loop_of(leaving)), on_time);
    return leaving;
}

void leaving_destroy(struct leaving *leaving)
{
    if (!leaving)
        return;
    timers_clear(loop_timers(loop_of(leaving)), &leaving->timer);
    free(leaving->numbers);
    free(leaving);
}
