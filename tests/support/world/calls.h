/* calls.h - the engine's operations as calls that return.
 *
 * Each begins the operation and runs turns of the world until its done was called. While
 * work is left, the clock stands still; otherwise it advances by a millisecond per turn. If
 * done is never called, the test fails. */
#pragma once

#include "core/engine/attempts.h"
#include "core/engine/run_commands.h"
#include "core/engine/waits.h"
#include "core/fleet/dev_sessions.h"
#include "core/model/waitpoint.h"
#include "tests/support/world/world.h"

/* Options of a trigger; the zero value of a member: not given. */
struct wish {
    const char *task; /* default: "hello" */
    const char *key;  /* idempotency key */
    int64_t key_ms;   /* its lifetime; 0: an hour */
    const char *ttl, *parent, *version, *tags, *metadata, *concurrency_key, *limits;
    const char *external; /* a user's id of a deployment */
    int64_t delay_ms;
    uint16_t max_attempts;
    const char *debounce; /* its key; delayed for 10 s unless debounce_ms says otherwise */
    int64_t debounce_ms, max_delay_ms;
    bool is_trailing;
    const char *payload; /* default: {"n":1} */
};

/* The terms of a worker that takes any run. */
static const struct dequeue_terms any_run = { 0 };

/* A trigger and its result. */
struct triggering {
    struct trigger_op op;
    struct trigger items[8];
    struct document batch;
    enum err status;
    bool done;
};

/* Begins; members of the operation that struct wish does not have can be set before. */
enum err trigger_all(struct world *world, struct triggering *triggering,
                     const struct wish *wishes, size_t count);
void triggering_wait(struct world *world, struct triggering *triggering);
void triggering_finish(struct triggering *triggering);

/* Triggers one run; returns its id. The reason of a failure is in *status (NULL: it must
 * be OK). */
struct triggered {
    char id[ID_MAX];
    bool cached, joined;
};
struct triggered trigger(struct world *world, struct wish wish);
enum err trigger_status(struct world *world, struct wish wish);

/* Registers a worker version that has these tasks ("a,b"), with retry settings for that
 * many attempts. */
void register_worker(struct world *world, const char *version, const char *tasks,
                     uint16_t max_attempts);

/* Adds the version of a deployment that is not DEPLOYED; external: its user's id of it. */
struct worker *add_deployment(struct world *world, const char *version, const char *tasks,
                              const char *external);

/* Like register_worker, but as if a start found the version in the store. */
void load_worker(struct world *world, const char *version, const char *tasks,
                 uint16_t max_attempts);

enum err cancel(struct world *world, const char *id);
enum err reschedule(struct world *world, const char *id, int64_t delay_ms);
enum err tag(struct world *world, const char *id, const char *tags);
enum err annotate(struct world *world, const char *id, const char *operations);
enum err reset_key(struct world *world, const char *task, const char *key);

/* Returns the id of the run that a worker got, or "" if there is none within 5 ms. Valid
 * until the next call. */
const char *dequeue(struct world *world);
enum err start(struct world *world, const char *id);
enum err succeed(struct world *world, const char *id, const char *output);
/* Retries after that many ms; -1: the worker names no retry. */
enum err break_down(struct world *world, const char *id, const char *error,
                    int64_t retry_ms);
enum err block_by(struct world *world, const char *id, const struct wait *waits,
                  size_t count);
enum err wait_for(struct world *world, const char *id, int64_t ms);
enum err wait_for_run(struct world *world, const char *id, const char *other);

/* Writes the next version of the token's document. */
void write_token(struct world *world, const struct waitpoint *token);
enum err interrupt(struct world *world, const char *id);
bool beat(struct world *world, const char *id);

/* Dequeues and starts the run. */
void execute(struct world *world, const char *id);

/* Returns the run in memory, which must equal the stored one. */
const struct run *run_now(struct world *world, const char *id);
#define assert_status(world, id, expected)                                                 \
    assert_string_equal(run_status_name(run_now(world, id)->status, VOCABULARY_A),         \
                        run_status_name(expected, VOCABULARY_A))
