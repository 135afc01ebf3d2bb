/* staff.h - the worker versions of a simulation: they register, dequeue and reconnect.
 *
 * In dev several of them dequeue, each under its own name, and CLIs connect and leave.
 * Elsewhere some belong to deployments, which become DEPLOYED at some point, and the newest
 * plain one is current until one is promoted. The runs that a worker gets, and those that
 * wait, are checked against the tasks of the versions. */
#pragma once

#include "tests/support/fakes/ledger.h"
#include "tests/support/world/sim.h"

enum { STAFF_VERSIONS = 12, STAFF_EXTERNALS = 3 };

struct staff {
    struct world *world;
    struct ledger *ledger;
    struct draws *draws;
    struct {
        char version[24], tasks[64];
        const char *external; /* the user's id of its deployment; NULL: none */
        bool is_deployed;
    } all[STAFF_VERSIONS];
    unsigned count;
    unsigned current;    /* the version that was promoted last */
    uint32_t promotions; /* number so far; 0: none yet */
    unsigned connected;  /* connected CLIs */
};

/* Registers the first version, which has every task. */
void staff_init(struct staff *staff, struct world *world, struct draws *draws);

/* A version registers, connects or leaves. */
void staff_step(struct staff *staff);

/* The process has restarted, and knows the versions from its store. */
void staff_return(struct staff *staff);

/* Returns a version for a worker's dequeue, or for a run to be locked to. */
const char *staff_any(struct staff *staff);

/* Lets the trigger lock the run to a version, or name a deployment, sometimes. */
void staff_draw_wish(struct staff *staff, struct run *run);

/* Checks that a worker with this version may get this run. */
void staff_check_taken(const struct staff *staff, const char *version,
                       const struct run *run);

/* At rest: every dequeue gets a run if there is one for it, and no run has a status that
 * contradicts the present versions. */
void staff_check_rest(struct staff *staff);
