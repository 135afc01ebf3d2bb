/* cluster_faults.h - deliberate faults of the simulated cluster, one of which may be on.
 *
 * Each shows that a checker works: the simulation must find it within a few seeds. */
#pragma once

#include <stdbool.h>

enum cluster_fault {
    FAULT_NONE,
    FAULT_SKIPPED_CHANGE,
    FAULT_SERVES_IN_DOUBT,
    FAULT_EARLY_SNAPSHOT,
    FAULT_FORWARDED_TWICE,
    FAULT_UNFENCED,
    FAULT_LATE_REVOCATION,
    FAULT_SESSION_ENDS,
    FAULT_DOUBTING_BEATS,
    FAULT_NO_BEFORE,
    FAULT_POLL_BEHIND,
    FAULT_TRUST_FROM_ARRIVAL,
    FAULT_AHEAD_OF_LEADER,
    FAULT_KEEPS_PURGED,
    FAULT_PAGE_AHEAD,
    FAULT_KEEPS_RING,
    FAULT_KEEPS_COUNTS,
    FAULT_SHOWN_ALONE,
    FAULT_HELD_ANSWER,
    FAULT_COUNT
};

struct cluster_fault_row {
    const char *name;   /* the argument of the program */
    const char *about;  /* what it breaks */
    const char *caught; /* parts of violations that may report it, separated by "|" */
    unsigned first;     /* seed; unless SEED is set */
    unsigned seeds;     /* it must be caught within this many */
};

extern const struct cluster_fault_row cluster_faults[FAULT_COUNT];

/* The one that is on. */
extern enum cluster_fault cluster_fault;

static inline bool has_fault(enum cluster_fault fault)
{
    return cluster_fault == fault;
}

/* Returns FAULT_COUNT for an unknown name. */
enum cluster_fault cluster_fault_named(const char *name);
