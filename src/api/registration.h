/* registration.h - what a worker version says of itself: its tasks and their queues.
 *
 *   POST body ─► registration_read ─► struct registration ─► registration_write ─► document
 *   document ──► registration_restore ─┘        └─► registration_apply: the engine knows it
 *
 * One document holds a version with its queues, so it is there whole or not at all
 * (worker-protocol §1.4, call 8). */
#pragma once

#include "engine/engine.h"
#include "engine/workers.h"

struct queue_limit {
    struct bytes *name;
    uint32_t limit; /* UINT32_MAX: none of its own */
};

struct registration {
    struct worker *worker;      /* id, version and created_at are the caller's to set */
    struct queue_limit *queues; /* in the order in which they are to be set */
    size_t queue_count;
};

/* From the body of a POST, valid JSON. ERR_INVALID: why says which member is wrong. */
enum err registration_read(struct slice body, struct registration *registration,
                           struct failure *why);

/* The body of its document; the caller's reference. */
struct bytes *registration_write(const struct registration *registration);

/* From the body of a document. */
enum err registration_restore(struct slice body, struct registration *registration,
                              struct failure *why);

/* "20261120.1" as a document's name, which sorts in the order of the versions; the
 * caller's reference. */
struct bytes *registration_document_name(const struct worker *worker);

/* The worker is the current one of the environment, its queues have their limits. Takes
 * over the worker. */
void registration_apply(struct registration *registration, struct environment *env);

/* A zeroed one is fine. */
void registration_finish(struct registration *registration);
