/* schedules.c - all schedules: found by id, key and task, and fired when they are due.
 *
 *   schedules.c ── due: schedule_fire ──────────────► firing.c
 *       ▲   ▲   ── no longer busy:                       │
 *       │   │        schedule_commands_go ──► schedule_commands.c
 *       │   └─ schedule_add, _adopt, _remove ◄──┤        │
 *       └───── schedule_release ◄───────────────┴────────┘
 *
 * Firing and commands both end in schedule_release, which sets when the schedule is due
 * again and decides the waiting commands. The three files depend on each other because a
 * schedule has one commit at a time.
 *
 * The heap uses wall-clock time; the loop's timers do not. So while anything is scheduled,
 * the wall clock is read once a second to notice changes. */
#include <stdio.h>

#include "api/schedules/schedule_state.h"
#include "base/log.h"
#include "base/mem.h"

enum {
    LOOK_MS = 1000,
    FIRE_A_TURN = 16,
    FORGOTTEN_AT_ONCE = 16,
    FIRING_MAX = 256, /* commits in flight; bounds memory, not speed */
};

/* ---- the tables ---- */

static struct slice key_of_id(const void *value)
{
    return slice_of(((const struct schedule *)value)->id);
}

static struct slice key_of_index(const void *value)
{
    return bytes_slice(((const struct schedule *)value)->index);
}

static struct slice key_of_zone(const void *value)
{
    return slice_of(zone_name(value));
}

static void on_tick(struct timer *timer);

static void on_quiet_over(struct timer *timer)
{
    schedules_log_suppressed(container_of(timer, struct env_schedules, quiet));
}

struct schedules *schedules_create(struct engine *engine)
{
    struct schedules *all = mem_new(struct schedules);
    all->engine = engine;
    table_init(&all->by_id, key_of_id);
    table_init(&all->by_index, key_of_index);
    table_init(&all->zones, key_of_zone);
    timers_init(&all->due);
    all->fire_kind = timers_kind(&all->due, schedule_fire);
    all->tick_kind = timers_kind(loop_timers(engine_loop(engine)), on_tick);
    all->quiet_kind = timers_kind(loop_timers(engine_loop(engine)), on_quiet_over);
    return all;
}

/* Frees the schedules of an environment. Returns false if the time slice ends first;
 * timeslice NULL: no time limit. */
static bool free_place(struct schedules *all, struct env_schedules *place,
                       struct timeslice *timeslice)
{
    while (!list_empty(&place->all)) {
        if (timeslice && !timeslice_left_every(timeslice, FORGOTTEN_AT_ONCE))
            return false;
        schedule_remove(all, container_of(place->all.next, struct schedule, link));
    }
    schedules_log_suppressed(place);
    timers_clear(loop_timers(engine_loop(all->engine)), &place->quiet);
    free(place);
    return true;
}

void schedules_destroy(struct schedules *all)
{
    size_t at = 0;
    uint32_t number = 0;
    if (!all)
        return;
    for (struct env_schedules *place; (place = slots_next(&all->environments, &number));)
        free_place(all, place, NULL);
    for (struct zone *zone; (zone = table_next(&all->zones, &at));)
        zone_close(zone);
    table_finish(&all->zones);
    table_finish(&all->by_id);
    table_finish(&all->by_index);
    timers_finish(&all->due);
    slots_finish(&all->environments);
    free(all);
}

struct env_schedules *schedules_in(struct schedules *all, const struct environment *env)
{
    void **slot = slots_at(&all->environments, env->number);
    if (!*slot) {
        struct env_schedules *place = mem_new(struct env_schedules);
        place->env = env;
        list_init(&place->all);
        *slot = place;
    }
    return *slot;
}

static void put_in_order(struct env_schedules *place, struct schedule *schedule)
{
    struct list *before = place->all.prev;
    while (before != &place->all &&
           strcmp(container_of(before, struct schedule, link)->id, schedule->id) > 0)
        before = before->prev;
    list_append(before->next, &schedule->link);
    place->count++;
}

struct schedule *schedule_add(struct schedules *all, struct environment *env,
                              const char *id)
{
    struct schedule *schedule = mem_new(struct schedule);
    schedule->all = all;
    snprintf(schedule->id, sizeof(schedule->id), "%s", id);
    schedule->env = env;
    list_init(&schedule->parked);
    list_init(&schedule->link);
    put_in_order(schedules_in(all, env), schedule);
    table_insert(&all->by_id, schedule);
    return schedule;
}

