/* engine.h - decides what happens to runs, and does no I/O.
 *
 *   command ──► decide (from the run as it is) ──► store ──► apply ──► done
 *                  ▲                                           │
 *                  └── parked: the run has a commit in flight ◄┘
 *
 * A command is a function that decides from the current state and can be decided again. A
 * run has one commit at a time. Commands that arrive meanwhile are parked in its flight
 * (flight.c). They are then decided in order, each on the result of the previous one, and
 * written as one commit. Store, clocks and timers are passed in, so that a test can replace
 * them all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"
#include "core/live/environment.h"
#include "core/live/run_read.h"
#include "core/model/debounce.h"
#include "core/model/price.h"
#include "runcast/run.h"
#include "runcast/store.h"

struct engine;
struct command;

struct engine_options {
    int64_t lease_ms;         /* from dequeue to start */
    int64_t heartbeat_ms;     /* max silence of an executing run */
    int64_t cancel_ms;        /* from cancel to its confirmation */
    int64_t dev_ttl_ms;       /* for runs in dev without a ttl; 0: none */
    uint32_t queue_size;      /* max unfinished runs per environment, per project four
                                 times as many; 0: no limit */
    uint32_t concurrency;     /* per environment */
    uint32_t dev_concurrency; /* per environment in dev, if that is less; 0: the same */
    size_t memory;            /* budget for finished runs, per environment */
    struct prices prices;     /* of runs outside of dev */
    /* Returns true if no other process can have written by now; called often, with the
     * owner. NULL: no other process can. */
    bool (*is_certain)(void *owner);
    /* Asks the leader for its position while this process follows another one
     * (certainty::ask). NULL: it never does. */
    uint64_t (*ask)(void *owner);
    /* Returns true if the leader that this gateway follows does not have the environment in
     * memory any more. NULL: this gateway never follows (engine_follow). */
    bool (*was_left)(void *owner, uint32_t number);
    void *owner;
};

struct engine *engine_create(struct loop *loop, struct store *store,
                             const struct engine_options *options);

/* Requires engine_idle. Ignores NULL. */
void engine_destroy(struct engine *engine);

const struct engine_options *engine_options(const struct engine *engine);
struct loop *engine_loop(const struct engine *engine);

/* Writes an id, prefix included, that sorts after every id made here and after those of all
 * loaded runs, even if these were made while the clock was ahead. Lists sorted by id are
 * thus in order of creation. */
void engine_make_id(struct engine *engine, const char *prefix, int64_t unix_ms,
                    char out[ID_MAX]);
struct store *engine_store(const struct engine *engine);

/* Certain while memory matches the store, as far as this process knows
 * (core/live/certainty.h). */
struct certainty *engine_certainty(struct engine *engine);

/* Adds the environment to its project's storage quota. From now on its stored bytes count,
 * even while the environment is not in memory. Further calls have no effect. */
void engine_join_stored(struct engine *engine, uint32_t number, struct quota *project);

/* Makes the environment's finished runs count toward the memory budget of its project,
 * which is four times that of one environment. branches: for a preview branch, the quota
 * that all branches share within it; otherwise NULL. None of its runs may be in memory
 * yet. */
void engine_join_finished(struct environment *env, struct trimmed_quota *project,
                          struct quota *branches);

/* Returns ERR_QUOTA if `more` bytes would exceed the project's storage quota. Commits in
 * flight do not count, unless they were reserved (engine_hold_stored). */
enum err engine_check_quota(const struct environment *env, size_t more,
                            struct failure *why);

/* Returns true if both environments belong to one project, so that limits count them
 * together. */
bool engine_share_quota(const struct environment *env, uint32_t other);

/* Returns true if the environment's project has reached its storage quota. Workers then get
 * none of its runs, and executing runs keep only small outputs. Waiting workers get runs as
 * soon as the project is below the quota again. */
bool engine_is_at_quota(const struct environment *env);

/* Call it when quotas have changed: waiting workers get runs of every environment below its
 * quota. */
void engine_check_full_quotas(struct engine *engine);

/* Returns the project's storage quota if it is reached, otherwise NULL. */
const struct quota *engine_full_quota(const struct environment *env);

/* Reserves quota for bytes being written. Release them when the write has succeeded or
 * failed. */
void engine_hold_stored(const struct environment *env, size_t bytes);
void engine_release_stored(struct engine *engine, const struct environment *env,
                           size_t bytes);

