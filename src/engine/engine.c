/* engine.c - commands: decide, park, commit.
 *
 *   command_begin ─► flight of the run (one per run): parked
 *                      │ end of turn, or when the commit before is through
 *                      ▼
 *                    is the run in memory? ── no ──► load it, come back
 *                      │ yes
 *                      ▼
 *                    decide all parked, each on the result of the one before
 *                      │
 *                      ▼
 *                    one commit ─► engine_apply ─► done, in order
 *
 * A flight is the fact that a run has a commit on its way. It is found by environment and
 * run id, so a command that names another tenant's run meets nothing. */
#include "engine/engine.h"

#include <assert.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "engine/leases.h"
#include "engine/schedule_state.h"
#include "engine/state.h"
#include "engine/workers.h"

struct flight {
    char key[ID_MAX + 12]; /* "<env>:<run id>" */
    struct engine *engine;
    struct environment *env;
    struct deferred deferred;
    struct list parked;  // command::link; not decided yet
    struct list decided; // command::link; in the commit
    struct store_commit commit;
    struct store_load load;
    bool busy; /* load or commit on its way */
};

enum err err_of_store(enum store_status status)
{
    switch (status) {
    case STORE_OK: return OK;
    case STORE_MISSING: return ERR_NOT_FOUND;
    case STORE_LOST:
    case STORE_TAKEN: return ERR_CONFLICT;
    case STORE_NO_SPACE: return ERR_STORE_FULL;
    default: return ERR_STORE;
    }
}

/* ---- the engine itself ---- */

static struct slice flight_key(const void *value)
{
    return slice_of(((const struct flight *)value)->key);
}

static bool evict(struct flusher *flusher)
{
    struct engine *engine = container_of(flusher, struct engine, evictor);
    bool more = false;
    for (uint32_t i = 0; i < engine->environment_count; i++)
        if (engine->environments[i])
            more |= environment_evict(engine->environments[i]);
    return more;
}

struct engine *engine_create(struct loop *loop, struct store *store,
                             const struct engine_options *options)
{
    struct engine *engine = mem_new(struct engine);
    engine->loop = loop;
    engine->store = store;
    engine->options = *options;
    table_init(&engine->flights, flight_key);
    waits_init(engine);
    list_init(&engine->triggers);
    list_init(&engine->writes);
    list_init(&engine->resets);
    list_init(&engine->sweeps);
    engine->evictor = (struct flusher){ .fn = evict };
    loop_add_flusher(loop, &engine->evictor);
    engine->due_kind = timers_kind(loop_timers(loop), run_due);
    engine->schedules = schedules_create(engine);
    engine->leases = leases_create();
    engine->wait_kind = timers_kind(loop_timers(loop), dequeue_timed_out);
    return engine;
}

void engine_destroy(struct engine *engine)
{
    if (!engine)
        return;
    assert(engine_idle(engine));
    schedules_destroy(engine->schedules);
    leases_destroy(engine->leases);
    while (!list_empty(&engine->sweeps))
        engine_end_sweep(engine->sweeps.next);
    waits_finish(engine);
    for (uint32_t i = 0; i < engine->environment_count; i++) {
        if (!engine->environments[i])
            continue;
        workers_destroy(engine->environments[i]->workers);
        loop_cancel_deferred(&engine->environments[i]->matching);
        environment_destroy(engine->environments[i]);
    }
    free(engine->environments);
    loop_remove_flusher(&engine->evictor);
    table_finish(&engine->flights);
    free(engine);
}

const struct engine_options *engine_options(const struct engine *engine)
{
    return &engine->options;
}

struct loop *engine_loop(const struct engine *engine)
{
    return engine->loop;
}

struct store *engine_store(const struct engine *engine)
{
    return engine->store;
}

struct environment *engine_add_environment(struct engine *engine, uint32_t number,
                                           const char *id, bool is_dev)
{
    if (number >= engine->environment_count) {
        size_t size = (number + 1) * sizeof(struct environment *);
        engine->environments = mem_resize(engine->environments, size);
        for (uint32_t i = engine->environment_count; i <= number; i++)
            engine->environments[i] = NULL;
        engine->environment_count = number + 1;
    }
    struct environment *env =
        environment_create(engine->loop, engine->store, number, id, is_dev,
                           engine->options.memory, engine->options.concurrency);
    env->engine = engine;
    env->workers = workers_create();
    env->matching.fn = engine_match_now;
    list_init(&env->matching.link);
    return engine->environments[number] = env;
}

