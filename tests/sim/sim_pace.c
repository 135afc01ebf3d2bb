/* sim_pace.c - simulates runs that trigger others and wait for them, with few slots.
 *
 *   root ── waits for ──► children ── wait for ──► theirs …     in queues of one slot, too,
 *                                                               and under the same key
 *
 * A worker takes any run and works on one run at a time; the seed draws which one. After
 * each step, no more runs execute than the limits of the environment, of the queues, of
 * other queues that are their gates, and with names allow, also when waits have ended; a run
 * that waits does not count. And every run ends: a run that waits never holds slots that the
 * runs it waits for need. A run for which slots are kept may start at the latest when those
 * that had some before have given theirs back.
 *
 * In some seeds, settings change: declared values, as by a registration, overrides of queues and
 * limits and of keys of limits, also with 0, and pauses; many keys are then visited in parts. A
 * lower limit stops no run. But as long as more runs hold it than it allows, none begins or
 * resumes. In the end all has its first value again.
 *
 * In some seeds a queue and a limit have rates. At most 2n - 1 runs start within a period, across
 * restarts and steps of the clock. Only a step forward followed by a restart counts as time that has
 * passed.
 *
 *   SEED=n    the first seed (1)      SEEDS=n    number of seeds
 *
 * A violation prints its seed: SEED=<that> SEEDS=1 repeats it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/run_life.h"
#include "core/queues/queue_rates.h"
#include "tests/support/world/calls.h"
#include "tests/support/world/sim.h"

enum {
    SEEDS = 60,
    ROOTS = 20,
    CHILDREN = 3, /* maximum per wait */
    DEPTH = 3,
    WAITS = 2, /* maximum per run */
    FAMILY_MAX = 400,
    STEPS_MAX = 50000,
    FOR_EVER_MS = 1000000000,
    CLOCK_STEP_MS = 5000,
    DEQUEUE_MS = 10,       /* more than a call of dequeue takes */
    STARTS_MAX = 32,       /* of a bucket that are remembered; above 2n - 1 of each rate */
    CHANGING_STEPS = 3000, /* settings change no more after these */
};

static const struct {
    const char *task, *queue;
    uint32_t limit; /* per concurrency key */
} tasks[] = {
    { "single", "task/single", 1 },
    { "double", "task/double", 2 },
    { "free", "task/free", UINT32_MAX },
};
enum { TASKS = sizeof(tasks) / sizeof(tasks[0]) };

static const struct {
    const char *name;
    uint32_t per_key, total;
} limits[] = { { "narrow", UINT32_MAX, 1 }, { "keyed", 1, UINT32_MAX }, { "both", 1, 2 } };
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

/* The places of queues: those of tasks, then the one that is only a gate. */
enum { GATE = TASKS, QUEUES, PLACES = QUEUES + LIMITS, GATE_PER_KEY = 1, GATE_TOTAL = 2 };

enum { NONE, OWN_KEY, KEY_X, KEY_Y, KEY_Z, KEYS = 9, GATES_MAX = 2 };
static const char *const keys[KEYS] = { NULL, NULL, "x", "y", "z", "a", "b", "c", "d" };

struct gate {
    int queue, key; /* key: NONE: not a gate */
};

static const struct {
    const char *text;
    struct gate gates[GATES_MAX];
} sets[] = {
    { NULL, { { 0 } } },
    { "[\"narrow\"]", { { 0 } } },
    { "[\"keyed\",\"both\"]", { { 0 } } },
    { "[\"both\",\"narrow\"]", { { 0 } } },
    { "[{\"queue\":\"gate\"}]", { { GATE, OWN_KEY } } },
    { "[{\"queue\":\"gate\",\"key\":\"z\"}]", { { GATE, KEY_Z } } },
    { "[{\"queue\":\"gate\",\"pin\":\"z\"}]", { { GATE, KEY_Z } } },
    { "[\"both\",{\"queue\":\"task/single\",\"key\":\"x\"},{\"queue\":\"gate\"}]",
      { { 0, KEY_X }, { GATE, OWN_KEY } } },
    { "[{\"queue\":\"task/double\"},{\"queue\":\"task/single\",\"pin\":\"y\"}]",
      { { 1, OWN_KEY }, { 0, KEY_Y } } },
};
enum { SETS = sizeof(sets) / sizeof(sets[0]) };