/* Returns ERR_QUOTA if a text would grow from before to after bytes and the project is
 * full. */
enum err engine_check_growth(const struct environment *env, size_t before, size_t after,
                             struct failure *why);

struct environment *engine_add_environment(struct engine *engine, uint32_t number,
                                           const char *id, bool is_dev);
/* From now on, counts the environment's events in the figures of this number: its own, or
 * that of the environment that it is a branch of (core/counters/figures.h). Before this
 * call they count in the rest. */
void engine_count_with(struct engine *engine, struct environment *env, uint32_t number);
const struct figures_table *engine_figures(const struct engine *engine);

/* Returns the next environment in memory, by number, and advances *at. Start with *at = 0.
 * Returns NULL after the last. */
struct environment *engine_next_environment(const struct engine *engine, uint32_t *at);

/* Call it when the branch was archived: nothing more starts in the environment, its
 * unfinished runs are canceled, and ended runs leave memory. Call it again at startup,
 * because a crash may have interrupted it. */
void engine_retire_environment(struct engine *engine, struct environment *env);
bool engine_is_retired(const struct environment *env);
/* Returns true once no run of a retired environment is in memory, and no operation or
 * listener holds it. Poll it until then; each call also evicts runs that have ended. */
bool engine_may_drop_environment(struct engine *engine, const struct environment *env);
/* Removes the environment from memory; its number then finds none. */
void engine_drop_environment(struct engine *engine, struct environment *env);
/* Returns NULL if the environment is not in memory. */
struct environment *engine_environment(const struct engine *engine, uint32_t number);

/* This gateway follows another one: from now on, changes enter memory by environment_put alone,
 * and the engine decides nothing. Nothing is swept, matched, timed or counted. Environments and
 * runs that the leader does not have any more leave memory. */
void engine_follow(struct engine *engine);
bool engine_follows(const struct engine *engine);

/* It takes the lead, and decides again. Forgets samples and figures of tasks, which are in the
 * store. Call it before documents are restored; then engine_take_over for each environment, and
 * engine_sweep. */
void engine_stop_following(struct engine *engine);

/* Call it when the leader may have dropped an environment, or memory may have too many finished
 * runs: they leave memory. */
void engine_trim(struct engine *engine, struct environment *env);

/* Puts a run found in the store at start into memory and its queue. The sweep sets its
 * deadline. */
void engine_load_run(struct engine *engine, struct environment *env, struct run *run);

/* The same for the runs that are in memory already, because this gateway has followed another
 * one and takes the lead now. Call it when settings of queues are in memory. Stops when the
 * turn's time is used up, and then returns true: call it again. *at is the rev that it has
 * got to, 0 at the first call. */
bool engine_take_over(struct engine *engine, struct environment *env, uint64_t *at);

/* Ids and creation times of runs that are made from now on come after these, too, which another
 * gateway has made. Ignores "" and 0. */
void engine_note_newest(struct engine *engine, const char *id, int64_t created_ms);

/* Call it when the store fails. Commands parked at an outstanding commit were not sent to
 * the store; they end with ERR_STORE. */
void engine_refuse_waiting(struct engine *engine);

/* Acts on the loaded states. Call it after the last engine_load_run. */
void engine_sweep(struct engine *engine);

/* Sets the settings of a queue. Call it when they were written, and at startup before
 * engine_load_run. If the queue becomes a singleton queue, triggers decide by it from now
 * on. */
void engine_configure_queue(struct environment *env, struct slice queue,
                            const struct queue_settings *settings);

/* Walks the runs of an environment, some per turn, and acts on their states: cancels
 * children of canceled parents, queues runs whose version is now available. */
void engine_sweep_environment(struct engine *engine, struct environment *env);

/* Gives ready runs to waiting workers at the end of this turn. Call it after setting
 * limits. */
void engine_match(struct engine *engine, struct environment *env);

/* Brings the buckets of rates up to date, and offers runs whose buckets have a token. Call it
 * after changing a rate. */
void engine_refill(struct engine *engine, struct environment *env);

/* Brings a bucket back that was stored as a claim of CLAIM_RATE (store_scan::of_claims). Call
 * it when settings of queues and limits are in memory. */
void engine_restore_rate(struct engine *engine, const struct document *claim);

/* Refuses dequeues from now on. Operations in flight are completed, and so are the triggers
 * of requests accepted before. */
