/* workload.h - what users and workers of a simulation do, drawn from the seed.
 *
 * Triggers with keys, requests, tags and parents; batches; cancels, tags, metadata; workers
 * that take runs through their lives. It remembers what was acknowledged, and says at the
 * end whether all of it is so. */
#pragma once

#include "core/engine/attempts.h"
#include "core/engine/run_commands.h"
#include "tests/support/fakes/ledger.h"
#include "tests/support/world/relays.h"
#include "tests/support/world/sim.h"
#include "tests/support/world/staff.h"

enum { WORK_KEYS = 5, WORK_REQUESTS = 5, WORK_HELD = 8, WORK_TAGS = 5 };

extern const char *const work_tags[WORK_TAGS];

struct workload {
    struct world *world;
    struct ledger *ledger;
    struct draws *draws;
    struct relays relays;
    struct staff staff;
    struct list triggers; // trigger_work::link
    struct list batches;  // batch_note::link; whole or absent at the end
    struct list dequeues; // dequeue_work::link
    unsigned under_way;
    bool dead;                          /* outcomes reach nobody */
    char key_owners[WORK_KEYS][ID_MAX]; /* as acknowledged; "": not known */
    unsigned resets[WORK_KEYS];         /* how often it changed hands */
    char request_owners[WORK_REQUESTS][ID_MAX];
    char held[WORK_HELD][ID_MAX]; /* runs that a worker has; "": free */
    unsigned last_id;
    unsigned acknowledged, refused, completed;
};

void workload_init(struct workload *workload, struct world *world, struct draws *draws);
void workload_finish(struct workload *workload);

/* One command, begun. */
void workload_step(struct workload *workload);

/* The process dies: its workers have lost it, nobody hears of what is under way. */
void workload_lose(struct workload *workload);

/* The process is back; its workers know no more than the store. */
void workload_return(struct workload *workload);

/* Workers ask for nothing any more. */
void workload_rest(struct workload *workload);

/* At rest: what a blocked run waits for is not over. */
void workload_check_waits(struct workload *workload);

/* Acknowledged runs are there, batches whole or absent, what must follow has followed. */
void workload_check_end(struct workload *workload);
