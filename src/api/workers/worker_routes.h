/* worker_routes.h - the handlers of worker routes, by file. */
#pragma once

#include "api/request/route.h"

/* sessions.c: what a worker requests before it works */
route_fn worker_whoami;
route_fn worker_environment;
route_fn worker_config;
route_fn worker_variables;
route_fn worker_register;
enum err worker_register_piece(struct api_call *call, struct slice piece);

/* current_worker.c */
route_fn worker_dev_status;
route_fn worker_current;

/* presence.c */
route_fn worker_presence;

/* worker_attempts.c */
route_fn worker_dequeue;
route_fn worker_latest;
route_fn worker_since;
route_fn worker_heartbeat;
route_fn worker_disconnect;

/* attempt_start.c */
route_fn worker_start;

/* attempt_completion.c. A body has at most WORKER_COMPLETION_BODY bytes, and the first 16
 * MiB of its texts are kept. Node.js cannot produce longer JSON (strings end at 2^29 - 24
 * characters). */
enum { WORKER_COMPLETION_BODY = 512 * 1024 * 1024 };
route_fn worker_complete;
enum err worker_complete_piece(struct api_call *call, struct slice piece);

struct dequeue_terms;

/* Dequeues a run of one of the environments, and holds the call until there is one. terms:
 * of a worker's token; NULL for a secret key. */
enum err worker_take(struct api_call *call, struct environment *const *environments,
                     size_t count, const struct dequeue_terms *terms);

/* Returns true if the caller is a worker with a token, not one with a secret key. */
bool worker_has_token(const struct api_call *call);

/* Notes that the worker of the call's run is connected. */
void worker_touch_session(const struct api_call *call);
