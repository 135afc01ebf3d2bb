/* registration.h - what a worker version says of itself: its tasks and their queues.
 *
 *   POST body ─► registration_reader ─► struct registration ─► registration_write ─► document
 *   document ──► registration_restore ──┘        └─► registration_apply: the engine knows it
 *
 * One document holds a version with its queues, so it is there whole or not at all. */
#pragma once

#include "api/workers/declaration.h"
#include "api/workers/unsupported.h"
#include "core/engine/engine.h"
#include "core/fleet/worker_versions.h"

struct registration {
    struct worker *worker; /* id, version and created_at are the caller's to set */
    struct buf tasks;      /* of its document: those that are written */
    size_t written;
};

/* The body of a POST, read while it comes and then task by task. */
struct registration_reader {
    struct declaration declaration;
    size_t tasks_max, queues_max;
    bool is_stored;                 /* it was taken once */
    struct worker *worker;          /* as far as it is read */
    struct unsupported unsupported; /* complete when the worker is */
    enum declaration_part list;
    struct scan_members elements; /* of the list, not yet read */
    size_t index;
};

void registration_reader_init(struct registration_reader *reader);

/* ERR_INVALID, here and below: why says which member is wrong. */
enum err registration_feed(struct registration_reader *reader, struct slice piece,
                           struct failure *why);

/* All of it has come. */
enum err registration_end(struct registration_reader *reader, struct failure *why);

/* Reads one task or queue more. After the last one the registration, zeroed before, has its
 * worker. */
enum err registration_read_next(struct registration_reader *reader,
                                struct registration *registration, struct failure *why);

/* A zeroed one is fine. */
void registration_reader_finish(struct registration_reader *reader);

/* Reads metadata that was taken before: all at once, and whatever the limits are now. */
enum err registration_read_again(struct slice metadata, struct registration *registration,
                                 struct failure *why);

/* Writes one task more of its document; there is one. */
void registration_write_task(struct registration *registration);

/* The body of its document, with the tasks that are not written yet; the caller's
 * reference. */
struct bytes *registration_write(struct registration *registration);

/* From the body of a document. */
enum err registration_restore(struct slice body, struct registration *registration,
                              struct failure *why);

/* The same of a whole document, at start: its worker is there. */
enum err registration_restore_document(struct environment *env,
                                       const struct document *document,
                                       struct failure *why);

/* "20261120.1" as a document's name, which sorts in the order of the versions; the
 * caller's reference. */
struct bytes *registration_document_name(const struct worker *worker);

/* The worker is one of the environment's versions; in dev the current one at once, which is
 * there, with its limits. Takes over the worker. */
void registration_apply(struct registration *registration, struct environment *env);

/* The same at start, when nobody is there yet: it has its limits if it is no deployment's. */
void registration_apply_stored(struct registration *registration, struct environment *env);

/* The queues that the worker declares have its limits, which count until another version's
 * are set. */
void registration_set_limits(struct worker *worker, struct environment *env);

/* Forgets versions of which there are too many, with the queues that no other one has. */
void registration_forget_oldest(struct engine *engine, struct environment *env);

/* Forgets a version whose deployment has failed, or is not kept any more. False: it is
 * current, or about to be; nothing happens. */
bool registration_forget(struct engine *engine, struct environment *env,
                         struct worker *worker);

/* A zeroed one is fine. */
void registration_finish(struct registration *registration);
