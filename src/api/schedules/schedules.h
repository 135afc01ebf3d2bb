/* schedules.h - what fires by the clock.
 *
 *   document ─► struct schedule ─► heap by wall clock ─► due ─► one commit: its run,
 *                    ▲                                          its document with fired_at
 *                    └──────────────────────────────────────────────────┘
 *
 * A nominal time is one at which the expression says that a run is due. Those that fire
 * only ever rise: fired_at stands in the document, whose next version goes into the same
 * commit as the run. So no nominal time fires twice, whatever restarts and clocks do. Of
 * those that were missed the latest fires, once; the others are skipped.
 *
 * One commit per schedule at a time: what comes meanwhile waits and is then decided on the
 * result of the one before. */
#pragma once

#include "api/schedules/cron.h"
#include "core/engine/engine.h"

struct schedules;

/* The engine, whose runs they make, lives longer. */
struct schedules *schedules_create(struct engine *engine);
/* NULL is fine. None has a commit on its way: schedules_are_idle. */
void schedules_destroy(struct schedules *all);

/* What is due fires from now on; never again. What the engine does not take while it drains
 * fires at the next start. */
void schedules_start(struct schedules *all);
void schedules_stop(struct schedules *all);

/* No command waits for its answer. */
bool schedules_are_idle(const struct schedules *all);

/* What its document says. */
struct schedule_facts {
    struct bytes *task, *cron, *timezone;
    struct bytes *window, *external_id, *key; /* NULL: none */
    bool is_declarative;                      /* comes from a worker's registration */
    bool is_active;
    int64_t created_at;
    int64_t since;    /* nominal times begin behind it: made, changed or activated then */
    int64_t fired_at; /* the newest nominal time that fired; 0: none */
};

void schedule_facts_copy(struct schedule_facts *copy, const struct schedule_facts *facts);
void schedule_facts_finish(struct schedule_facts *facts);
/* Another expression and time zone count from now on; what fired while the clock was ahead
 * holds up none of their times. */
void schedule_facts_set_times(struct schedule_facts *facts, struct bytes *cron,
                              struct bytes *timezone, int64_t now_ms);

struct schedule {
    struct schedules *all;
    char id[ID_MAX]; /* "sched_…" */
    struct environment *env;
    uint32_t version; /* of its document; 0: not there yet */
    struct schedule_facts facts;

    struct cron cron;
    const struct zone *zone;  /* NULL: not understood any more, never due */
    int64_t next_after, next; /* the next one behind next_after, when it was asked for */
    struct bytes *index;      /* schedules::by_index; NULL: not in it */
    struct timer due;         /* on the wall clock */
    bool busy;                /* a commit of it is on its way */
    bool failing;             /* it has been said in the log */
    struct list parked;       // schedule_command::link
    struct list link;         // env_schedules::all
};

/* ---- reading; what is not there yet (version 0) is found too ---- */

struct schedule *schedules_by_id(struct schedules *all, const struct environment *env,
                                 struct slice id);
/* By deduplication key. */
struct schedule *schedules_by_key(struct schedules *all, const struct environment *env,
                                  struct slice key);
/* The declarative one. */
struct schedule *schedules_of_task(struct schedules *all, const struct environment *env,
                                   struct slice task);

/* Newest first; start with NULL; NULL at the end. */
struct schedule *schedules_next(struct schedules *all, const struct environment *env,
                                const struct schedule *previous);
size_t schedules_count(struct schedules *all, const struct environment *env);
/* The same of all environments of its project. */
size_t schedules_count_project(struct schedules *all, const struct environment *env);

/* The next nominal time that can fire behind both after_ms and those that did; 0: none. */
int64_t schedule_next(struct schedule *schedule, int64_t after_ms);

/* Kept until schedules_destroy; NULL: the system knows no such zone. */
const struct zone *schedules_zone(struct schedules *all, struct slice name);

/* Restores a schedule from its document, at start. Afterwards schedules_start lets what is due
 * fire. */
enum err schedules_restore(struct schedules *all, const struct document *document,
                           struct failure *why);

/* Nothing of this environment fires any more: its branch was archived. */
void schedules_retire(struct schedules *all, const struct environment *env);
/* One of its schedules has a commit on its way. */
bool schedules_are_busy(struct schedules *all, const struct environment *env);
/* The schedules of the environment leave memory, none of them being busy. False when the time
 * is over before they all have. */
bool schedules_forget(struct schedules *all, const struct environment *env,
                      struct stint *stint);

/* ---- changing ---- */

struct schedule_command;

/* Finds the schedule that the command is about; NULL: there is none yet. */
typedef struct schedule *schedule_find_fn(struct schedule_command *command);

/* now is NULL when there is none: a commit then makes one. next is a copy of its facts, to
 * be altered; command->removes may be set instead. */
typedef enum decision schedule_decide_fn(struct schedule_command *command,
                                         const struct schedule *now,
                                         struct schedule_facts *next);

/* The outcome, once, later. command->schedule is borrowed until the function returns;
 * removed ones are still there. NULL for a refusal without one. */
typedef void schedule_done_fn(struct schedule_command *command, enum err status);

/* Embedded by the operation. */
struct schedule_command {
    struct schedules *all;
    struct environment *env; /* of the schedule */
    schedule_find_fn *find;
    schedule_decide_fn *decide;
    schedule_done_fn *done;

    bool removes;
    struct failure why; /* of a refusal */
    struct schedule *schedule;

    struct schedule_facts next;
    struct document_write write;
    struct change change;
    struct deferred deferred;
    struct list link; // schedule::parked
};

/* find, then decide, at the end of this turn or when its commit in flight is through. */
void schedule_command_begin(struct schedules *all, struct environment *env,
                            struct schedule_command *command, schedule_find_fn *find,
                            schedule_decide_fn *decide, schedule_done_fn *done);