/* Keys of runs. */
static const char *const run_keys[] = { NULL, "x", "y", "a", "b", "c", "d" };
enum { RUN_KEYS = sizeof(run_keys) / sizeof(run_keys[0]), FEW_RUN_KEYS = 3 };

/* A queue or limit with rates. */
static const struct {
    bool is_limit;
    const char *name;
    struct rate total, key;
} rated[] = { { false, "task/free", { 5, 5000 }, { 1, 3000 } },
              { true, "both", { 3, 6000 }, { 2, 9000 } } };
enum { RATED = sizeof(rated) / sizeof(rated[0]) };

/* The settings of a queue or limit. */
struct values {
    uint32_t per_key, total;               /* as declared; UINT32_MAX: none */
    uint32_t key_override, total_override; /* UINT32_MAX: none */
    uint32_t key_overrides[KEYS];          /* of a limit; UINT32_MAX: none */
    int64_t until[KEYS];                   /* when those end; Unix ms */
    bool paused;
};

/* When the newest runs started that took a token of a bucket; monotonic ms. */
struct starts {
    int64_t at[STARTS_MAX];
    unsigned count;
};

struct member {
    char id[ID_MAX];
    unsigned depth, waits; /* waits: how many more it may begin */
    uint64_t keeps;        /* number of its reservation */
    bool holds, enters;    /* slots, at the last check; since the one before */
};

struct sim {
    struct draws draws;
    struct world *world;
    struct member family[FAMILY_MAX];
    size_t count;
    /* For each member for which slots are kept: who has held slots ever since. */
    bool holders[FAMILY_MAX][FAMILY_MAX];
    uint32_t passes_max; /* after which slots are kept */
    uint64_t checked;    /* the change after which the limits were checked last */
    unsigned dequeued, waited, without_slot, restarts, canceled, kept, held;
    bool has_rate[RATED], moves_clock, is_ahead; /* is_ahead: set forward since the start */
    bool changes_settings, has_changed; /* has_changed: since the last check of keepers */
    bool visits_slowly;
    struct values values[PLACES];
    unsigned changes, parts; /* parts: steps while keys were yet to be visited */
    struct starts starts[RATED][KEYS + 1]; /* of each key, and of all together */
};

/* ---- settings ---- */

/* Queues first, then limits. */
static const char *place_name(size_t place)
{
    if (place >= QUEUES)
        return limits[place - QUEUES].name;
    return place == GATE ? "gate" : tasks[place].queue;
}

static uint32_t limit_of_key(const struct values *values, size_t key)
{
    uint32_t of_all =
        values->key_override == UINT32_MAX ? values->per_key : values->key_override;
    return values->key_overrides[key] == UINT32_MAX ? of_all : values->key_overrides[key];
}

static uint32_t total_of(const struct values *values)
{
    return values->total_override == UINT32_MAX ? values->total : values->total_override;
}

static struct values declared(uint32_t per_key, uint32_t total)
{
    struct values values = { .per_key = per_key,
                             .total = total,
                             .key_override = UINT32_MAX,
                             .total_override = UINT32_MAX };
    for (size_t key = 0; key < KEYS; key++)
        values.key_overrides[key] = UINT32_MAX;
    return values;
}

static void declare_all(struct sim *sim)
{
    for (size_t i = 0; i < TASKS; i++)
        sim->values[i] = declared(tasks[i].limit, UINT32_MAX);
    sim->values[GATE] = declared(GATE_PER_KEY, GATE_TOTAL);
    for (size_t i = 0; i < LIMITS; i++)
        sim->values[QUEUES + i] = declared(limits[i].per_key, limits[i].total);
}

static struct queue_settings settings_of(const struct sim *sim, size_t place)
{
    const struct values *values = &sim->values[place];
    struct queue_settings settings = {
        .paused = values->paused,
        .overridden = values->key_override != UINT32_MAX,
        .override = values->key_override,
        .total_overridden = values->total_override != UINT32_MAX,
        .total_override = values->total_override,
    };
    for (size_t i = 0; i < RATED; i++)
        if (sim->has_rate[i] && rated[i].is_limit == (place >= QUEUES) &&
            !strcmp(rated[i].name, place_name(place))) {
            settings.total_rate = rated[i].total;
            settings.key_rate = rated[i].key;
        }
    return settings;
}