void engine_drain(struct engine *engine);
bool engine_draining(const struct engine *engine);

/* Deadlines no longer have an effect; the next start finds them in the store. */
void engine_stop(struct engine *engine);
bool engine_idle(const struct engine *engine);

/* Called, within the turn of the change, for each run in memory that has a new snapshot
 * which its worker did not request and must look at; called again for a repeated cancel.
 * One listener at a time; fn NULL: none. */
typedef void engine_notice_fn(void *owner, const struct tracked *run);
void engine_on_notice(struct engine *engine, engine_notice_fn *fn, void *owner);

/* Called for each change, in order, right before it is applied: of environments in memory, and
 * of the installation (ENV_INSTALLATION). before: the run as it is in memory; NULL: it is not
 * there, or the change is of a document. One listener at a time; fn NULL: none. */
typedef void engine_change_fn(void *owner, const struct run *before,
                              const struct change *change);
void engine_on_change(struct engine *engine, engine_change_fn *fn, void *owner);

/* Called after engine_drop_environment, with its number. One listener at a time; fn NULL:
 * none. */
typedef void engine_drop_fn(void *owner, uint32_t environment);
void engine_on_drop(struct engine *engine, engine_drop_fn *fn, void *owner);

/* Called when the tasks of an environment of developers have changed, or when one may now
 * count as missing (core/fleet/dev_sessions.h). One listener at a time; fn NULL: none. */
typedef void engine_sessions_fn(void *owner, struct environment *env);
void engine_on_sessions(struct engine *engine, engine_sessions_fn *fn, void *owner);

/* ---- commands on one run ---- */

enum decision { DECISION_COMMIT, DECISION_NOTHING, DECISION_REFUSE };

/* next is a copy of now, to be altered; marks says which packets were. On a refusal,
 * command->why gets the message for the client. */
typedef enum decision command_decide_fn(struct command *command, const struct run *now,
                                        struct run *next, unsigned *marks);

/* Called with the outcome once, later, on the loop. command->run is the current run,
 * borrowed until the function returns; NULL if there is none. */
typedef void command_done_fn(struct command *command, enum err status);

/* Embedded by the operation. */
struct command {
    struct engine *engine;
    struct environment *env;
    char run_id[RUN_ID_MAX];
    command_decide_fn *decide;
    command_done_fn *done;

    const struct run *run;
    uint64_t seq;       /* of its change; 0: no change */
    struct failure why; /* of a refusal */
    enum decision decision;
    struct command *also; /* on another run, in the same commit: command_join */
    struct claim *claims; /* taken with its change: command_claim */
    size_t claim_count;
    bool claims_always; /* takes its claims even if nothing changes, unless refused */
    bool is_group;      /* it and those joined to it take effect together or not at all */
    bool is_repeated;   /* another owner has a claim: no change */
    /* Adds the caller's own changes to the commit, such as new runs, and returns how many.
     * Called, possibly several times, when the command and those joined to it were decided
     * and none was refused. May still name the owners of the claims. NULL: none. */
    size_t (*add)(struct command *command, struct change *changes);
    size_t add_max; /* the most that it adds */
    size_t added;
    struct list link; // flight::parked or flight::decided
};

/* If the run is unknown, done gets ERR_NOT_FOUND. */
void command_begin(struct engine *engine, struct environment *env, struct slice run_id,
                   struct command *command, command_decide_fn *decide,
                   command_done_fn *done);

/* Call it right after command_begin: other is decided after command, on another run, and is
 * part of the same commit. It is left out if command is refused or its decide sets also to
 * NULL. When command is done, the result of other is in its decision, why and seq; its done
 * is not called. Join relatives in this order: the child, then the parent, then the
 * root. */
void command_join(struct command *command, struct command *other, struct slice run_id,
                  command_decide_fn *decide);

/* Call it right after command_begin: the commit of the command takes the claims if the
 * command, or one joined to it, changes something. The claims are the caller's until done.
 * If another owner has one of them, none of the commands changes anything, and the command
 * is done with OK and is_repeated; the claims say which are taken, and by whom. Other
 * commands of the commit are decided again without it. */
void command_claim(struct command *command, struct claim *claims, size_t count);

/* ---- triggers ---- */

/* One run to be created. The caller fills in the options of run: task, queue (NULL: the
 * task's), concurrency_key, worker_version (locked), ttl, region, parent, root, depth,
 * tags, packets, machine, priority_ms, max_*, delayed_until, is_test, is_replay,
 * idempotency_key, … The engine adds id, times, status. */
