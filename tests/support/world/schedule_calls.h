/* schedule_calls.h - worlds in which schedules fire, and commands on schedules as calls. */
#pragma once

#include "api/schedules/schedules.h"
#include "tests/support/fakes/forgetful.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, FIRED_MAX = 4096 };

/* Two environments, a task "hello", the forgetful store; the wall clock is set to that
 * time. */
struct world *create_world_at(int64_t wall, struct engine_options engine);

/* Advances in steps: a second for waits up to ten minutes, a minute for longer ones. */
void pass(struct world *world, int64_t ms);

/* Stays down for that long; then everything is loaded again. */
void restart(struct world *world, int64_t down_ms);

struct asking {
    struct schedule_command command;
    struct world *world;
    const char *cron, *zone, *key; /* of a new schedule */
    char id[ID_MAX];               /* of an existing schedule */
    bool remove, activate, deactivate, touch;
    bool done;
    enum err status;
};

void ask_in(struct world *world, uint32_t env, struct asking *asking);
void wait_for_answer(struct world *world, const struct asking *asking);
enum err ask(struct world *world, struct asking *asking);

/* Creates a schedule of task "hello". */
struct asking make(struct world *world, const char *cron, const char *zone);

struct fired {
    int64_t times[FIRED_MAX]; /* nominal, in order */
    size_t count;
};

/* A date in the payload of a run that a schedule triggered. */
int64_t time_in(const struct run *run, const char *member);

/* The runs of one schedule, or of all (NULL). Fails if a nominal time occurs twice. */
struct fired fired_by(struct world *world, const char *id);

/* expected: "2026-03-01T00:01 2026-03-01T00:02". */
void assert_fired(struct world *world, const char *id, const char *expected);