/* As a registration does. */
static void declare_value(const struct sim *sim, size_t place)
{
    struct queues *queues = &sim->world->env->queues;
    const struct values *values = &sim->values[place];
    struct slice name = slice_of(place_name(place));
    if (place >= QUEUES) {
        limits_change(queues, name, values->per_key, values->total);
        return;
    }
    queues_change_limit(queues, name, values->per_key);
    queues_set_total(queues, name, values->total);
}

/* As users do. */
static void configure(const struct sim *sim, size_t place)
{
    struct queues *queues = &sim->world->env->queues;
    struct queue_settings settings = settings_of(sim, place);
    struct slice name = slice_of(place_name(place));
    if (place < QUEUES)
        queues_configure(queues, name, &settings);
    else
        limits_configure(queues, name, &settings);
}

static void override_key(const struct sim *sim, size_t place, size_t key)
{
    const struct values *values = &sim->values[place];
    const struct limit_override override = {
        .key = keys[key] ? slice_of(keys[key]) : SLICE(""),
        .per_key = values->key_overrides[key],
        .until = values->until[key],
    };
    limits_override_key(&sim->world->env->queues, slice_of(place_name(place)), &override);
}

static uint32_t draw_limit(struct sim *sim)
{
    static const uint32_t limits_drawn[] = { 0, 0, 0, 1, 2, 3, UINT32_MAX };
    return limits_drawn[draw(&sim->draws, 7)];
}

static void change_value(struct sim *sim, size_t place)
{
    struct values *values = &sim->values[place];
    switch (draw(&sim->draws, 5)) {
    case 0:
    case 1:
        values->per_key = draw_limit(sim);
        values->total = chance(&sim->draws, 500) ? draw_limit(sim) : values->total;
        declare_value(sim, place);
        return;
    case 2: values->key_override = draw_limit(sim); break;
    case 3: values->total_override = draw_limit(sim); break;
    default: values->paused = chance(&sim->draws, 300);
    }
    configure(sim, place);
}

/* NONE stands for runs without a key. */
static void change_key(struct sim *sim, size_t place)
{
    struct values *values = &sim->values[place];
    size_t key = draw(&sim->draws, KEYS);
    if (key == OWN_KEY)
        return;
    values->key_overrides[key] = draw_limit(sim);
    values->until[key] =
        loop_wall_ms(sim->world->loop) + 1 + draw(&sim->draws, 4 * CLOCK_STEP_MS);
    override_key(sim, place, key);
}

static void end_overrides(struct sim *sim)
{
    int64_t now = loop_wall_ms(sim->world->loop);
    for (size_t i = QUEUES; i < PLACES; i++)
        for (size_t key = 0; key < KEYS; key++)
            if (sim->values[i].until[key] <= now)
                sim->values[i].key_overrides[key] = UINT32_MAX;
    limits_end_overrides(&sim->world->env->queues, now);
}

static void change_settings(struct sim *sim)
{
    size_t place = draw(&sim->draws, PLACES);
    sim->changes++;
    sim->has_changed = true;
    end_overrides(sim);
    if (place >= QUEUES && chance(&sim->draws, 500))
        change_key(sim, place);
    else
        change_value(sim, place);
}

static void apply_all(struct sim *sim)
{
    for (size_t i = 0; i < PLACES; i++) {
        declare_value(sim, i);
        configure(sim, i);
        for (size_t key = 0; key < KEYS; key++)
            if (i >= QUEUES && key != OWN_KEY)
                override_key(sim, i, key);
    }
}

/* All runs can end now. */
static void end_changes(struct sim *sim)
{
    sim->changes_settings = false;
    sim->has_changed = true;
    declare_all(sim);
    apply_all(sim);
    engine_match(sim->world->engine, sim->world->env);
}

/* ---- executing runs ---- */

/* Returns the place of the run's queue in tasks. */
static size_t task_of(const struct run *run)
{
    size_t i = 0;
    while (i < TASKS && !slice_is(bytes_slice(run->queue), tasks[i].queue))
        i++;
    return i;
}

/* Returns a place in keys; NONE: no key. */
static size_t key_of(const struct run *run)
{
    struct slice key = bytes_slice(run_rare(run)->concurrency_key);
    size_t i = KEY_X;
    while (key.ptr && i < KEYS && !slice_is(key, keys[i]))
        i++;
    return key.ptr ? i : NONE;
}

static size_t set_of(const struct run *run)
{
    const struct bytes *text = run_rare(run)->limits;
    size_t i = text ? 1 : 0;
    while (text && i < SETS - 1 && strcmp(text->data, sets[i].text))
        i++;
    return i;
}

