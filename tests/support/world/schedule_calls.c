/* schedule_calls.c - worlds with schedules: created, advanced in time, examined. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/json/scan.h"
#include "base/mem.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/schedule_calls.h"

struct world *create_world_at(int64_t wall, struct engine_options engine)
{
    struct world *world =
        world_create(&(struct world_options){ .engine = engine, .wrap = forgetful_wrap });
    loop_set_wall(world->loop, wall);
    register_worker(world, "20260101.1", "hello", 3);
    engine_add_environment(world->engine, WORLD_ENV + 1, "env_other", true);
    engine_sweep(world->engine);
    schedules_start(world->schedules);
    return world;
}

void pass(struct world *world, int64_t ms)
{
    int64_t step = ms > 10 * MINUTE ? MINUTE : SECOND;
    for (; ms > 0; ms -= step)
        world_pass(world, ms < step ? ms : step);
    for (int i = 0; i < 3; i++)
        world_pass(world, 5);
}

struct scanning {
    struct store_scan scan;
    bool done;
};

static void on_scanned(struct store_read *read, enum store_status status)
{
    assert_int_equal(status, STORE_OK);
    container_of(read, struct scanning, scan.read)->done = true;
}

static void load_schedules(struct world *world)
{
    struct scanning s = { .scan = { .read = { READ_SCAN, ENV_EVERY, on_scanned },
                                    .kind = DOC_SCHEDULE } };
    struct failure why;
    world->store->ops->read(world->store, &s.scan.read);
    while (!s.done)
        loop_turn(world->loop, 1);
    for (size_t i = 0; i < s.scan.count; i++) {
        assert_int_equal(schedules_restore(world->schedules, &s.scan.documents[i], &why),
                         OK);
        document_finish(&s.scan.documents[i]);
    }
    free(s.scan.documents);
}

/* Stays down for that long. */
void restart(struct world *world, int64_t down_ms)
{
    world_stop(world);
    loop_set_wall(world->loop, loop_wall_ms(world->loop) + down_ms);
    world_start(world);
    engine_add_environment(world->engine, WORLD_ENV + 1, "env_other", true);
    register_worker(world, "20260101.1", "hello", 3);
    load_schedules(world);
}

/* ---- commands as calls that return ---- */

static struct asking *asking_of(struct schedule_command *command)
{
    return container_of(command, struct asking, command);
}

static struct schedule *find(struct schedule_command *command)
{
    const struct asking *asking = asking_of(command);
    if (asking->id[0])
        return schedules_by_id(command->all, command->env, slice_of(asking->id));
    if (!asking->key)
        return NULL;
    return schedules_by_key(command->all, command->env, slice_of(asking->key));
}

static void take_text(struct bytes **place, const char *text)
{
    struct bytes *bytes = text ? bytes_create(slice_of(text)) : NULL;
    bytes_set(place, bytes);
    bytes_unref(bytes);
}

static enum decision decide(struct schedule_command *command, const struct schedule *now,
                            struct schedule_facts *next)
{
    const struct asking *asking = asking_of(command);
    int64_t wall = loop_wall_ms(asking->world->loop);
    if (asking->id[0] && !now) {
        explain(&command->why, ERR_NOT_FOUND, "none");
        return DECISION_REFUSE;
    }
    command->removes = asking->remove;
    if (!now) {
        take_text(&next->task, "hello");
        take_text(&next->key, asking->key);
        next->is_active = true;
        next->created_at = wall;
    }
    if (asking->cron) {
        take_text(&next->cron, asking->cron);
        take_text(&next->timezone, asking->zone);
    }
    if (asking->cron || asking->activate)
        next->since = wall;
    if (asking->activate || asking->deactivate)
        next->is_active = asking->activate;
    return DECISION_COMMIT;
}

static void on_asked(struct schedule_command *command, enum err status)
{
    struct asking *asking = asking_of(command);
    asking->done = true;
    asking->status = status;
    if (!status)
        snprintf(asking->id, sizeof(asking->id), "%s", command->schedule->id);
}

void ask_in(struct world *world, uint32_t env, struct asking *asking)
{
    asking->world = world;
    schedule_command_begin(world->schedules, engine_environment(world->engine, env),
                           &asking->command, find, decide, on_asked);
}

void wait_for_answer(struct world *world, const struct asking *asking)
{
    for (int i = 0; !asking->done; i++) {
        assert_true(i < 1000);
        loop_turn(world->loop, 1);
    }
}

enum err ask(struct world *world, struct asking *asking)
{
    asking->done = false;
    ask_in(world, WORLD_ENV, asking);
    wait_for_answer(world, asking);
    return asking->status;
}

struct asking make(struct world *world, const char *cron, const char *zone)
{
    struct asking asking = { .cron = cron, .zone = zone };
    assert_int_equal(ask(world, &asking), OK);
    return asking;
}

/* ---- fired runs ---- */

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t time_in(const struct run *run, const char *member)
{
    struct buf text = { 0 };
    int64_t time = 0;
    struct slice json = scan_member(bytes_slice(run->payload), "json");
    assert_true(scan_string(scan_member(json, member), &text));
    assert_int_equal(text_to_time(buf_slice(&text), &time), OK);
    buf_finish(&text);
    return time;
}

struct fired fired_by(struct world *world, const char *id)
{
    struct fired fired = { 0 };
    size_t at = 0;
    for (struct tracked *t; (t = table_next(&world->env->runs, &at));) {
        const struct bytes *schedule = run_rare(&t->run)->schedule;
        if (!schedule || (id && strcmp(schedule->data, id)))
            continue;
        assert_true(fired.count < FIRED_MAX);
        fired.times[fired.count++] = time_in(&t->run, "timestamp");
    }
    qsort(fired.times, fired.count, sizeof(fired.times[0]), compare_times);
    for (size_t i = 1; id && i < fired.count; i++)
        if (fired.times[i] == fired.times[i - 1])
            fail_msg("%s fired twice at %lld", id, (long long)fired.times[i]);
    return fired;
}

void assert_fired(struct world *world, const char *id, const char *expected)
{
    struct fired fired = fired_by(world, id);
    struct buf text = { 0 };
    char time[TIME_TEXT_LEN + 1];
    for (size_t i = 0; i < fired.count; i++) {
        text_from_time(fired.times[i], time);
        buf_print(&text, "%s%.16s", i ? " " : "", time);
    }
    buf_add_char(&text, '\0');
    assert_string_equal(text.ptr, expected);
    buf_finish(&text);
}
