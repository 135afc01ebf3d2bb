/* staff.h - the worker versions of a simulation: who registers, asks, comes back.
 *
 * In dev several of them ask, each under its own name, and CLIs connect and leave. Elsewhere
 * some are of deployments, which are DEPLOYED at some time, and the newest plain one is current
 * until one is promoted. What a worker gets, and what waits, is compared with what the tasks of
 * the versions say. */
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
        const char *external; /* its user's id of its deployment; NULL: it has none */
        bool is_deployed;
    } all[STAFF_VERSIONS];
    unsigned count;
    unsigned current;    /* the version that was promoted last */
    uint32_t promotions; /* so far; 0: nothing was promoted */
    unsigned connected;  /* CLIs */
};

/* Registers the first one, which has every task. */
void staff_init(struct staff *staff, struct world *world, struct draws *draws);

/* Somebody registers, connects or leaves. */
void staff_step(struct staff *staff);

/* The process is back, and knows the versions from its store. */
void staff_return(struct staff *staff);

/* The version that a worker asks with, or that a run is locked to. */
const char *staff_any(struct staff *staff);

/* The trigger may lock the run to a version, or name a deployment. */
void staff_draw_wish(struct staff *staff, struct run *run);

/* A worker that asked with this version got this run. */
void staff_check_taken(const struct staff *staff, const char *version,
                       const struct run *run);

/* At rest: whoever asks gets a run when there is one for it, and no run has a status that
 * the versions of now contradict. */
void staff_check_rest(struct staff *staff);
