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

struct registration {
    struct worker *worker; /* id, version and created_at are the caller's to set */
};

/* From the body of a POST, valid JSON. ERR_INVALID: why says which member is wrong. */
enum err registration_read(struct slice body, struct registration *registration,
                           struct failure *why);

/* The same of what was taken once, by whatever limits. */
enum err registration_read_again(struct slice body, struct registration *registration,
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

/* Forgets versions of which there are too many, with the queues that no other one has. */
void registration_forget_oldest(struct engine *engine, struct environment *env);

/* A zeroed one is fine. */
void registration_finish(struct registration *registration);