static uint32_t count_slots(const struct sim *sim)
{
    uint32_t count = 0;
    size_t at = 0;
    for (struct tracked *run; (run = table_next(&sim->world->env->runs, &at));)
        count += run_holds_slot(&run->run);
    return count;
}

static bool needs(const struct run *run, size_t limit)
{
    const struct bytes *text = run_rare(run)->limits;
    return text && strstr(text->data, limits[limit].name);
}

/* A run that resumes has its slots before its commit. */
static void note_holders(struct sim *sim)
{
    for (size_t i = 0; i < sim->count; i++) {
        struct member *member = &sim->family[i];
        const struct tracked *run = environment_find(sim->world->env, slice_of(member->id));
        bool holds = run && run->item.running;
        if (run && run_holds_slot(&run->run) && !holds)
            violated("%s executes and has no slots", member->id);
        member->enters = holds && !member->holds;
        member->holds = holds;
    }
}

/* Runs that have slots of one key, or of all together. */
struct holders {
    uint32_t count;
    bool any_enters; /* one of them has them since the last check */
};

static void add_holder(struct holders *holders, const struct member *member)
{
    holders->count++;
    holders->any_enters |= member->enters;
}

/* A limit that was lowered stops no run. */
static bool exceeds(const struct holders *holders, uint32_t limit)
{
    return holders->count > limit && holders->any_enters;
}

static const struct run *holder(const struct sim *sim, size_t member)
{
    const struct tracked *run =
        environment_find(sim->world->env, slice_of(sim->family[member].id));
    return sim->family[member].holds ? &run->run : NULL;
}

static void check_limit(const struct sim *sim, size_t limit)
{
    const struct values *values = &sim->values[QUEUES + limit];
    const char *name = limits[limit].name;
    struct holders of_key[KEYS] = { 0 }, all = { 0 };
    for (size_t i = 0; i < sim->count; i++) {
        const struct run *run = holder(sim, i);
        if (!run || !needs(run, limit))
            continue;
        add_holder(&of_key[key_of(run)], &sim->family[i]);
        add_holder(&all, &sim->family[i]);
    }
    struct queue_figures figures = limits_figures(&sim->world->env->queues, slice_of(name));
    if (exceeds(&all, total_of(values)))
        violated("%u runs hold the limit %s", all.count, name);
    if (figures.reserved && figures.running + figures.reserved > total_of(values))
        violated("%u slots of %s are taken, and %u reserved", figures.running, name,
                 figures.reserved);
    for (size_t key = 0; key < KEYS; key++)
        if (exceeds(&of_key[key], limit_of_key(values, key)))
            violated("%u runs hold the limit %s with one key", of_key[key].count, name);
}

/* Returns true if the run holds a slot of this queue for this key. */
static bool holds(const struct run *run, size_t queue, size_t key)
{
    bool found = task_of(run) == queue && key_of(run) == key;
    for (size_t i = 0; i < GATES_MAX; i++) {
        struct gate gate = sets[set_of(run)].gates[i];
        size_t of_gate = gate.key == OWN_KEY ? key_of(run) : (size_t)gate.key;
        found |= gate.key != NONE && (size_t)gate.queue == queue && of_gate == key;
    }
    return found;
}

static void check_queue(const struct sim *sim, size_t queue)
{
    const struct values *values = &sim->values[queue];
    struct holders of_key[KEYS] = { 0 }, all = { 0 };
    for (size_t i = 0; i < sim->count; i++) {
        const struct run *run = holder(sim, i);
        bool any = false;
        for (size_t key = 0; run && key < KEYS; key++) {
            if (!holds(run, queue, key))
                continue;
            add_holder(&of_key[key], &sim->family[i]);
            any = true;
        }
        if (any)
            add_holder(&all, &sim->family[i]);
    }
    for (size_t key = 0; key < KEYS; key++)
        if (exceeds(&of_key[key], limit_of_key(values, key)))
            violated("%u runs hold slots of %s with one key", of_key[key].count,
                     place_name(queue));
    if (exceeds(&all, total_of(values)))
        violated("%u runs hold slots of %s", all.count, place_name(queue));
}