struct environment *engine_environment(const struct engine *engine, uint32_t number)
{
    return number < engine->environment_count ? engine->environments[number] : NULL;
}

void engine_drain(struct engine *engine)
{
    engine->draining = true;
}

void engine_stop(struct engine *engine)
{
    engine->draining = engine->stopped = true;
    schedules_stop(engine->schedules);
}

bool engine_draining(const struct engine *engine)
{
    return engine->draining;
}

bool engine_idle(const struct engine *engine)
{
    return engine->flights.count == 0 && !engine->reads && list_empty(&engine->triggers) &&
           list_empty(&engine->writes) && list_empty(&engine->resets) &&
           engine->schedules->under_way == 0;
}

/* ---- a flight ---- */

static void flight_go(struct flight *flight);

static void on_deferred(struct deferred *deferred)
{
    flight_go(container_of(deferred, struct flight, deferred));
}

static void make_key(struct environment *env, struct slice run_id, char key[ID_MAX + 12])
{
    snprintf(key, ID_MAX + 12, "%u:%.*s", env->number, SLICE_ARG(run_id));
}

static struct flight *flight_of(struct engine *engine, struct environment *env,
                                struct slice run_id)
{
    char key[ID_MAX + 12];
    make_key(env, run_id, key);
    struct flight *flight = table_find(&engine->flights, slice_of(key));
    if (flight)
        return flight;

    flight = mem_new(struct flight);
    memcpy(flight->key, key, sizeof(key));
    flight->engine = engine;
    flight->env = env;
    flight->deferred.fn = on_deferred;
    list_init(&flight->deferred.link);
    list_init(&flight->parked);
    list_init(&flight->decided);
    table_insert(&engine->flights, flight);
    loop_defer(engine->loop, &flight->deferred);
    return flight;
}

/* The run may have been put back into its queue while the flight had it. */
static void flight_end(struct flight *flight, const char *run_id)
{
    struct tracked *run = environment_find(flight->env, slice_of(run_id));
    table_remove(&flight->engine->flights, slice_of(flight->key));
    if (run) {
        run->in_flight = false;
        engine_place(flight->engine, run);
    }
    free(flight->commit.changes);
    free(flight);
}

static void finish_command(struct command *command, const struct run *run, enum err status)
{
    command->run = run;
    command->done(command, status);
}

static void fail_all(struct list *commands, const struct run *run, enum err status)
{
    while (!list_empty(commands))
        finish_command(container_of(list_take(commands), struct command, link), run,
                       status);
}

/* Retention removed it from memory while the store was reading it. */
static bool was_purged(const struct environment *env, const struct run *run)
{
    return run_is_final(run) && run->rev <= env->purged && run->updated_at < env->floor;
}

/* A run that only the store had comes back into memory: whatever has a commit on its way
 * is there, and is not evicted before the commit is through. */
static void on_loaded(struct store_load *load, enum store_status status)
{
    struct flight *flight = container_of(load, struct flight, load);
    flight->busy = false;
    bytes_clear(&load->name);
    if (!status && was_purged(flight->env, &load->run)) {
        run_finish(&load->run);
        status = STORE_MISSING;
    }
    if (status) {
        fail_all(&flight->parked, NULL, err_of_store(status));
        flight_end(flight, "");
        return;
    }
    run_share_names(&load->run);
    environment_load(flight->env, &load->run);
    if (flight->env->final_bytes > flight->env->budget)
        loop_wake(flight->engine->loop, &flight->engine->evictor);
    flight_go(flight);
}

static void load_run(struct flight *flight, const char *run_id)
{
    flight->busy = true;
    flight->load = (struct store_load){ .env = flight->env->number,
                                        .name = bytes_create(slice_of(run_id)),
                                        .done = on_loaded };
    flight->engine->store->ops->load(flight->engine->store, &flight->load);
}