static void leave_index(struct schedules *all, struct schedule *schedule)
{
    if (schedule->index)
        table_remove(&all->by_index, bytes_slice(schedule->index));
    bytes_clear(&schedule->index);
}

void schedule_remove(struct schedules *all, struct schedule *schedule)
{
    timers_clear(&all->due, &schedule->due);
    leave_index(all, schedule);
    table_remove(&all->by_id, slice_of(schedule->id));
    list_remove(&schedule->link);
    schedules_in(all, schedule->env)->count--;
    schedule_facts_finish(&schedule->facts);
    free(schedule);
}

/* Writes the index: "1:key" for a deduplication key, "1!task" for the declared schedule
 * of a task. */
static void make_index(const struct environment *env, bool of_task, struct slice name,
                       struct buf *out)
{
    buf_print(out, "%u%c", env->number, of_task ? '!' : ':');
    buf_add(out, name);
}

static struct schedule *find_index(struct schedules *all, const struct environment *env,
                                   bool of_task, struct slice name)
{
    struct buf index = { 0 };
    make_index(env, of_task, name, &index);
    struct schedule *found = table_find(&all->by_index, buf_slice(&index));
    buf_finish(&index);
    return found;
}

static void enter_index(struct schedules *all, struct schedule *schedule)
{
    const struct schedule_facts *facts = &schedule->facts;
    const struct bytes *name = facts->is_declarative ? facts->task : facts->key;
    struct buf index = { 0 };
    if (!name)
        return;
    make_index(schedule->env, facts->is_declarative, bytes_slice(name), &index);
    if (!table_find(&all->by_index, buf_slice(&index))) {
        schedule->index = buf_to_bytes(&index);
        table_insert(&all->by_index, schedule);
    }
    buf_finish(&index);
}

void schedule_adopt(struct schedules *all, struct schedule *schedule,
                    struct schedule_facts *facts)
{
    struct failure why;
    leave_index(all, schedule);
    schedule_facts_finish(&schedule->facts);
    schedule->facts = *facts;
    *facts = (struct schedule_facts){ 0 };
    enter_index(all, schedule);
    schedule->zone = schedules_zone(all, bytes_slice(schedule->facts.timezone));
    if (cron_read(bytes_slice(schedule->facts.cron), &schedule->cron, &why))
        schedule->zone = NULL;
    schedule->next_after = schedule->next = 0;
}

/* ---- lookup ---- */

struct schedule *schedules_by_id(struct schedules *all, const struct environment *env,
                                 struct slice id)
{
    struct schedule *schedule = table_find(&all->by_id, id);
    return schedule && schedule->env == env ? schedule : NULL;
}

struct schedule *schedules_by_key(struct schedules *all, const struct environment *env,
                                  struct slice key)
{
    return find_index(all, env, false, key);
}

struct schedule *schedules_of_task(struct schedules *all, const struct environment *env,
                                   struct slice task)
{
    return find_index(all, env, true, task);
}

struct schedule *schedules_next(struct schedules *all, const struct environment *env,
                                const struct schedule *previous)
{
    struct list *head = &schedules_in(all, env)->all;
    struct list *link = previous ? previous->link.prev : head->prev;
    return link == head ? NULL : container_of(link, struct schedule, link);
}

size_t schedules_count(struct schedules *all, const struct environment *env)
{
    return schedules_in(all, env)->count;
}

size_t schedules_count_branches(struct schedules *all, const struct environment *env)
{
    size_t count = 0;
    uint32_t at = 0;
    for (struct env_schedules *place; (place = slots_next(&all->environments, &at));)
        if (environment_is_branch(place->env) &&
            engine_share_quota(env, place->env->number))
            count += place->count;
    return count;
}

size_t schedules_count_project(struct schedules *all, const struct environment *env)
{
    size_t count = 0;
    uint32_t at = 0;
    for (struct env_schedules *place; (place = slots_next(&all->environments, &at));)
        if (place->env == env || engine_share_quota(env, place->env->number))
            count += place->count;
    return count;
}

