/* wait_list.h - the waits of a run: a JSON array stored in the run, oldest wait first.
 *
 *   [{"type":"DATETIME","id":"waitpoint_…","until":…},
 *    {"type":"RUN","id":"run_…","batch":"batch_…","index":3,"completedAt":…}, …]
 *
 * A wait that has ended has completedAt. core/engine/waits.c decides when a wait ends. */
#pragma once

#include "base/buf.h"
#include "base/json/scan.h"
#include "runcast/run.h"

/* Most waits of one run at a time, because the whole list is read when one of them ends. */
enum { WAITS_MAX = 2000 };

enum wait_type { WAIT_TIME, WAIT_RUN, WAIT_TOKEN, WAIT_TYPES };

struct wait {
    enum wait_type type;
    struct slice id;      /* "run_…", or "waitpoint_…" for a time or token */
    struct slice batch;   /* the run's batch; absent: none */
    uint32_t index;       /* of the run in its batch */
    bool too_large;       /* there is no run: its item was too large */
    struct slice stream;  /* as JSON; for a token completed by a record of this input */
    int64_t from;         /* how many of the input's records come before that one */
    int64_t until;        /* Unix ms; a time, or a token's timeout; 0: none */
    int64_t completed_at; /* Unix ms; 0: pending */
};

/* Iterate over the waits of a run: begin with wait_list_of. Texts are borrowed from the
 * run. */
struct scan_members wait_list_of(const struct run *run);
bool wait_list_next(struct scan_members *all, struct wait *wait);

/* Appends a wait to a list that begins with '['. */
void wait_list_add(struct buf *out, const struct wait *wait);

/* Returns true if the run waits, but nothing is pending: it resumes when it has a slot. */
bool wait_list_has_ended(const struct run *run);

/* Returns true if the run is blocked by a token that the next record of this input
 * completes. */
bool wait_list_has_input(const struct run *run, struct slice key, struct wait *wait);
