/* world.c - worlds of tests: created, advanced in time, changed by hand. */
#include "tests/support/world/world.h"

#include <assert.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "core/engine/calls.h"
#include "tests/support/world/reader.h"

enum { TURNS_MAX = 100000, PAGE = 100 };

const int64_t world_start_ms = 1800000000000;

/* ---- created, destroyed ---- */

static struct engine_options filled_in(struct engine_options options)
{
    options.lease_ms = options.lease_ms ? options.lease_ms : 60000;
    options.heartbeat_ms = options.heartbeat_ms ? options.heartbeat_ms : 300000;
    options.cancel_ms = options.cancel_ms ? options.cancel_ms : 60000;
    options.concurrency = options.concurrency ? options.concurrency : 100;
    options.memory = options.memory ? options.memory : 64 << 20;
    return options;
}

static void build(struct world *world)
{
    world->engine = engine_create(world->loop, world->store, &world->options);
    world->schedules = schedules_create(world->engine);
    world->env =
        engine_add_environment(world->engine, WORLD_ENV, "env_test", !world->is_prod);
    if (world->singleton)
        engine_configure_queue(world->env, slice_of(WORLD_SINGLETON),
                               &(struct queue_settings){ .singleton = world->singleton });
}

struct world *world_create(const struct world_options *options)
{
    static const struct world_options defaults;
    struct world *world = mem_new(struct world);
    options = options ? options : &defaults;
    world->options = filled_in(options->engine);
    world->is_prod = options->is_prod;
    world->singleton = options->singleton;
    world->loop = loop_create(NULL);
    loop_set_wall(world->loop, world_start_ms);
    world->fake = fake_store_create(world->loop);
    world->store = fake_store_store(world->fake);
    if (options->wrap)
        world->store = options->wrap(world);
    list_init(&world->readers);
    build(world);
    return world;
}

void world_stop(struct world *world)
{
    assert(list_empty(&world->readers));
    engine_stop(world->engine);
    schedules_stop(world->schedules);
    for (int turn = 0; !engine_idle(world->engine) || !schedules_are_idle(world->schedules);
         turn++) {
        assert(turn < TURNS_MAX);
        loop_turn(world->loop, 1);
    }
    schedules_destroy(world->schedules);
    engine_destroy(world->engine);
}

void world_destroy(struct world *world)
{
    while (!list_empty(&world->readers))
        reader_destroy(container_of(world->readers.next, struct reader, link));
    world_stop(world);
    world_settle(world);
    assert(metrics[M_RUNS] == 0);
    assert(metrics[M_RUN_BYTES] == 0);
    assert(metrics[M_SUBSCRIPTIONS] == 0);
    assert(metrics[M_BEHIND] == 0);
    fake_store_destroy(world->fake);
    loop_destroy(world->loop);
    tag_list_forget_shared();
    bytes_forget_shared();
    free(world);
}

/* ---- time ---- */

void world_settle(struct world *world)
{
    for (int turn = 0; loop_turn(world->loop, 0); turn++)
        assert(turn < TURNS_MAX);
}

void world_pass(struct world *world, int64_t ms)
{
    loop_turn(world->loop, ms);
    world_settle(world);
}

/* ---- restart ---- */

struct page {
    struct store_walk walk;
    bool done;
};

static void on_page(struct store_read *read, enum store_status status)
{
    assert(status == STORE_OK);
    container_of(read, struct page, walk.read)->done = true;
}

/* Loads one page into memory; returns its lowest rev, 0 if there is none. */
static uint64_t load_page(struct world *world, struct page *page)
{
    uint64_t lowest = 0;
    page->done = false;
    page->walk.read = (struct store_read){ READ_WALK, WORLD_ENV, on_page };
    page->walk.limit = PAGE;
    page->walk.runs = NULL;
    page->walk.count = 0;
    world->store->ops->read(world->store, &page->walk.read);
    while (!page->done)
        loop_turn(world->loop, 1);
    for (size_t i = 0; i < page->walk.count; i++) {
        struct run *run = &page->walk.runs[i];
        lowest = run->rev;
        run_share_names(run);
        if (world->takes_over)
            environment_load(world->env, run);
        else
            engine_load_run(world->engine, world->env, run);
    }
    free(page->walk.runs);
    return lowest;
}

static void load(struct world *world)
{
    struct environment *env = world->env;
    struct page page = { .walk = { .kind = WALK_UNFINISHED, .up_to = env->applied } };
    do {
        page.walk.after = load_page(world, &page);
    } while (page.walk.more);
    page.walk = (struct store_walk){ .kind = WALK_SETTLED,
                                     .up_to = env->applied,
                                     .newest_first = true };
    do {
        uint64_t lowest = load_page(world, &page);
        env->cold = page.walk.up_to = page.walk.more ? lowest - 1 : 0;
    } while (page.walk.more && env->finals.used < env->budget / 2);
}

void world_start(struct world *world)
{
    uint64_t at = 0;
    build(world);
    load(world);
    while (world->takes_over && engine_take_over(world->engine, world->env, &at))
        loop_turn(world->loop, 0);
    engine_sweep(world->engine);
    schedules_start(world->schedules);
}

void world_restart(struct world *world)
{
    world_stop(world);
    world_start(world);
}

/* ---- changes by hand ---- */

