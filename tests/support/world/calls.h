/* calls.h - the engine's operations as calls that return.
 *
 * Each begins the operation and steps the world until its done has come: without delay
 * where the store has none, else a millisecond a turn. A call whose done never comes fails
 * the test. */
#pragma once

#include "core/engine/attempts.h"
#include "core/engine/run_commands.h"
#include "core/engine/waits.h"
#include "core/fleet/dev_sessions.h"
#include "core/model/waitpoint.h"
#include "tests/support/world/world.h"

/* What a caller may want of a run; the zero value of a member: not said. */
struct wish {
    const char *task; /* "hello" */
    const char *key;  /* idempotency key */
    int64_t key_ms;   /* how long it lasts; 0: an hour */
    const char *ttl, *parent, *version, *tags, *metadata, *concurrency_key;
    const char *external; /* a user's id of a deployment */
    int64_t delay_ms;
    uint16_t max_attempts;
};

/* A worker that takes whatever there is. */
static const struct dequeue_terms any_run = { 0 };

/* A trigger and its answer. */
struct triggering {
    struct trigger_op op;
    struct trigger items[8];
    struct document batch;
    enum err status;
    bool done;
};

/* Begins; the operation's members that wishes do not have may be set before. */
enum err trigger_all(struct world *world, struct triggering *triggering,
                     const struct wish *wishes, size_t count);
void triggering_wait(struct world *world, struct triggering *triggering);
void triggering_finish(struct triggering *triggering);

/* One run; its id, or the reason by *status (NULL: it must be OK). */
struct triggered {
    char id[ID_MAX];
    bool cached;
};
struct triggered trigger(struct world *world, struct wish wish);
enum err trigger_status(struct world *world, struct wish wish);

/* A worker version that has these tasks ("a,b"), with retry settings of so many attempts.
 */
void register_worker(struct world *world, const char *version, const char *tasks,
                     uint16_t max_attempts);

/* The version of a deployment that is not DEPLOYED; external: its user's id of it. */
struct worker *add_deployment(struct world *world, const char *version, const char *tasks,
                              const char *external);

/* The same as register_worker, as a start finds it in the store. */
void load_worker(struct world *world, const char *version, const char *tasks,
                 uint16_t max_attempts);

enum err cancel(struct world *world, const char *id);
enum err reschedule(struct world *world, const char *id, int64_t delay_ms);
enum err tag(struct world *world, const char *id, const char *tags);
enum err annotate(struct world *world, const char *id, const char *operations);
enum err reset_key(struct world *world, const char *task, const char *key);

/* The id of the run that a worker got, or "" within 5 ms. Valid until the next call. */
const char *dequeue(struct world *world);
enum err start(struct world *world, const char *id);
enum err succeed(struct world *world, const char *id, const char *output);
/* Retries after so many ms; -1: the worker names no retry. */
enum err break_down(struct world *world, const char *id, const char *error,
                    int64_t retry_ms);
enum err block_by(struct world *world, const char *id, const struct wait *waits,
                  size_t count);
enum err wait_for(struct world *world, const char *id, int64_t ms);
enum err wait_for_run(struct world *world, const char *id, const char *other);

/* The next version of the token's document. */
void write_token(struct world *world, const struct waitpoint *token);
enum err interrupt(struct world *world, const char *id);
bool beat(struct world *world, const char *id);

/* Takes the run to an executing one. */
void execute(struct world *world, const char *id);

/* The run in memory, which must be what the store has. */
const struct run *run_now(struct world *world, const char *id);
#define assert_status(world, id, expected)                                                 \
    assert_string_equal(run_status_name(run_now(world, id)->status, VOCABULARY_A),         \
                        run_status_name(expected, VOCABULARY_A))
