/* engine.h - decides what happens to runs, and does no I/O.
 *
 *   command ──► decide (from the run as it is) ──► store ──► apply ──► done
 *                  ▲                                           │
 *                  └── parked: the run has a commit in flight ◄┘
 *
 * A command is a function that decides from the current state and can be decided again.
 * One commit per run at a time: commands that come meanwhile wait and are then decided in
 * order, each on the result of the one before, and go as one commit. Store, clocks and
 * timers come in from outside, so a test can be the whole world. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/live/environment.h"
#include "core/live/run_read.h"
#include "core/model/price.h"
#include "runcast/run.h"
#include "runcast/store.h"

struct engine;
struct command;

struct engine_options {
    int64_t lease_ms;         /* dequeue to start */
    int64_t heartbeat_ms;     /* silence of an executing run */
    int64_t cancel_ms;        /* cancel to confirmation */
    int64_t dev_ttl_ms;       /* of runs in dev that name none; 0: none */
    uint32_t queue_size;      /* unfinished runs per environment, per project four
                                 times as many; 0: no limit */
    uint32_t concurrency;     /* of an environment */
    uint32_t dev_concurrency; /* of one in dev, where that is less; 0: as any other */
    size_t memory;            /* budget for finished runs, per environment */
    struct prices prices;     /* of what is not in dev */
    /* Returns true if no other process can have written by now; called often, with the
     * owner. NULL: no other process can. */
    bool (*is_certain)(void *owner);
    void *owner;
};

struct engine *engine_create(struct loop *loop, struct store *store,
                             const struct engine_options *options);

/* Nothing is in flight any more: engine_idle. */
void engine_destroy(struct engine *engine);

const struct engine_options *engine_options(const struct engine *engine);
struct loop *engine_loop(const struct engine *engine);

/* Writes an id, prefix included, that sorts after every id made here and after those of the runs
 * that were loaded, even if the clock that made those was ahead. So lists sorted by id are in
 * order of creation. */
void engine_make_id(struct engine *engine, const char *prefix, int64_t unix_ms,
                    char out[ID_MAX]);
struct store *engine_store(const struct engine *engine);

/* Certain while memory matches the store, as far as this process knows
 * (core/live/certainty.h). */
struct certainty *engine_certainty(struct engine *engine);

/* The environment of that number joins the room of its project for what is stored: from now
 * on it holds what the store has of it, also while the environment is not in memory. Once
 * is enough; again when the environment has come into memory. */
void engine_join_stored(struct engine *engine, uint32_t number, struct room *project);

/* Finished runs of the environment in memory count in this room of its project, which may have
 * four times the memory of one environment. No run of it is in memory yet. */
void engine_join_finished(struct environment *env, struct trimmed_room *project);

/* ERR_QUOTA: with so many more bytes the project of the environment would store more than
 * it may. What is under way meanwhile is not counted. */
enum err engine_check_quota(const struct environment *env, size_t more,
                            struct failure *why);

/* Returns true if both environments are of one project, so that limits count them together. */
bool engine_share_quota(const struct environment *env, uint32_t other);

/* The project of the environment stores as much as it may, or more: no worker gets a run of
 * it, and of what executes only small outputs are kept. Workers that wait get runs as soon as
 * there is room again. */
bool engine_is_at_quota(const struct environment *env);

/* The limits of rooms have changed: workers that wait get runs wherever there is room now. */
void engine_look_for_room(struct engine *engine);

/* The room of the project for what is stored, when it is full; else NULL. */
const struct room *engine_full_room(const struct environment *env);

/* So many bytes are on their way to the store: they count as stored until they are released,
 * when it has them or will not. */
void engine_hold_stored(const struct environment *env, size_t bytes);
void engine_release_stored(struct engine *engine, const struct environment *env,
                           size_t bytes);

/* ERR_QUOTA: something of `before` bytes shall have more, `after`, and the project is full. */
enum err engine_check_growth(const struct environment *env, size_t before, size_t after,
                             struct failure *why);

struct environment *engine_add_environment(struct engine *engine, uint32_t number,
                                           const char *id, bool is_dev);
/* What happens in the environment is counted from now on with what happens in the one of this
 * number, of which it is a branch, or which it is (core/counters/figures.h). Before, it
 * counts with the rest. */
void engine_count_with(struct engine *engine, struct environment *env, uint32_t number);
const struct figures_table *engine_figures(const struct engine *engine);