/* Updates who holds slots since some are kept for the member. Returns true if any does. */
static bool update_holders(struct sim *sim, size_t of, bool begins)
{
    bool any = false;
    for (size_t i = 0; i < sim->count; i++) {
        const struct tracked *run =
            environment_find(sim->world->env, slice_of(sim->family[i].id));
        bool *holds = &sim->holders[of][i];
        *holds = (begins || *holds) && run && run->item.running;
        any |= *holds;
    }
    return any;
}

static void check_keepers(struct sim *sim)
{
    struct queues *queues = &sim->world->env->queues;
    for (size_t i = 0; i < sim->count; i++) {
        struct member *member = &sim->family[i];
        const struct tracked *run = environment_find(sim->world->env, slice_of(member->id));
        uint64_t keeps = run ? queues_keeps_for(&run->item) : 0;
        bool is_new = keeps && keeps != member->keeps, begins = is_new || sim->has_changed;
        member->keeps = keeps;
        sim->kept += is_new;
        if (!keeps || queues_are_stale(queues) || update_holders(sim, i, begins) ||
            queues->running >= queues->limit)
            continue;
        const struct queue_item *next = queues_next(queues, run->item.audience);
        if (!next || !queues_keeps_for(next))
            violated("%s may not start although slots were kept for it", member->id);
    }
    sim->has_changed = false;
}

/* Otherwise checks only if a run has changed. */
static void check_limits(struct sim *sim, bool always)
{
    const struct environment *env = sim->world->env;
    uint32_t limit = sim->world->options.concurrency;
    if (!always && sim->checked == env->applied)
        return;
    sim->checked = env->applied;
    note_holders(sim);
    uint32_t all = count_slots(sim);
    sim->without_slot += queues_waiting_for(&env->queues, AUDIENCE_RESUMED) > 0;
    if (all > limit)
        violated("%u runs execute, %u may", all, limit);
    if (env->queues.running < all || env->queues.running > limit)
        violated("%u runs execute, %u slots are taken", all, env->queues.running);
    for (size_t i = 0; i < QUEUES; i++)
        check_queue(sim, i);
    for (size_t i = 0; i < LIMITS; i++)
        check_limit(sim, i);
    check_keepers(sim);
}

/* ---- rates ---- */

struct restoring {
    struct store_scan scan;
    bool done;
};

static void on_scanned(struct store_read *read, enum store_status status)
{
    struct restoring *restoring = container_of(read, struct restoring, scan.read);
    restoring->done = status == STORE_OK;
}

static void restore_buckets(struct sim *sim)
{
    struct world *world = sim->world;
    struct restoring restoring = { .scan = { .read = { READ_SCAN, WORLD_ENV, on_scanned },
                                             .of_claims = true,
                                             .claim_kind = CLAIM_RATE } };
    world->store->ops->read(world->store, &restoring.scan.read);
    world_settle(world);
    if (!restoring.done)
        violated("the claims cannot be read");
    for (size_t i = 0; i < restoring.scan.count; i++)
        engine_restore_rate(world->engine, &restoring.scan.documents[i]);
    store_read_finish(&restoring.scan.read);
    if (sim->is_ahead)
        memset(sim->starts, 0, sizeof(sim->starts));
    sim->is_ahead = false;
}

static void note_start(struct sim *sim, size_t place, size_t key, struct rate rate)
{
    struct starts *starts = &sim->starts[place][key];
    int64_t now = loop_now_ms(sim->world->loop), since = now - (int64_t)rate.period_ms;
    unsigned within = 1;
    for (unsigned i = 1; i <= starts->count && i <= STARTS_MAX; i++)
        within += starts->at[(starts->count - i) % STARTS_MAX] > since + DEQUEUE_MS;
    if (within > 2 * rate.starts - 1)
        violated("%u runs of %s start within %u ms", within, rated[place].name,
                 rate.period_ms);
    starts->at[starts->count++ % STARTS_MAX] = now;
}

static void note_starts(struct sim *sim, const struct run *run)
{
    for (size_t i = 0; i < RATED; i++) {
        const struct bytes *all = run_rare(run)->limits;
        bool is_needed = rated[i].is_limit
                             ? all && strstr(all->data, rated[i].name)
                             : slice_is(bytes_slice(run->queue), rated[i].name);
        if (!sim->has_rate[i] || !is_needed)
            continue;
        note_start(sim, i, key_of(run), rated[i].key);
        note_start(sim, i, KEYS, rated[i].total);
    }
}

