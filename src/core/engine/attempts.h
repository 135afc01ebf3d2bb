/* attempts.h - the worker's side of a run: dequeue, start, heartbeat, complete.
 *
 * Every step names the newest snapshot of the run; an older one is refused. Each
 * but the heartbeat remembers the id of the request that was applied, so that its
 * repetition gets the answer again. */
#pragma once

#include "core/engine/engine.h"
#include "core/fleet/line.h"
#include "core/fleet/worker_versions.h"

/* Which runs a worker takes. All zero: any. */
struct dequeue_terms {
    bool deployed_only; /* those whose version was deployed */
    bool has_room;      /* those whose machine takes at most this */
    double cores, gigabytes;
};

/* One worker that asks for a run, at once or as soon as there is one. */
struct dequeue {
    struct command command; /* first; command.env is where the run came from */
    struct timer timer;
    bool holding; /* a run was chosen and is being committed */
    bool canceled;
    bool pinned;                /* the run was not bound to a version before */
    struct dequeue_terms terms; /* outside of dev */
    struct slice request_id;
    char worker[ID_MAX]; /* that it names; "": none */
    /* OK: command.run is leased to the worker and shows its snapshot. ERR_NOT_FOUND:
     * nothing came within wait_ms. */
    void (*done)(struct dequeue *dequeue, enum err status);
    struct deferred deferred;
    struct dequeue_seat *seats; /* one per environment that it serves */
    size_t seat_count;
};

/* ERR_DRAINING at once; else done comes. Of several environments that have something, the
 * one that was served longest ago is next. A run that is first in its environment and takes
 * more than the worker has room for is not passed by: a smaller one behind it would always be
 * there. */
enum err dequeue_begin(struct engine *engine, struct environment *const *environments,
                       size_t count, const struct dequeue_terms *terms,
                       struct dequeue *dequeue, int64_t wait_ms,
                       void (*done)(struct dequeue *dequeue, enum err status));

/* The same for a worker that names its version by its id, in one environment; absent: it
 * names none, which means the current one. In dev it gets the runs of its session only
 * (core/fleet/dev_sessions.h). */
enum err dequeue_begin_for(struct engine *engine, struct environment *env,
                           struct slice worker, struct dequeue *dequeue, int64_t wait_ms,
                           void (*done)(struct dequeue *dequeue, enum err status));

/* Names the request, right after it began: its repetition, under the same id, gets the run
 * that it got, as long as that was not started. A dequeue that waits under that id outside of
 * dev is canceled. The caller's until done; may be absent. */
void dequeue_name_request(struct dequeue *dequeue, struct slice request_id);

/* The worker is gone: done comes with ERR_CANCELED, a leased run goes back at once. */
void dequeue_cancel(struct dequeue *dequeue);

/* The answer with a leased run has not reached the worker: the run goes back at once, unless
 * it is not in this snapshot any more. pinned: as the dequeue said. */
void dequeue_give_back(struct engine *engine, struct environment *env, struct slice run_id,
                       uint32_t snapshot, bool pinned);

/* The same when the worker may have the answer: a run that nobody has started after three seconds
 * goes back. */
void dequeue_doubt(struct engine *engine, struct environment *env, struct slice run_id,
                   uint32_t snapshot, bool pinned);

struct start_attempt {
    struct command command;
    struct slice snapshot, request_id; /* the caller's until done; no request_id: absent */
};
/* ERR_CONFLICT: the snapshot is not the newest. ERR_INVALID: finished or being canceled. */
void attempt_start(struct engine *engine, struct environment *env, struct slice run_id,
                   struct start_attempt *op, command_done_fn *done);

/* What a millisecond of an attempt of this run adds to its cost. */
double attempt_cents_per_ms(const struct environment *env, const struct run *run);

/* True when the snapshot was the newest; the run's silence starts again. */
bool attempt_heartbeat(struct engine *engine, struct environment *env, struct slice run_id,
                       struct slice snapshot);

/* A CLI polls its run, every 5 s: from now on it is also given up when nothing was heard
 * of it for SESSION_LOST_MS. Only in dev; elsewhere, and of who never looks, the heartbeat
 * counts alone. */
void attempt_look(struct engine *engine, struct environment *env, struct slice run_id);

enum attempt_result {
    ATTEMPT_RUN_FINISHED,
    ATTEMPT_RETRY_IMMEDIATELY,
    ATTEMPT_RETRY_QUEUED,
    ATTEMPT_PENDING_CANCEL
};

struct complete_attempt {
    struct command command;
    struct slice snapshot, request_id;
    bool ok;
    struct bytes *output;     /* the caller's until done; NULL: none */
    struct slice output_type; /* absent: JSON */
    struct slice error;       /* JSON object, when not ok */
    bool has_retry, skipped_retrying;
    bool force_requeue; /* another process shall take the retry */
    int64_t retry_at;   /* Unix ms */
    int64_t retry_delay_ms;
    int64_t usage_ms;                 /* -1: not told, costs nothing */
    struct slice metadata_operations; /* JSON array for the run itself; absent: none */
    enum attempt_result result;       /* out */

    /* The engine's. */
    size_t held; /* bytes of the project's, until they are stored */
    command_done_fn *done;
};
/* False: whatever a completion of that snapshot says changes nothing, since it is refused, or a
 * repeated one. That stays so. */
bool attempt_may_complete(const struct environment *env, struct slice run_id,
                          struct slice snapshot);

/* ERR_INVALID: the snapshot is not the newest, or the run is final. */
void attempt_complete(struct engine *engine, struct environment *env, struct slice run_id,
                      struct complete_attempt *op, command_done_fn *done);

struct release {
    struct command command;
    struct slice snapshot, reason; /* the caller's until done */
};
/* A leased run that its worker will not start goes back, as if the lease had run out: after
 * a pause, or it fails, for that reason, when that was too often. ERR_CONFLICT: not the newest
 * snapshot. ERR_INVALID: not leased. */
void attempt_release(struct engine *engine, struct environment *env, struct slice run_id,
                     struct release *op, command_done_fn *done);

/* A dev session ended: the run is INTERRUPTED if a worker held it. */
void attempt_interrupt(struct engine *engine, struct environment *env, struct slice run_id,
                       struct command *command, const char *reason, command_done_fn *done);
