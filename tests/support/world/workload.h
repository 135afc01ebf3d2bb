/* workload.h - the users and workers of a simulation, drawn from the seed.
 *
 * Triggers with keys, requests, tags and parents, debounced ones; batches; cancels, tags, metadata;
 * workers that take runs through their lives. It records everything acknowledged, and
 * checks at the end that all of it holds. */
#pragma once

#include "core/engine/attempts.h"
#include "core/engine/run_commands.h"
#include "tests/support/fakes/ledger.h"
#include "tests/support/world/pushes.h"
#include "tests/support/world/relays.h"
#include "tests/support/world/sim.h"
#include "tests/support/world/staff.h"

enum {
    WORK_KEYS = 5,
    WORK_REQUESTS = 5,
    WORK_HELD = 8,
    WORK_TAGS = 5,
    WORK_SINGLETONS = 2
};

extern const char *const work_tags[WORK_TAGS];

struct workload {
    struct world *world;
    struct ledger *ledger;
    struct draws *draws;
    struct relays relays;
    struct pushes pushes;
    struct staff staff;
    struct list triggers; // trigger_work::link
    struct list batches;  // batch_note::link; complete or absent at the end
    struct list dequeues; // dequeue_work::link
    unsigned under_way;
    bool dead;                          /* no caller gets outcomes */
    char key_owners[WORK_KEYS][ID_MAX]; /* as acknowledged; "": unknown */
    unsigned resets[WORK_KEYS];         /* how often the owner changed */
    char request_owners[WORK_REQUESTS][ID_MAX];
    char held[WORK_HELD][ID_MAX]; /* runs that a worker holds; "": free */
    unsigned last_id;
    unsigned acknowledged, refused, completed;
};

void workload_init(struct workload *workload, struct world *world, struct draws *draws);
void workload_finish(struct workload *workload);

/* Begins one command. */
void workload_step(struct workload *workload);

/* The process dies: its workers lose it, and no caller gets the outcome of commands in
 * flight. */
void workload_lose(struct workload *workload);

/* The process has restarted; its workers know only what the store has. */
void workload_return(struct workload *workload);

/* Workers stop dequeuing. */
void workload_rest(struct workload *workload);

/* At rest: asserts that nothing a blocked run waits for has ended. */
void workload_check_waits(struct workload *workload);

/* Asserts that acknowledged runs exist, batches are complete or absent, and every required
 * consequence has followed. */
void workload_check_end(struct workload *workload);