static void move_clock(struct sim *sim)
{
    int64_t by = (int64_t)draw(&sim->draws, 2 * CLOCK_STEP_MS) - CLOCK_STEP_MS;
    loop_set_wall(sim->world->loop, loop_wall_ms(sim->world->loop) + by);
    sim->is_ahead |= by > 0;
}

/* ---- steps of the worker ---- */

static void begin_world(struct sim *sim)
{
    struct queues *queues = &sim->world->env->queues;
    queues->passes_max = sim->passes_max;
    queues->visits_max = sim->visits_slowly ? 1 : VISITS_MAX;
    loop_set_budget(sim->world->loop, sim->visits_slowly ? 0 : 1000);
    register_worker(sim->world, "20260101.1", "single,double,free", 3);
    for (size_t i = 0; i < QUEUES; i++)
        queues_register(queues, slice_of(place_name(i)));
    for (size_t i = 0; i < LIMITS; i++)
        limits_register(queues, slice_of(limits[i].name));
    end_overrides(sim);
    apply_all(sim);
    restore_buckets(sim);
}

static const char *add_member(struct sim *sim, const struct member *parent)
{
    struct draws *draws = &sim->draws;
    struct member *member = &sim->family[sim->count++];
    struct triggered made =
        trigger(sim->world,
                (struct wish){
                    .task = tasks[draw(draws, TASKS)].task,
                    .concurrency_key =
                        run_keys[draw(draws, sim->visits_slowly ? RUN_KEYS : FEW_RUN_KEYS)],
                    .limits = sets[draw(draws, SETS)].text,
                    .parent = parent ? parent->id : NULL });
    snprintf(member->id, ID_MAX, "%s", made.id);
    member->depth = parent ? parent->depth + 1 : 0;
    member->waits = draw(draws, WAITS + 1);
    return member->id;
}

static void begin_wait(struct sim *sim, struct member *member)
{
    struct wait waits[CHILDREN];
    size_t count = 1 + draw(&sim->draws, CHILDREN);
    member->waits--;
    sim->waited++;
    if (member->depth == DEPTH || sim->count + count > FAMILY_MAX) {
        wait_for(sim->world, member->id, 1 + draw(&sim->draws, 500));
        return;
    }
    for (size_t i = 0; i < count; i++)
        waits[i] =
            (struct wait){ .type = WAIT_RUN, .id = slice_of(add_member(sim, member)) };
    block_by(sim->world, member->id, waits, count);
}

static void go_on(struct sim *sim, struct member *member)
{
    struct world *world = sim->world;
    if (member->waits && chance(&sim->draws, 700))
        begin_wait(sim, member);
    else if (chance(&sim->draws, 100))
        break_down(world, member->id, "{\"type\":\"STRING_ERROR\",\"raw\":\"no\"}",
                   draw(&sim->draws, 2) ? 100 : 40000);
    else
        succeed(world, member->id, "1");
}

static void work_on(struct sim *sim, struct member *member)
{
    const struct tracked *tracked = environment_find(sim->world->env, slice_of(member->id));
    switch (tracked ? tracked->run.execution : EXECUTION_FINISHED) {
    case EXECUTION_PENDING_EXECUTING: start(sim->world, member->id); break;
    case EXECUTION_EXECUTING:
        if (tracked->run.status == RUN_RETRYING)
            start(sim->world, member->id);
        else
            go_on(sim, member);
        break;
    case EXECUTION_PENDING_CANCEL: succeed(sim->world, member->id, "1"); break;
    case EXECUTION_WITH_WAITPOINTS:
        if (!chance(&sim->draws, 5))
            break;
        cancel(sim->world, member->id);
        sim->canceled++;
        break;
    default: break;
    }
}

static void note_held(struct sim *sim)
{
    const struct queues *queues = &sim->world->env->queues;
    const struct queue_item *oldest = queues_oldest(queues);
    struct rate_figures bucket;
    int64_t opens_ms;
    if (!oldest || !queues_lacks_token(queues, oldest, &bucket, &opens_ms))
        return;
    sim->held++;
    if (opens_ms - loop_now_ms(sim->world->loop) > (int64_t)bucket.rate.period_ms)
        violated("a bucket of %s is without a token for longer than a period",
                 bucket.place.is_limit ? "a limit" : "a queue");
}