struct trigger {
    struct run run;           /* its texts are the operation's until done */
    int64_t key_expires_at;   /* of run.idempotency_key */
    bool no_default_ttl;      /* ttl 0 was requested */
    char id[ID_MAX];          /* out: the run, new or found */
    struct debounce debounce; /* the mark of its key is in run.rare->waits */
    bool cached;              /* out: an idempotency key led to an older run */
    /* Out: its debounce key, or its key in a singleton queue, led to an older run, or to an
     * earlier item's. */
    bool joined;

    /* The engine's. */
    struct trigger *original; /* earlier item with the same idempotency key; NULL: none */
    struct trigger *leader;   /* earlier item with the same debounce key, which creates the
                               * run; NULL: none */
    char pushes[RUN_ID_MAX];  /* the delayed run that has its debounce key; "": none */
    bool replaces;            /* that run is too old to push: a new one gets the key */
    struct change *change;    /* in the commit, of a run that is created */
    /* The strategy of its queue. If it is set, leader and pushes are about the run that holds its
     * concurrencyKey (singletons.h). */
    enum singleton singleton;
    /* Limits and gates of the run (limits_count_set). If the caller has counted them, the
     * operation discounts them at its end. */
    struct slot_group *counted;
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
    /* Written along with the runs: the batch or schedule that they come from; NULL: none.
     * version: the expected one. */
    struct document *batch;
    char batch_id[ID_MAX];    /* owner of request and batch keys; "": the first run */
    bool packets_as_they_are; /* packets named by payloads need not be stored; if false, a
                                 missing one fails all with ERR_INVALID */
    /* Called before each attempt to commit, when ids are known: completes batch->body. */
    void (*prepare)(struct trigger_op *op);
    void (*done)(struct trigger_op *op, enum err status);

    /* Out. */
    bool repeated;     /* the request key was known: items[0].id or batch_id
                          is that of the first response */
    bool batch_cached; /* the batch key was known: batch_id is the old batch */
    bool token_used;   /* refused: the one-time token was already used */
    uint64_t seq;      /* of the last change */
    struct failure why;

    /* The engine's. */
    struct store_commit commit;
    struct change *changes;
    struct claim *claims;
    size_t *claim_items; /* index of the item of each claim; SIZE_MAX: of all */
    size_t applied;      /* how many changes were applied */
    struct run_read read;
    size_t resolving;  /* index of the claim whose owner is being read */
    bool is_debounced; /* one of its items is */
    bool is_singleton; /* one of its items is or was for a singleton queue */
    struct list link;  // engine::triggers
    /* Another operation makes a run for a key that it needs. */
    struct list wants_key; // debounce_key::line, singleton_key::line, singleton_queue::line
    void (*retry)(struct trigger_op *op); /* called when that has ended */
};

/* Returns ERR_DRAINING, ERR_QUOTA, or ERR_RULE (queue full, or too many sets of limits), with
 * op->why; otherwise done is called. items stay the caller's; trigger_op_finish releases everything that the engine
 * and the items hold. */
enum err trigger_begin(struct engine *engine, struct environment *env,
                       struct trigger_op *op);
void trigger_op_finish(struct trigger_op *op);

struct worker_task;

/* Fills unset options from the registered task: queue, ttl, machine. task NULL: unknown. */
void trigger_default_to_task(struct trigger *item, const struct worker_task *task,
                             bool has_machine);

/* ---- documents ---- */

/* Writes documents (body NULL: deletes it), all or none of them, and nothing else. */
struct document_write {
    struct engine *engine;
    struct claim *claim; /* taken with them; set it before; NULL: none */
    struct store_commit commit;
    struct change change; /* for a write of one document */
    void (*done)(struct document_write *write, enum err status);
    struct list link; // engine::writes
};

/* References name and body. expected: the version that is replaced; 0: none may exist. */
void document_write_begin(struct engine *engine, uint32_t env, enum document_kind kind,
                          struct bytes *name, struct bytes *body, uint32_t expected,
                          struct document_write *write,
                          void (*done)(struct document_write *write, enum err status));

/* The same for several documents. Takes ownership of the references in changes; the array
 * must remain valid until done. */
void documents_write_begin(struct engine *engine, struct change *changes, size_t count,
                           struct document_write *write,
                           void (*done)(struct document_write *write, enum err status));