/* The next environment in memory, by number, from *at on, which begins at 0; NULL behind the
 * last. */
struct environment *engine_next_environment(const struct engine *engine, uint32_t *at);

/* Its branch was archived: nothing starts in it any more, its unfinished runs are canceled,
 * and what has ended leaves memory. Said again at start: what a crash cut off goes on. */
void engine_retire_environment(struct engine *engine, struct environment *env);
bool engine_is_retired(const struct environment *env);
/* Nobody will look at a retired environment again: no run of it is in memory, nothing is
 * under way, nobody listens or holds it. Asked now and then until it is so: what has ended
 * meanwhile leaves memory before the next time. */
bool engine_may_drop_environment(struct engine *engine, const struct environment *env);
/* The environment leaves memory; its number leads to nothing any more. */
void engine_drop_environment(struct engine *engine, struct environment *env);
/* NULL: no such environment. */
struct environment *engine_environment(const struct engine *engine, uint32_t number);

/* Takes a run found in the store at start into memory and its queue; its deadline counts
 * from the sweep on. */
void engine_load_run(struct engine *engine, struct environment *env, struct run *run);

/* For when the store fails: commands that wait behind a commit that it does not answer were not sent to
 * it, and end with ERR_STORE. */
void engine_refuse_waiting(struct engine *engine);

/* After the last engine_load_run: what must follow from the states found. */
void engine_sweep(struct engine *engine);

/* Walks the runs of an environment, a slice per turn, and does what follows from their
 * states: children of canceled parents end, runs whose version has come are queued. */
void engine_sweep_environment(struct engine *engine, struct environment *env);

/* Gives ready runs to waiting workers, at the end of this turn: after limits were set. */
void engine_match(struct engine *engine, struct environment *env);

/* From now on dequeues are refused; what is in flight ends, and so do the triggers of
 * requests that were let in before. */
void engine_drain(struct engine *engine);
bool engine_draining(const struct engine *engine);

/* Deadlines do nothing any more: what they mean is found again from the store. */
void engine_stop(struct engine *engine);
bool engine_idle(const struct engine *engine);

/* Told, within the turn of the change, of each run in memory that has a new snapshot which
 * its worker did not ask for and must look at; of a cancel that is repeated, again. One at
 * a time; NULL: nobody. */
typedef void engine_notice_fn(void *owner, const struct tracked *run);
void engine_on_notice(struct engine *engine, engine_notice_fn *fn, void *owner);

/* Told when other tasks than before are there in an environment of developers, or may be
 * missed now (core/fleet/dev_sessions.h). One at a time; NULL: nobody. */
typedef void engine_sessions_fn(void *owner, struct environment *env);
void engine_on_sessions(struct engine *engine, engine_sessions_fn *fn, void *owner);

/* ---- commands on one run ---- */

enum decision { DECISION_COMMIT, DECISION_NOTHING, DECISION_REFUSE };

/* next is a copy of now, to be altered; marks says which packets were. For a refusal
 * command->why says what the client reads. */
typedef enum decision command_decide_fn(struct command *command, const struct run *now,
                                        struct run *next, unsigned *marks);

/* The outcome, once, later, on the loop thread. command->run is the run as it is now,
 * borrowed until the function returns; NULL when there is none. */
typedef void command_done_fn(struct command *command, enum err status);

/* Embedded by the operation. */
struct command {
    struct engine *engine;
    struct environment *env;
    char run_id[RUN_ID_MAX];
    command_decide_fn *decide;
    command_done_fn *done;

    const struct run *run;
    uint64_t seq;       /* of its change; 0: nothing was changed */
    struct failure why; /* of a refusal */
    enum decision decision;
    struct command *also; /* on another run, in the same commit: command_join */
    struct claim *claim;  /* taken with its change: command_claim; NULL: none */
    bool is_repeated;     /* another owner has the claim: nothing was changed */
    struct list link;     // flight::parked or flight::decided
};

/* Unknown run: done with ERR_NOT_FOUND. */
void command_begin(struct engine *engine, struct environment *env, struct slice run_id,
                   struct command *command, command_decide_fn *decide,
                   command_done_fn *done);

