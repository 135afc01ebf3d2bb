/* schedule_state.h - internal state shared by the schedule files. */
#pragma once

#include "api/schedules/schedules.h"
#include "base/slots.h"
#include "base/table.h"

/* The schedules of one environment. */
struct env_schedules {
    struct list all; // schedule::link; oldest first
    size_t count;
    bool retired; /* nothing fires from now on */
    const struct environment *env;
    struct timer quiet;  /* armed for a minute after a failure to fire was logged */
    unsigned suppressed; /* failures to fire since then, counted but not logged */
};

struct schedules {
    struct engine *engine;
    char last_id[ID_MAX]; /* the newest id; ids increase even within a millisecond */
    struct table by_id;
    struct table by_index;     /* deduplication keys; tasks of declarative ones */
    struct table zones;        /* struct zone, by name */
    struct slots environments; /* struct env_schedules, by number */
    struct timers due;         /* a heap by wall-clock time */
    uint32_t fire_kind, tick_kind, quiet_kind;
    struct timer tick; /* timer of the loop that checks the wall clock */
    bool started;
    size_t firing;    /* commits of runs in flight */
    size_t under_way; /* commands in progress */
};

/* Creates a schedule without a document; schedule_remove removes one from all tables. */
struct schedule *schedule_add(struct schedules *all, struct environment *env,
                              const char *id);
void schedule_remove(struct schedules *all, struct schedule *schedule);

/* Moves *facts into the schedule. */
void schedule_adopt(struct schedules *all, struct schedule *schedule,
                    struct schedule_facts *facts);

/* Ends a schedule's commit: sets when it is due again, and decides the waiting commands. */
void schedule_release(struct schedules *all, struct schedule *schedule);

/* Decides commands that waited for a schedule. */
void schedule_commands_go(struct list *parked);

/* Sets the loop's timer for the next due schedule. */
void schedules_arm(struct schedules *all);

struct env_schedules *schedules_in(struct schedules *all, const struct environment *env);

/* firing.c: called when a schedule is due. */
void schedule_fire(struct timer *due);

/* firing.c: logs the number of failures that were not logged, at the end of the minute or
 * when the environment is removed. */
void schedules_log_suppressed(struct env_schedules *place);

/* schedule_document.c. The document body; write returns the caller's reference. */
struct bytes *schedule_facts_write(const struct schedule_facts *facts);
enum err schedule_facts_read(struct slice body, struct schedule_facts *facts);
