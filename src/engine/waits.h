/* waits.h - what a run waits for: times, other runs, tokens.
 *
 *   run_block ─► the run's list of waits ─► noted here, under what each waits for
 *                                              │
 *      a time comes, a run ends, a token is completed
 *                                              ▼
 *                         nothing pending: the run goes on, its waits complete
 *
 * The list is kept in the run, so a restart finds it. Whether a wait is over follows from
 * the state of what it waits for; only the whole is written, once. */
#pragma once

#include "engine/engine.h"
#include "json/scan.h"

/* Of one run at once: its list is read whole whenever something in it is decided. */
enum {
    WAITS_MAX = 2000,
    WAITS_SMALL = 1024, /* bytes of the list that a full project takes, too */
};

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

/* Blocks an executing run until all of these are over; those that block it already are not
 * added again. ERR_INVALID: the run does not execute. ERR_RULE: it would wait for more than
 * WAITS_MAX. ERR_QUOTA: the list would be longer than WAITS_SMALL, in a full project. */
struct block {
    struct command command;   /* first */
    const struct wait *waits; /* the caller's until done */
    size_t count;
    bool asks_quota; /* nothing was stored for these waits that asked */
};
void run_block(struct engine *engine, struct environment *env, struct slice run_id,
               struct block *op, command_done_fn *done);

/* The waits of a run, one by one: begin with waits_of; texts are the run's. */
struct scan_members waits_of(const struct run *run);
bool waits_next(struct scan_members *all, struct wait *wait);

/* True when the run is blocked by a token that the next record of this input completes. */
bool waits_for_input(const struct run *run, struct slice key, struct wait *wait);

/* ---- the engine's ---- */

/* Notes what a blocked run waits for; forgets one that is blocked no more. */
void waits_note(struct engine *engine, struct tracked *run);

/* The run or token is over: whoever waited for nothing else goes on. */
void waits_end(struct engine *engine, struct environment *env, struct slice id);

/* Decides about a blocked run: it goes on if nothing is pending. */
enum decision waits_decide(struct engine *engine, struct environment *env,
                           struct run *next);
