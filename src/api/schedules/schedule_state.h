/* schedule_state.h - what the files about schedules share. */
#pragma once

#include "api/schedules/schedules.h"
#include "base/slots.h"
#include "base/table.h"

/* Of one environment. */
struct env_schedules {
    struct list all; // schedule::link; oldest first
    size_t count;
    bool retired; /* nothing fires */
    const struct environment *env;
    struct timer
        quiet;       /* armed: that a schedule did not fire has been said in this minute */
    unsigned untold; /* that did not fire since */
};

struct schedules {
    struct engine *engine;
    char last_id[ID_MAX]; /* ids rise, also within a millisecond */
    struct table by_id;
    struct table by_index;     /* deduplication keys; tasks of declarative ones */
    struct table zones;        /* of struct zone, by name */
    struct slots environments; /* of struct env_schedules, by number */
    struct timers due;         /* a heap on the wall clock */
    uint32_t fire_kind, tick_kind, quiet_kind;
    struct timer tick; /* the loop's: looks at the wall clock */
    bool started;
    size_t firing;    /* runs on their way */
    size_t under_way; /* commands without an answer yet */
};

/* Makes a schedule that has no document yet; the second takes one out of every table. */
struct schedule *schedule_add(struct schedules *all, struct environment *env,
                              const char *id);
void schedule_remove(struct schedules *all, struct schedule *schedule);

/* Takes over the facts. */
void schedule_adopt(struct schedules *all, struct schedule *schedule,
                    struct schedule_facts *facts);

/* Its commit is through: it is due again, and what was parked is decided. */
void schedule_release(struct schedules *all, struct schedule *schedule);

/* Decides what waited for something that is not there any more. */
void schedule_commands_go(struct list *parked);

/* Sets the loop's timer for what is due next. */
void schedules_arm(struct schedules *all);

struct env_schedules *schedules_in(struct schedules *all, const struct environment *env);

/* firing.c: what a schedule does when it is due. */
void schedule_fire(struct timer *due);

/* firing.c: the minute is over, or the environment goes: what was only counted is a line. */
void schedules_tell_untold(struct env_schedules *place);

/* schedule_document.c. write: the caller's reference. */
struct bytes *schedule_facts_write(const struct schedule_facts *facts);
enum err schedule_facts_read(struct slice body, struct schedule_facts *facts);
