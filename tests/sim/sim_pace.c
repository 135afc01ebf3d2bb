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
    DEQUEUE_MS = 10, /* more than a call of dequeue takes */
    STARTS_MAX = 32, /* of a bucket that are remembered; above 2n - 1 of each rate */
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
enum { GATE = TASKS, QUEUES = TASKS + 1, GATE_PER_KEY = 1, GATE_TOTAL = 2 };

enum { NONE, OWN_KEY, KEY_X, KEY_Y, KEY_Z, KEYS, GATES_MAX = 2 };
static const char *const keys[KEYS] = { NULL, NULL, "x", "y", "z" };

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
static const char *const run_keys[] = { NULL, "x", "y" };
enum { RUN_KEYS = sizeof(run_keys) / sizeof(run_keys[0]) };

/* A queue or limit with rates. */
static const struct {
    bool is_limit;
    const char *name;
    struct rate total, key;
} rated[] = { { false, "task/free", { 5, 5000 }, { 1, 3000 } },
              { true, "both", { 3, 6000 }, { 2, 9000 } } };
enum { RATED = sizeof(rated) / sizeof(rated[0]) };

/* When the newest runs started that took a token of a bucket; monotonic ms. */
struct starts {
    int64_t at[STARTS_MAX];
    unsigned count;
};

struct member {
    char id[ID_MAX];
    unsigned depth, waits; /* waits: how many more it may begin */
    uint64_t keeps;        /* number of its reservation */
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
    struct starts starts[RATED][KEYS + 1];       /* of each key, and of all together */
};

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

static void check_named_limits(const struct sim *sim)
{
    uint32_t executing[LIMITS][KEYS] = { 0 }, sums[LIMITS] = { 0 };
    const struct environment *env = sim->world->env;
    size_t at = 0;
    for (struct tracked *run; (run = table_next(&env->runs, &at));)
        for (size_t i = 0; run_holds_slot(&run->run) && i < LIMITS; i++) {
            executing[i][key_of(&run->run)] += needs(&run->run, i);
            sums[i] += needs(&run->run, i);
        }
    for (size_t i = 0; i < LIMITS; i++) {
        struct slice name = slice_of(limits[i].name);
        if (sums[i] > limits[i].total)
            violated("%u runs hold the limit %s", sums[i], limits[i].name);
        struct queue_figures figures = limits_figures(&env->queues, name);
        if (figures.reserved && figures.running + figures.reserved > limits[i].total)
            violated("%u slots of %s are taken, and %u reserved", figures.running,
                     limits[i].name, figures.reserved);
        if (sums[i] > figures.running)
            violated("%u runs hold slots of %s that are not taken", sums[i],
                     limits[i].name);
        for (size_t key = 0; key < KEYS; key++)
            if (executing[i][key] > limits[i].per_key)
                violated("%u runs hold the limit %s with one key", executing[i][key],
                         limits[i].name);
    }
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

static void check_queue(const struct sim *sim, size_t queue, const char *name,
                        uint32_t per_key, uint32_t total)
{
    const struct environment *env = sim->world->env;
    uint32_t of_key[KEYS] = { 0 }, sum = 0;
    size_t at = 0;
    for (struct tracked *run; (run = table_next(&env->runs, &at));) {
        bool any = false;
        for (size_t key = 0; run_holds_slot(&run->run) && key < KEYS; key++) {
            of_key[key] += holds(&run->run, queue, key);
            any |= holds(&run->run, queue, key);
        }
        sum += any;
    }
    for (size_t key = 0; key < KEYS; key++)
        if (of_key[key] > per_key)
            violated("%u runs hold slots of %s with one key", of_key[key], name);
    if (sum > total)
        violated("%u runs hold slots of %s", sum, name);
    if (sum > queues_figures(&env->queues, slice_of(name)).running)
        violated("%u runs hold slots of %s that are not taken", sum, name);
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
        bool begins = keeps && keeps != member->keeps;
        member->keeps = keeps;
        sim->kept += begins;
        if (!keeps || update_holders(sim, i, begins) || queues->running >= queues->limit)
            continue;
        const struct queue_item *next = queues_next(queues, run->item.audience);
        if (!next || !queues_keeps_for(next))
            violated("%s may not start although slots were kept for it", member->id);
    }
}

