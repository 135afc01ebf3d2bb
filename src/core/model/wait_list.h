/* wait_list.h - what a run waits for, as it is kept in the run: a JSON array in the order in
 * which the waits came.
 *
 *   [{"type":"DATETIME","id":"waitpoint_…","until":…},
 *    {"type":"RUN","id":"run_…","batch":"batch_…","index":3,"completedAt":…}, …]
 *
 * A wait that is over has completedAt; core/engine/waits.c decides which of them are. */
#pragma once

#include "base/buf.h"
#include "base/json/scan.h"
#include "runcast/run.h"

enum { WAITS_MAX = 2000 }; /* of one run at once: its list is read whole when one is over */

enum wait_type { WAIT_TIME, WAIT_RUN, WAIT_TOKEN, WAIT_TYPES };

struct wait {
    enum wait_type type;
    struct slice id;      /* "run_…", or "waitpoint_…" of a time or token */
    struct slice batch;   /* the batch that the run came in; absent: none */
    uint32_t index;       /* of the run in it */
    bool too_large;       /* there is no run: the item was too large */
    struct slice stream;  /* as JSON: the input whose record completes the token */
    int64_t from;         /* of that record: how many came before it */
    int64_t until;        /* Unix ms: the time, or a token's timeout; 0: none */
    int64_t completed_at; /* Unix ms; 0: pending */
};

/* The waits of a run, one by one: begin with wait_list_of; texts are the run's. */
struct scan_members wait_list_of(const struct run *run);
bool wait_list_next(struct scan_members *all, struct wait *wait);

/* Appends a wait to a list that has begun with '['. */
void wait_list_add(struct buf *out, const struct wait *wait);

/* True when the run is blocked by a token that the next record of this input completes. */
bool wait_list_has_input(const struct run *run, struct slice key, struct wait *wait);