/* A paused limit starts no run. */
static void check_pauses(const struct sim *sim, const struct run *run)
{
    for (size_t i = 0; i < LIMITS; i++)
        if (needs(run, i) && sim->values[QUEUES + i].paused)
            violated("%s starts although %s is paused", run->id, limits[i].name);
    for (size_t i = 0; i < QUEUES; i++)
        for (size_t key = 0; key < KEYS; key++)
            if (holds(run, i, key) && sim->values[i].paused)
                violated("%s starts although %s is paused", run->id, place_name(i));
}

static void ask(struct sim *sim)
{
    char id[ID_MAX];
    if (!sim->visits_slowly || chance(&sim->draws, 300))
        world_settle(sim->world);
    snprintf(id, sizeof(id), "%s", dequeue(sim->world));
    sim->dequeued += id[0] != '\0';
    world_settle(sim->world);
    if (id[0]) {
        check_pauses(sim, run_now(sim->world, id));
        note_starts(sim, run_now(sim->world, id));
    }
    note_held(sim);
    if (sim->world->env->queues.running != count_slots(sim))
        violated("%u slots are taken without a run", sim->world->env->queues.running);
}

static void step(struct sim *sim)
{
    uint32_t choice = draw(&sim->draws, 1000);
    sim->parts += queues_are_stale(&sim->world->env->queues);
    if (sim->changes_settings && chance(&sim->draws, 40)) {
        check_limits(sim, true);
        change_settings(sim);
        engine_match(sim->world->engine, sim->world->env);
    } else if (choice < 2) {
        sim->world->takes_over = !sim->world->takes_over;
        world_restart(sim->world);
        begin_world(sim);
        for (size_t i = 0; i < sim->count; i++)
            sim->family[i].keeps = 0;
        sim->restarts++;
    } else if (choice < 300) {
        ask(sim);
    } else if (choice < 350) {
        world_pass(sim->world, draw(&sim->draws, 1000));
        if (sim->moves_clock && chance(&sim->draws, 50))
            move_clock(sim);
    } else {
        work_on(sim, &sim->family[draw(&sim->draws, (uint32_t)sim->count)]);
    }
    check_limits(sim, false);
}

/* ---- one seed ---- */

static const struct member *who_has_not_ended(const struct sim *sim)
{
    for (size_t i = 0; i < sim->count; i++)
        if (!run_is_settled(run_now(sim->world, sim->family[i].id)))
            return &sim->family[i];
    return NULL;
}

static void run_seed(uint64_t seed)
{
    struct sim *sim = calloc(1, sizeof(*sim));
    const struct member *late = NULL;
    sim->draws.state = seed;
    sim->world = world_create(
        &(struct world_options){ .engine = { .lease_ms = FOR_EVER_MS,
                                             .heartbeat_ms = FOR_EVER_MS,
                                             .cancel_ms = FOR_EVER_MS,
                                             .concurrency = 1 + draw(&sim->draws, 4) } });
    for (size_t i = 0; i < RATED; i++)
        sim->has_rate[i] = chance(&sim->draws, 400);
    sim->moves_clock = chance(&sim->draws, 500);
    sim->passes_max = 1 + draw(&sim->draws, 4);
    sim->changes_settings = chance(&sim->draws, 600);
    sim->visits_slowly = chance(&sim->draws, 600);
    declare_all(sim);
    begin_world(sim);
    for (int i = 0; i < ROOTS; i++)
        add_member(sim, NULL);
    for (int steps = 0; (late = who_has_not_ended(sim)) && steps < STEPS_MAX; steps += 50) {
        if (steps == CHANGING_STEPS)
            end_changes(sim);
        for (int i = 0; i < 50; i++)
            step(sim);
    }
    if (late)
        violated("%s is still %s: %u execute, %u are queued", late->id,
                 run_status_name(run_now(sim->world, late->id)->status, VOCABULARY_A),
                 sim->world->env->queues.running, sim->world->env->queues.waiting);
    printf("ok %s: %zu runs, %u dequeued, %u waits, %u times without a slot after it, "
           "slots kept %u times, %u canceled, %u restarts, %u times held by a rate, "
           "%u changes of settings, %u steps while keys were to be visited\n",
           sim_title, sim->count, sim->dequeued, sim->waited, sim->without_slot, sim->kept,
           sim->canceled, sim->restarts, sim->held, sim->changes, sim->parts);
    fflush(stdout);
    world_destroy(sim->world);
    free(sim);
}

int main(void)
{
    return sim_run_seeds(run_seed, SEEDS);
}
