/* schedules.h - schedules: runs triggered by the clock.
 *
 *   document ─► struct schedule ─► heap by wall clock ─► due ─► one commit: its run,
 *                    ▲                                          its document with fired_at
 *                    └──────────────────────────────────────────────────┘
 *
 * A nominal time is a time at which the expression makes a run due. The nominal times that
 * fire only increase: fired_at is in the document, whose next version is in the same commit
 * as the run. So no nominal time fires twice, whatever restarts and clock changes happen.
 * If several times were missed, the latest fires, once; the others are skipped.
 *
 * A schedule has one commit at a time. Commands that arrive meanwhile wait, and are decided
 * on its result. */
#pragma once

#include "api/schedules/cron.h"
#include "core/engine/engine.h"

struct schedules;

/* The engine must outlive the schedules. */
struct schedules *schedules_create(struct engine *engine);
/* Requires schedules_are_idle and no commit in flight. Ignores NULL. */
void schedules_destroy(struct schedules *all);

/* Start and stop firing. Schedules that the engine rejects while it drains fire at the
 * next start. */
void schedules_start(struct schedules *all);
void schedules_stop(struct schedules *all);

/* Returns true if no command is in progress. */
bool schedules_are_idle(const struct schedules *all);

/* The stored document of a schedule. */
struct schedule_facts {
    struct bytes *task, *cron, *timezone;
    struct bytes *window, *external_id, *key; /* NULL: none */
    bool is_declarative; /* declared in the code: comes from a worker's registration */
    bool is_active;
    int64_t created_at;
    int64_t since;    /* only later times fire: when it was created, activated, or got new
                       * times */
    int64_t fired_at; /* the newest nominal time that fired; 0: none */
};

void schedule_facts_copy(struct schedule_facts *copy, const struct schedule_facts *facts);
void schedule_facts_finish(struct schedule_facts *facts);
/* Sets expression and time zone. If either changed, times count from now on, and a fired_at
 * in the future, left from when the clock was ahead, is reset so that it does not block
 * them. */
void schedule_facts_set_times(struct schedule_facts *facts, struct bytes *cron,
                              struct bytes *timezone, int64_t now_ms);

struct schedule {
    struct schedules *all;
    char id[ID_MAX]; /* "sched_…" */
    struct environment *env;
    uint32_t version; /* of its document; 0: not stored yet */
    struct schedule_facts facts;

    struct cron cron;
    const struct zone *zone;  /* NULL: zone or expression is no longer valid; never due */
    int64_t next_after, next; /* cached: next is the first time after next_after */
    struct bytes *index;      /* schedules::by_index; NULL: not in it */
    struct timer due;         /* on the wall clock */
    bool busy;                /* a commit of it is in flight */
    bool failing;             /* the last attempt to fire failed and was logged */
    struct list parked;       // schedule_command::link
    struct list link;         // env_schedules::all
};

/* ---- reading; also finds schedules without a stored document (version 0) ---- */

struct schedule *schedules_by_id(struct schedules *all, const struct environment *env,
                                 struct slice id);
/* Finds a schedule by its deduplication key. */
struct schedule *schedules_by_key(struct schedules *all, const struct environment *env,
                                  struct slice key);
/* Finds the declared schedule of a task. */
struct schedule *schedules_of_task(struct schedules *all, const struct environment *env,
                                   struct slice task);

/* Iterates from the newest; start with NULL. Returns NULL at the end. */
struct schedule *schedules_next(struct schedules *all, const struct environment *env,
                                const struct schedule *previous);
size_t schedules_count(struct schedules *all, const struct environment *env);
/* Counts the schedules of the project's preview branches. */
size_t schedules_count_branches(struct schedules *all, const struct environment *env);
/* Counts the schedules of all environments of the project. */
size_t schedules_count_project(struct schedules *all, const struct environment *env);

/* Returns the next nominal time after after_ms that has not fired; 0: none. */
int64_t schedule_next(struct schedule *schedule, int64_t after_ms);

/* Returns a zone, valid until schedules_destroy; NULL if the system does not have it. */
const struct zone *schedules_zone(struct schedules *all, struct slice name);

/* Restores a schedule from its document at startup. It fires only after schedules_start. */
enum err schedules_restore(struct schedules *all, const struct document *document,
                           struct failure *why);

/* Stops firing in this environment, because its branch was archived. */
void schedules_retire(struct schedules *all, const struct environment *env);
/* Returns true if one of its schedules has a commit in flight. */
bool schedules_are_busy(struct schedules *all, const struct environment *env);
/* Removes the environment's schedules from memory; none may be busy. Returns false if
 * the time slice ends first: call it again. */
bool schedules_forget(struct schedules *all, const struct environment *env,
                      struct timeslice *timeslice);

/* ---- changing ---- */

struct schedule_command;

/* Returns the schedule that the command is about; NULL: none exists yet. */
typedef struct schedule *schedule_find_fn(struct schedule_command *command);

/* Decides about a command. now is NULL if there is no schedule; a commit then creates
 * one. Edit next, a copy of its facts, or set command->removes. */
typedef enum decision schedule_decide_fn(struct schedule_command *command,
                                         const struct schedule *now,
                                         struct schedule_facts *next);

/* Reports the outcome, once, later. command->schedule is valid until the function
 * returns, even if it was removed; NULL if the command was rejected and there is none. */
typedef void schedule_done_fn(struct schedule_command *command, enum err status);

/* Embedded by the operation. */
struct schedule_command {
    struct schedules *all;
    struct environment *env; /* of the schedule */
    schedule_find_fn *find;
    schedule_decide_fn *decide;
    schedule_done_fn *done;

    bool removes;
    struct failure why; /* the reason, if rejected */
    struct schedule *schedule;

    struct schedule_facts next;
    struct document_write write;
    struct change change;
    struct deferred deferred;
    struct list link; // schedule::parked
};

/* Calls find, then decide, at the end of this turn or when the schedule's commit in flight
 * ends. */
void schedule_command_begin(struct schedules *all, struct environment *env,
                            struct schedule_command *command, schedule_find_fn *find,
                            schedule_decide_fn *decide, schedule_done_fn *done);