/* Right after command_begin: other is decided after command, on a run of its own, and is
 * part of the same commit; it is left out when command is refused, or its decide sets also
 * to NULL. How other fared is in its decision, why and seq when command is done; nobody is
 * called. Of relatives the child comes first, then the parent, then the root. */
void command_join(struct command *command, struct command *other, struct slice run_id,
                  command_decide_fn *decide);

/* Right after command_begin: the commit of the command takes the claim, which is the caller's
 * until done, if the command or one that was joined to it changes something. When another owner
 * has the claim, none of them changes anything, and the command is done with OK and
 * is_repeated. Commands that would have gone with it are decided again without it. */
void command_claim(struct command *command, struct claim *claim);

/* ---- triggers ---- */

/* One run to be made. The caller fills in the wishes of run: task, queue (NULL: the
 * task's), concurrency_key, worker_version (locked), ttl, region, parent, root, depth,
 * tags, packets, machine, priority_ms, max_*, delayed_until, is_test, is_replay, …
 * idempotency_key. The engine adds id, times, status. */
struct trigger {
    struct run run;         /* the texts are the operation's until done */
    int64_t key_expires_at; /* of run.idempotency_key */
    bool no_default_ttl;    /* ttl 0 was asked for */
    char id[ID_MAX];        /* out: the run, new or found */
    bool cached;            /* out: an idempotency key led to an older run */
    struct trigger *twin;   /* the engine's: the first item with the same key, if before */
};

struct trigger_op {
    struct engine *engine;
    struct environment *env;
    struct trigger *items;
    size_t count;
    struct bytes *request_key;    /* deduplicates HTTP retries for 24 h; NULL: none */
    struct bytes *one_time_token; /* hash; NULL: none */
    int64_t token_expires_at;
    struct bytes *batch_key; /* idempotency of a batch; NULL: none */
    int64_t batch_key_expires_at;
    /* Written with the runs, the batch or the schedule they come from; NULL: none. version:
     * the one that is expected. */
    struct document *batch;
    char batch_id[ID_MAX];    /* owner of request and batch keys; "": the first run */
    bool packets_as_they_are; /* whether the packets that payloads name are stored is not
                                 looked at; else ERR_INVALID for all */
    /* Called before each attempt to commit, when ids are known: completes batch->body. */
    void (*prepare)(struct trigger_op *op);
    void (*done)(struct trigger_op *op, enum err status);

    /* Out. */
    bool repeated;     /* the request key was known: items[0].id or batch_id
                          is the answer given then */
    bool batch_cached; /* the batch key was known: batch_id is the old batch */
    bool token_used;   /* refused: the one-time token was used before */
    uint64_t seq;      /* of the last change */
    struct failure why;

    /* The engine's. */
    struct store_commit commit;
    struct change *changes;
    struct claim *claims;
    size_t *claim_items; /* index of the item of each claim; SIZE_MAX: of all */
    size_t applied;      /* of the changes */
    struct run_read read;
    size_t resolving; /* claim whose owner is being looked at */
    struct list link; // engine::triggers
};

/* ERR_DRAINING, ERR_RULE (queue full) with op->why; else done comes. items stay the
 * caller's; trigger_op_finish gives back what the engine and the items hold. */
enum err trigger_begin(struct engine *engine, struct environment *env,
                       struct trigger_op *op);
void trigger_op_finish(struct trigger_op *op);

struct worker_task;

/* What is not wished is as the task was registered: queue, ttl, machine. NULL: unknown. */
void trigger_default_to_task(struct trigger *item, const struct worker_task *task,
                             bool has_machine);

/* ---- documents ---- */

/* Writes documents (body NULL: deletes it), all or none, and nothing else. */
struct document_write {
    struct engine *engine;
    struct claim *claim; /* taken with them, set before; NULL: none */
    struct store_commit commit;
    struct change change; /* of a write of one */
    void (*done)(struct document_write *write, enum err status);
    struct list link; // engine::writes
};

/* Takes references of name and body. expected 0: must not exist. */
void document_write_begin(struct engine *engine, uint32_t env, enum document_kind kind,
                          struct bytes *name, struct bytes *body, uint32_t expected,
                          struct document_write *write,
                          void (*done)(struct document_write *write, enum err status));

/* The same of several. Takes over the references in changes; the array is left alone until
 * done. */
void documents_write_begin(struct engine *engine, struct change *changes, size_t count,
                           struct document_write *write,
                           void (*done)(struct document_write *write, enum err status));
