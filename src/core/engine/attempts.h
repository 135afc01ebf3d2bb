/* attempts.h - the worker's side of a run: dequeue, start, heartbeat, complete.
 *
 * Every step names the run's newest snapshot; an older one is refused. Each step except the
 * heartbeat stores the request id in the run, so that a repeated request gets the same
 * response. */
#pragma once

#include "core/engine/engine.h"
#include "core/fleet/line.h"
#include "core/fleet/worker_versions.h"

/* Which runs a worker accepts. Zeroed: any. */
struct dequeue_terms {
    bool deployed_only; /* only runs whose version was deployed */
    bool has_room;      /* only runs whose machine needs at most this: */
    double cores, gigabytes;
};

/* A dequeue request of one worker: it gets a run at once, or as soon as one is ready. */
struct dequeue {
    struct command command; /* first; command.env is the leased run's environment */
    struct timer timer;
    bool holding; /* a run was chosen and is being committed */
    bool canceled;
    bool pinned;                /* the run had no version before this lease */
    bool by_token;              /* the worker has a worker token; set after dequeue_begin */
    struct dequeue_terms terms; /* ignored in dev */
    struct slice request_id;
    struct rate_claims *rates; /* tokens taken for the lease in progress; NULL: none */
    char worker[ID_MAX];       /* the version that it names; "": none */
    /* OK: command.run is leased to the worker and shows its snapshot. ERR_NOT_FOUND: no run
     * was ready within wait_ms. */
    void (*done)(struct dequeue *dequeue, enum err status);
    struct deferred deferred;
    struct dequeue_seat *seats; /* one per environment that it serves */
    size_t seat_count;
};

/* Returns ERR_DRAINING at once while the engine drains; otherwise done is called. If
 * several environments have ready runs, the one served longest ago is next. A run that is
 * first in its environment but needs more than the worker has is not skipped, because
 * smaller runs after it could starve it. */
enum err dequeue_begin(struct engine *engine, struct environment *const *environments,
                       size_t count, const struct dequeue_terms *terms,
                       struct dequeue *dequeue, int64_t wait_ms,
                       void (*done)(struct dequeue *dequeue, enum err status));

/* The same for one environment. worker: the id of the worker's version; absent: the current
 * one. In dev, a worker gets only runs of its own session (core/fleet/dev_sessions.h). */
enum err dequeue_begin_for(struct engine *engine, struct environment *env,
                           struct slice worker, struct dequeue *dequeue, int64_t wait_ms,
                           void (*done)(struct dequeue *dequeue, enum err status));

/* Gives the dequeue a request id; call it right after dequeue_begin. A repeated request
 * with the same id gets the same run, as long as that has not been started. Outside of dev,
 * a dequeue that is still waiting under the id is canceled. request_id: the caller's until
 * done; may be absent. */
void dequeue_name_request(struct dequeue *dequeue, struct slice request_id);

/* The worker is gone: done is called with ERR_CANCELED, and a leased run is requeued at
 * once. */
void dequeue_cancel(struct dequeue *dequeue);

/* The response with a leased run has not reached the worker: requeues the run at once,
 * unless its snapshot has changed. pinned: dequeue::pinned. */
void dequeue_give_back(struct engine *engine, struct environment *env, struct slice run_id,
                       uint32_t snapshot, bool pinned);

/* The same if the worker may have received the response: requeues the run if it is not
 * started within DOUBT_MS. */
void dequeue_doubt(struct engine *engine, struct environment *env, struct slice run_id,
                   uint32_t snapshot, bool pinned);

/* Returns true if the run is hidden from a caller without a worker token: it was leased
 * with one, and has not ended. Every task's code has the secret key of its environment, and
 * must not use it to act as the worker of another run. by_token: the caller has a worker
 * token. */
bool attempt_is_hidden(const struct run *run, bool by_token);

struct start_attempt {
    struct command command;
    bool by_token;
    struct slice snapshot, request_id; /* the caller's until done; no request_id: absent */
};
/* ERR_CONFLICT: the snapshot is not the newest. ERR_INVALID: finished or being canceled.
 * ERR_NOT_FOUND: missing or hidden. */
void attempt_start(struct engine *engine, struct environment *env, struct slice run_id,
                   struct start_attempt *op, command_done_fn *done);

/* Returns the cost of one millisecond of an attempt of this run, in cents. */
double attempt_cents_per_ms(const struct environment *env, const struct run *run);

/* Returns true if the snapshot is the newest; the run's heartbeat timeout then restarts. */
bool attempt_heartbeat(struct engine *engine, struct environment *env, struct slice run_id,
                       struct slice snapshot);

/* The CLI has polled its run, which it does every 5 s. From now on the attempt is also lost
 * if no poll or heartbeat arrives for SESSION_LOST_MS. Only in dev; elsewhere, and for a
 * worker that never polls, only the heartbeat counts. */
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
    bool by_token, ok;
    struct bytes *output;     /* the caller's until done; NULL: none */
    struct slice output_type; /* absent: JSON */
    struct slice error;       /* JSON object, when not ok */
    bool has_retry, skipped_retrying;
    bool force_requeue; /* the retry must get another process */
    int64_t retry_at;   /* Unix ms */
    int64_t retry_delay_ms;
    int64_t usage_ms;                 /* -1: not reported, costs nothing */
    struct slice metadata_operations; /* JSON array for the run itself; absent: none */
    enum attempt_result result;       /* out */

    /* The engine's. */
    size_t held; /* bytes of the project's quota reserved until they are stored */
    command_done_fn *done;
};
/* Returns false if a completion with that snapshot would change nothing, because it is
 * refused or a repetition. Once false, it stays false. */
bool attempt_may_complete(const struct environment *env, struct slice run_id,
                          struct slice snapshot, bool by_token);

/* ERR_INVALID: the snapshot is not the newest, or the run is final. ERR_NOT_FOUND: the run is
 * missing or hidden. */
void attempt_complete(struct engine *engine, struct environment *env, struct slice run_id,
                      struct complete_attempt *op, command_done_fn *done);

struct release {
    struct command command;
    struct slice snapshot, reason; /* the caller's until done */
};
/* Gives back a leased run that its worker will not start. As if the lease had expired, the
 * run is queued again after a pause, or fails with that reason after too many leases.
 * ERR_CONFLICT: not the newest snapshot. ERR_INVALID: not leased. */
void attempt_release(struct engine *engine, struct environment *env, struct slice run_id,
                     struct release *op, command_done_fn *done);

/* A dev session ended: the run becomes INTERRUPTED if a worker has it. */
void attempt_interrupt(struct engine *engine, struct environment *env, struct slice run_id,
                       struct command *command, const char *reason, command_done_fn *done);
