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
#include "core/state/quota.h"
#include "core/state/rates.h"
#include "core/state/singletons.h"
#include "core/state/state.h"
#include "core/state/trigger_op.h"
#include "runcast/run.h"
#include "runcast/store.h"

struct command;

struct engine *engine_create(struct loop *loop, struct store *store,
                             const struct engine_options *options);

/* Requires engine_idle. Ignores NULL. */
void engine_destroy(struct engine *engine);

/* Makes the environment's finished runs count toward the memory budget of its project,
 * which is four times that of one environment. branches: for a preview branch, the quota
 * that all branches share within it; otherwise NULL. None of its runs may be in memory
 * yet. */
void engine_join_finished(struct environment *env, struct trimmed_quota *project,
                          struct quota *branches);

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

/* Returns true once no run of a retired environment is in memory, and no operation or
 * listener holds it. Poll it until then; each call also evicts runs that have ended. */
bool engine_may_drop_environment(struct engine *engine, const struct environment *env);
/* Removes the environment from memory; its number then finds none. */
void engine_drop_environment(struct engine *engine, struct environment *env);

/* This gateway follows another one: from now on, changes enter memory by environment_put alone,
 * and the engine decides nothing. Nothing is swept, matched, timed or counted. Environments and
 * runs that the leader does not have any more leave memory. */
void engine_follow(struct engine *engine);

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

/* Walks the runs of an environment, some per turn, and acts on their states: cancels
 * children of canceled parents, queues runs whose version is now available. */
void engine_sweep_environment(struct engine *engine, struct environment *env);

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