/* Caches the next time: a rare one is far away, and finding it takes a long time. */
int64_t schedule_next(struct schedule *schedule, int64_t after_ms)
{
    const struct schedule_facts *facts = &schedule->facts;
    int64_t floor = facts->since > facts->fired_at ? facts->since : facts->fired_at;
    if (!schedule->zone)
        return 0;
    if (after_ms < floor)
        after_ms = floor;
    if (after_ms < schedule->next_after || after_ms >= schedule->next) {
        schedule->next = cron_next(&schedule->cron, schedule->zone, after_ms);
        schedule->next_after = after_ms;
    }
    return schedule->next;
}

const struct zone *schedules_zone(struct schedules *all, struct slice name)
{
    struct table *zones = &all->zones;
    struct zone *zone = table_find(zones, name);
    if (!zone && !zone_open(name, &zone))
        table_insert(zones, zone);
    return zone;
}

/* ---- timing ---- */

void schedules_arm(struct schedules *all)
{
    struct loop *loop = engine_loop(all->engine);
    int64_t next = timers_next(&all->due), wait = next - loop_wall_ms(loop);

    if (!all->started || engine_draining(all->engine) || next == INT64_MAX ||
        all->firing >= FIRING_MAX) {
        timers_clear(loop_timers(loop), &all->tick);
        return;
    }
    wait = wait < 1 ? 1 : wait;
    loop_set_timer(loop, &all->tick, all->tick_kind, wait > LOOK_MS ? LOOK_MS : wait);
}

static void on_tick(struct timer *timer)
{
    struct schedules *all = container_of(timer, struct schedules, tick);
    struct loop *loop = engine_loop(all->engine);
    struct timeslice timeslice = loop_timeslice(loop);
    bool more = !engine_draining(all->engine);
    while (more && timeslice.units < FIRE_A_TURN && timeslice_left(&timeslice))
        more = timers_run(&all->due, loop_wall_ms(loop), 1);
    schedules_arm(all);
}

void schedules_start(struct schedules *all)
{
    all->started = true;
    schedules_arm(all);
}

void schedules_stop(struct schedules *all)
{
    all->started = false;
    schedules_arm(all);
}

bool schedules_are_idle(const struct schedules *all)
{
    return !all->under_way;
}

void schedule_release(struct schedules *all, struct schedule *schedule)
{
    int64_t next = schedule_next(schedule, 0);
    struct list parked;

    schedule->busy = false;
    if (!schedule->facts.is_active || schedules_in(all, schedule->env)->retired)
        next = 0;
    /* After a failure, retry in a second; a later time may be due by then. */
    if (schedule->failing && next)
        next = loop_wall_ms(engine_loop(all->engine)) + LOOK_MS;
    if (next)
        timers_set(&all->due, &schedule->due, all->fire_kind, next);
    else
        timers_clear(&all->due, &schedule->due);
    schedules_arm(all);
    list_init(&parked);
    list_move_all(&parked, &schedule->parked);
    schedule_commands_go(&parked);
}

void schedules_retire(struct schedules *all, const struct environment *env)
{
    struct env_schedules *place = schedules_in(all, env);
    place->retired = true;
    list_each (link, &place->all)
        timers_clear(&all->due, &container_of(link, struct schedule, link)->due);
}

bool schedules_are_busy(struct schedules *all, const struct environment *env)
{
    const struct env_schedules *place = slots_get(&all->environments, env->number);
    if (place)
        list_each (link, &place->all)
            if (container_of(link, struct schedule, link)->busy)
                return true;
    return false;
}

bool schedules_forget(struct schedules *all, const struct environment *env,
                      struct timeslice *timeslice)
{
    struct env_schedules *place = slots_get(&all->environments, env->number);
    if (!place)
        return true;
    if (!free_place(all, place, timeslice))
        return false;
    *slots_at(&all->environments, env->number) = NULL;
    return true;
}

/* ---- at start ---- */

enum err schedules_restore(struct schedules *all, const struct document *document,
                           struct failure *why)
{
    struct environment *env = engine_environment(all->engine, document->env);
    struct schedule_facts facts = { 0 };
    if (!env || !document->body)
        return OK;
    if (schedule_facts_read(bytes_slice(document->body), &facts))
        return explain(why, ERR_INVALID, "The document of schedule %s is damaged",
                       document->name->data);
    struct schedule *schedule = schedule_add(all, env, document->name->data);
    schedule->version = document->version;
    schedule_adopt(all, schedule, &facts);
    if (!schedule->zone)
        log_warn("invalid schedule ignored", "schedule", schedule->id, "timezone",
                 schedule->facts.timezone->data, NULL);
    schedule_release(all, schedule);
    return OK;
}