/* Decides one command on top of `now`; true when it made the change. */
static bool decide(struct command *command, const struct run *now, struct change *change)
{
    struct run next;
    unsigned marks = 0;
    run_copy(&next, now);
    command->decision = command->decide(command, now, &next, &marks);
    if (command->decision != DECISION_COMMIT) {
        run_finish(&next);
        return false;
    }
    *change = (struct change){ .kind = CHANGE_RUN,
                               .env = command->env->number,
                               .expected = now->version,
                               .marks = marks,
                               .run = next };
    change->run.version = now->version + 1;
    change->run.updated_at = loop_wall_ms(command->engine->loop);
    return true;
}

static void on_committed(struct store_commit *commit, enum store_status status);

/* What was decided without a commit before it is answered at once; behind one it waits. */
static void decide_parked(struct flight *flight, const struct run *base)
{
    const struct run *now = base;
    size_t room = 0;
    unsigned marks = 0; /* a later change of a commit does not know the revs of earlier */
    struct list parked;

    list_init(&parked);
    list_move_all(&parked, &flight->parked);
    list_each (counted, &parked)
        room++;
    free(flight->commit.changes);
    flight->commit = (struct store_commit){ .done = on_committed };
    flight->commit.changes = mem_new_array(struct change, room);
    while (!list_empty(&parked)) {
        struct command *command = container_of(list_take(&parked), struct command, link);
        struct change *change = &flight->commit.changes[flight->commit.change_count];
        if (decide(command, now, change)) {
            marks = change->marks |= marks & ~(unsigned)MARK_KEY;
            now = &change->run;
            flight->commit.change_count++;
        }
        list_append(&flight->decided, &command->link);
    }
}

static enum err outcome(const struct command *command)
{
    return command->decision == DECISION_REFUSE ? command->why.code : OK;
}

static void answer_decided(struct flight *flight, const struct run *run)
{
    struct list decided;
    list_init(&decided);
    list_move_all(&decided, &flight->decided);
    while (!list_empty(&decided)) {
        struct command *command = container_of(list_take(&decided), struct command, link);
        finish_command(command, run, outcome(command));
    }
}

static const char *flight_run_id(const struct flight *flight)
{
    return strchr(flight->key, ':') + 1;
}

static void flight_go(struct flight *flight)
{
    char run_id[ID_MAX + 12];
    snprintf(run_id, sizeof(run_id), "%s", flight_run_id(flight));
    struct tracked *run = environment_find(flight->env, slice_of(run_id));

    if (flight->busy)
        return;
    if (list_empty(&flight->parked)) {
        flight_end(flight, run_id);
        return;
    }
    if (!run) {
        load_run(flight, run_id);
        return;
    }
    decide_parked(flight, &run->run);
    if (!flight->commit.change_count) {
        answer_decided(flight, &run->run);
        loop_defer(flight->engine->loop, &flight->deferred);
        return;
    }
    flight->busy = true;
    run->in_flight = true;
    if (!run->item.running)
        queues_leave(&flight->env->queues, &run->item);
    flight->commit.now_ms = loop_wall_ms(flight->engine->loop);
    flight->engine->store->ops->commit(flight->engine->store, &flight->commit);
}

/* The run as it is now, and each command its own seq; a command that made no change
 * was decided on the result of those before it. */
static void on_committed(struct store_commit *commit, enum store_status status)
{
    struct flight *flight = container_of(commit, struct flight, commit);
    const char *run_id = flight_run_id(flight);
    flight->busy = false;

    if (status) {
        for (size_t i = 0; i < commit->change_count; i++)
            change_finish(&commit->changes[i]);
        struct tracked *run = environment_find(flight->env, slice_of(run_id));
        fail_all(&flight->decided, run ? &run->run : NULL, err_of_store(status));
    } else {
        uint64_t seq = commit->changes[0].seq;
        list_each (link, &flight->decided) {
            struct command *command = container_of(link, struct command, link);
            if (command->decision == DECISION_COMMIT)
                command->seq = seq++;
        }
        engine_apply(flight->engine, commit->changes, commit->change_count);
        struct tracked *run = environment_find(flight->env, slice_of(run_id));
        answer_decided(flight, &run->run);
    }
    loop_defer(flight->engine->loop, &flight->deferred);
}