static void check_limits(struct sim *sim)
{
    const struct environment *env = sim->world->env;
    uint32_t limit = sim->world->options.concurrency;
    if (sim->checked == env->applied)
        return;
    sim->checked = env->applied;
    uint32_t all = count_slots(sim);
    sim->without_slot += queues_waiting_for(&env->queues, AUDIENCE_RESUMED) > 0;
    if (all > limit)
        violated("%u runs execute, %u may", all, limit);
    if (env->queues.running < all || env->queues.running > limit)
        violated("%u runs execute, %u slots are taken", all, env->queues.running);
    for (size_t i = 0; i < TASKS; i++)
        check_queue(sim, i, tasks[i].queue, tasks[i].limit, UINT32_MAX);
    check_queue(sim, GATE, "gate", GATE_PER_KEY, GATE_TOTAL);
    check_named_limits(sim);
    check_keepers(sim);
}

/* ---- rates ---- */

static void set_rates(struct sim *sim)
{
    struct queues *queues = &sim->world->env->queues;
    for (size_t i = 0; i < RATED; i++) {
        const struct queue_settings settings = { .total_rate = rated[i].total,
                                                 .key_rate = rated[i].key };
        if (!sim->has_rate[i])
            continue;
        if (rated[i].is_limit)
            limits_configure(queues, slice_of(rated[i].name), &settings);
        else
            queues_configure(queues, slice_of(rated[i].name), &settings);
    }
}

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
    sim->world->env->queues.passes_max = sim->passes_max;
    register_worker(sim->world, "20260101.1", "single,double,free", 3);
    for (size_t i = 0; i < TASKS; i++)
        queues_set_limit(&sim->world->env->queues, slice_of(tasks[i].queue),
                         tasks[i].limit);
    queues_set_limit(&sim->world->env->queues, SLICE("gate"), GATE_PER_KEY);
    queues_set_total(&sim->world->env->queues, SLICE("gate"), GATE_TOTAL);
    for (size_t i = 0; i < LIMITS; i++) {
        limits_register(&sim->world->env->queues, slice_of(limits[i].name));
        limits_change(&sim->world->env->queues, slice_of(limits[i].name), limits[i].per_key,
                      limits[i].total);
    }
    set_rates(sim);
    restore_buckets(sim);
}

static const char *add_member(struct sim *sim, const struct member *parent)
{
    struct draws *draws = &sim->draws;
    struct member *member = &sim->family[sim->count++];
    struct triggered made = trigger(
        sim->world, (struct wish){ .task = tasks[draw(draws, TASKS)].task,
                                   .concurrency_key = run_keys[draw(draws, RUN_KEYS)],
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

static void ask(struct sim *sim)
{
    char id[ID_MAX];
    world_settle(sim->world);
    snprintf(id, sizeof(id), "%s", dequeue(sim->world));
    sim->dequeued += id[0] != '\0';
    world_settle(sim->world);
    if (id[0])
        note_starts(sim, run_now(sim->world, id));
    note_held(sim);
    if (sim->world->env->queues.running != count_slots(sim))
        violated("%u slots are taken without a run", sim->world->env->queues.running);
}

static void step(struct sim *sim)
{
    uint32_t choice = draw(&sim->draws, 1000);
    if (choice < 2) {
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
    check_limits(sim);
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
    begin_world(sim);
    for (int i = 0; i < ROOTS; i++)
        add_member(sim, NULL);
    for (int steps = 0; (late = who_has_not_ended(sim)) && steps < STEPS_MAX; steps += 50)
        for (int i = 0; i < 50; i++)
            step(sim);
    if (late)
        violated("%s is still %s: %u execute, %u are queued", late->id,
                 run_status_name(run_now(sim->world, late->id)->status, VOCABULARY_A),
                 sim->world->env->queues.running, sim->world->env->queues.waiting);
    printf("ok %s: %zu runs, %u dequeued, %u waits, %u times without a slot after it, "
           "slots kept %u times, %u canceled, %u restarts, %u times held by a rate\n",
           sim_title, sim->count, sim->dequeued, sim->waited, sim->without_slot, sim->kept,
           sim->canceled, sim->restarts, sim->held);
    fflush(stdout);
    world_destroy(sim->world);
    free(sim);
}

int main(void)
{
    return sim_run_seeds(run_seed, SEEDS);
}
