/* cluster_catch_up.h - brings a gateway's memory to the state of the database in one step.
 *
 *   keys ─► pages of runs changed after `applied`, up to the end ─► all applied in one turn
 *
 * A page has the newest state of each run, not its changes, so numbers are left out. The
 * last page ends where the database ended when it was read. A run that changed after an
 * earlier page was read is on the last page, so memory then has exactly the state of that
 * moment. Ending at a counter that was read first would not do: a run that changed after
 * that moment would be missing at it.
 *
 * A gateway below the purged position loads instead. It may have a run as unfinished that
 * has ended meanwhile and that retention has removed, so that no page has it. */
#pragma once

#include "tests/support/cluster/cluster_database.h"

struct cluster_gateway;

struct cluster_catch_up {
    struct cluster_gateway *gateway;
    struct store_scan keys;
    struct store_walk walk;
    struct run *runs; /* in the order of rev */
    size_t count, capacity;
    uint64_t keys_seq; /* the accounts' position when the keys were read */
    uint64_t target;
    bool active, again;
    unsigned steps; /* completed so far */
};

void cluster_catch_up_init(struct cluster_catch_up *catch_up,
                           struct cluster_gateway *gateway);

/* Begins, or begins again once the one in progress has ended. Calls
 * cluster_gateway_caught_up. */
void cluster_catch_up_begin(struct cluster_catch_up *catch_up);
void cluster_catch_up_finish(struct cluster_catch_up *catch_up);