void command_begin(struct engine *engine, struct environment *env, struct slice run_id,
                   struct command *command, command_decide_fn *decide_fn,
                   command_done_fn *done)
{
    command->engine = engine;
    command->env = env;
    command->decide = decide_fn;
    command->done = done;
    command->run = NULL;
    command->seq = 0;
    command->why = (struct failure){ 0 };
    if (run_id.len >= sizeof(command->run_id))
        run_id = SLICE("-"); /* no run has such an id: not found, like any other */
    snprintf(command->run_id, sizeof(command->run_id), "%.*s", SLICE_ARG(run_id));
    struct flight *flight = flight_of(engine, env, run_id);
    list_append(&flight->parked, &command->link);
}

static void on_alone(struct command *command, enum err status)
{
    (void)status;
    free(command);
}

void command_begin_alone(struct engine *engine, struct environment *env,
                         struct slice run_id, command_decide_fn *decide_fn)
{
    command_begin(engine, env, run_id, mem_new(struct command), decide_fn, on_alone);
}

/* ---- reading ---- */

static void on_read_deferred(struct deferred *deferred)
{
    struct run_read *read = container_of(deferred, struct run_read, deferred);
    struct slice id = bytes_slice(read->load.name);
    struct tracked *run = environment_find(read->env, id);
    if (!run) {
        read->env->store->ops->load(read->env->store, &read->load);
        return;
    }
    read->run = &run->run;
    bytes_clear(&read->load.name);
    read->done(read, OK);
}

static void on_read_loaded(struct store_load *load, enum store_status status)
{
    struct run_read *read = container_of(load, struct run_read, load);
    struct run run = load->run; /* done may free the operation */
    bytes_clear(&load->name);
    read->run = status ? NULL : &run;
    read->done(read, err_of_store(status));
    if (!status)
        run_finish(&run);
}

void run_read_begin(struct environment *env, struct slice run_id, struct run_read *read,
                    void (*done)(struct run_read *read, enum err status))
{
    *read = (struct run_read){ .env = env, .done = done };
    read->load = (struct store_load){ .env = env->number,
                                      .name = bytes_create(run_id),
                                      .done = on_read_loaded };
    read->deferred.fn = on_read_deferred;
    list_init(&read->deferred.link);
    loop_defer(env->loop, &read->deferred);
}

/* ---- documents ---- */

static void on_written(struct store_commit *commit, enum store_status status)
{
    struct document_write *write = container_of(commit, struct document_write, commit);
    if (status == STORE_OK)
        engine_apply(write->engine, commit->changes, commit->change_count);
    for (size_t i = 0; status != STORE_OK && i < commit->change_count; i++)
        change_finish(&commit->changes[i]);
    list_remove(&write->link);
    write->done(write, err_of_store(status));
}

void documents_write_begin(struct engine *engine, struct change *changes, size_t count,
                           struct document_write *write,
                           void (*done)(struct document_write *write, enum err status))
{
    write->engine = engine;
    write->done = done;
    write->commit = (struct store_commit){ .changes = changes,
                                           .change_count = count,
                                           .claims = write->claim,
                                           .claim_count = write->claim ? 1 : 0,
                                           .now_ms = loop_wall_ms(engine->loop),
                                           .done = on_written };
    list_append(&engine->writes, &write->link);
    engine->store->ops->commit(engine->store, &write->commit);
}

void document_write_begin(struct engine *engine, uint32_t env, enum document_kind kind,
                          struct bytes *name, struct bytes *body, uint32_t expected,
                          struct document_write *write,
                          void (*done)(struct document_write *write, enum err status))
{
    *write = (struct document_write){ 0 };
    write->change = (struct change){ .kind = CHANGE_DOCUMENT,
                                     .env = env,
                                     .expected = expected,
                                     .document = { .kind = kind,
                                                   .env = env,
                                                   .name = bytes_ref(name),
                                                   .body = bytes_ref(body) } };
    documents_write_begin(engine, &write->change, 1, write, done);
}