struct edit {
    struct store_commit commit;
    struct change *changes;
    struct world *world;
    bool done;
};

static void on_edited(struct store_commit *commit, enum store_status status)
{
    struct edit *edit = container_of(commit, struct edit, commit);
    assert(status == STORE_OK);
    engine_apply(edit->world->engine, edit->changes, commit->change_count);
    edit->done = true;
}

/* Takes ownership of what the changes hold. */
static void commit(struct world *world, struct change *changes, size_t count)
{
    struct edit edit = {
        .world = world,
        .changes = changes,
        .commit = { .changes = changes, .change_count = count, .done = on_edited },
    };
    edit.commit.now_ms = loop_wall_ms(world->loop);
    world->store->ops->commit(world->store, &edit.commit);
    while (!edit.done)
        loop_turn(world->loop, 1);
}

/* Returns the stored run, from which its next version is made. */
static struct change next_of(struct world *world, const char *id)
{
    const struct run *stored = fake_store_run(world->fake, WORLD_ENV, id);
    struct change change = { .kind = CHANGE_RUN, .env = WORLD_ENV };
    assert(stored);
    change.expected = stored->version;
    run_copy(&change.run, stored);
    change.run.version++;
    change.run.updated_at = loop_wall_ms(world->loop);
    return change;
}

static struct tag_list *tags_of(const char *names)
{
    struct slice all[RUN_TAGS_MAX], rest = slice_of(names);
    size_t count = 0;
    while (count < RUN_TAGS_MAX && slice_split(&rest, ',', &all[count]))
        count++;
    return tag_list_create(all, count);
}

static struct change new_run(struct world *world, const char *id)
{
    struct change change = { .kind = CHANGE_RUN, .env = WORLD_ENV };
    struct run *run = &change.run;
    change.marks = MARK_WHOLE | MARK_PAYLOAD | MARK_METADATA;
    snprintf(run->id, sizeof(run->id), "%s", id);
    run->version = run->snapshot = 1;
    run->status = RUN_QUEUED;
    run->execution = EXECUTION_QUEUED;
    run->created_at = run->updated_at = run->queued_at = loop_wall_ms(world->loop);
    run->task = bytes_create_shared(SLICE("hello"));
    run->queue = bytes_create_shared(SLICE("task/hello"));
    run->payload = bytes_create(SLICE("{\"n\":1}"));
    return change;
}

void create(struct world *world, const char *id, const char *tags)
{
    struct change change = new_run(world, id);
    change.run.tags = tags_of(tags);
    commit(world, &change, 1);
}

void create_of(struct world *world, const char *id, const char *task, const char *batch)
{
    struct change change = new_run(world, id);
    bytes_unref(change.run.task);
    change.run.task = bytes_create_shared(slice_of(task));
    change.run.batch = bytes_create(slice_of(batch));
    commit(world, &change, 1);
}

void create_many(struct world *world, unsigned count, const char *tags)
{
    char id[16];
    for (unsigned i = 1; i <= count; i++) {
        snprintf(id, sizeof(id), "run_%03u", i);
        create(world, id, tags);
    }
}

void change(struct world *world, const char *id, uint32_t version)
{
    struct change change = next_of(world, id);
    assert(change.run.version == version);
    change.run.usage_ms++;
    commit(world, &change, 1);
}

void change_all(struct world *world, const char *ids)
{
    struct change changes[32];
    struct slice rest = slice_of(ids), id;
    size_t count = 0;

    for (; slice_split(&rest, ' ', &id); count++) {
        char name[ID_MAX - 8];
        snprintf(name, sizeof(name), "%.*s", SLICE_ARG(id));
        changes[count] = next_of(world, name);
        for (size_t i = 0; i < count; i++) {
            if (strcmp(changes[i].run.id, name))
                continue;
            changes[count].expected++;
            changes[count].run.version++;
            changes[count].run.usage_ms++;
        }
        changes[count].run.usage_ms++;
    }
    commit(world, changes, count);
}

void finish_run(struct world *world, const char *id, size_t output)
{
    struct change change = next_of(world, id);
    struct run *run = &change.run;
    run->status = RUN_COMPLETED;
    run->execution = EXECUTION_FINISHED;
    run->finished_at = loop_wall_ms(world->loop);
    bytes_unref(run->output);
    run->output = bytes_create_empty(output + 2);
    memset(run->output->data, 'x', output + 2);
    run->output->data[0] = run->output->data[output + 1] = '"';
    change.marks = MARK_OUTPUT;
    commit(world, &change, 1);
}

void add_tag(struct world *world, const char *id, const char *tag)
{
    struct change change = next_of(world, id);
    struct tag_list *old = change.run.tags;
    struct slice all[RUN_TAGS_MAX];
    size_t count = 0;
    for (; old && count < old->count; count++)
        all[count] = bytes_slice(old->names[count]);
    all[count++] = slice_of(tag);
    change.run.tags = tag_list_create(all, count);
    tag_list_unref(old);
    change.marks = MARK_WHOLE;
    commit(world, &change, 1);
}

void set_metadata(struct world *world, const char *id, const char *json)
{
    struct change change = next_of(world, id);
    bytes_unref(change.run.metadata);
    change.run.metadata = bytes_create(slice_of(json));
    change.marks = MARK_METADATA;
    commit(world, &change, 1);
}
