/* registration.h - the tasks and queues that a worker version declares.
 *
 *   POST body ─► registration_reader ─┬─► struct registration ─┬─► registration_write
 *   document ──► registration_restore ─┘                        └─► registration_apply:
 *                                                                   the engine knows it
 *
 * One document holds a version with its queues, so it is stored whole or not at all. */
#pragma once

#include "api/registration/declaration.h"
#include "api/registration/unsupported.h"
#include "core/engine/engine.h"
#include "core/fleet/worker_versions.h"

struct registration {
    struct worker *worker; /* the caller sets id, version and created_at */
    struct buf tasks;      /* of its document: those written so far */
    size_t written;
};

/* Collects the body of a POST while it arrives, then reads it task by task. */
struct registration_reader {
    struct declaration declaration;
    size_t tasks_max, queues_max;
    bool is_stored;                 /* it was accepted before */
    struct worker *worker;          /* as far as it is read */
    struct unsupported unsupported; /* complete when the worker is */
    enum declaration_part list;
    struct scan_members elements; /* the list's elements not read yet */
    size_t index;
};

void registration_reader_init(struct registration_reader *reader);

/* Takes a piece of the body. Returns ERR_INVALID, here and below, if a member is invalid;
 * why names it. */
enum err registration_feed(struct registration_reader *reader, struct slice piece,
                           struct failure *why);

/* Ends the body, once all of it has arrived. */
enum err registration_end(struct registration_reader *reader, struct failure *why);

/* Reads one more task or queue. After the last one the registration, zeroed before, has its
 * worker. */
enum err registration_read_next(struct registration_reader *reader,
                                struct registration *registration, struct failure *why);

/* Frees what was read. Accepts a zeroed one. */
void registration_reader_finish(struct registration_reader *reader);

/* Reads metadata that was accepted before, all at once and regardless of current limits. */
enum err registration_read_again(struct slice metadata, struct registration *registration,
                                 struct failure *why);

/* Writes one more task of its document. Requires that there is one. */
void registration_write_task(struct registration *registration);

/* Returns the body of its document, including the tasks not written yet. The caller owns
 * the reference. */
struct bytes *registration_write(struct registration *registration);

/* Reads the body of a document. */
enum err registration_restore(struct slice body, struct registration *registration,
                              struct failure *why);

/* Reads a whole document at startup, and applies it. */
enum err registration_restore_document(struct environment *env,
                                       const struct document *document,
                                       struct failure *why);

/* Returns the version as a document's name, which sorts in the order of the versions. The
 * caller owns the reference. */
struct bytes *registration_document_name(const struct worker *worker);

/* Adds the worker to the versions of the environment, and takes ownership of it. In dev it
 * is current at once, its session is connected, and its limits are set. */
void registration_apply(struct registration *registration, struct environment *env);

/* The same at startup, when no worker is connected. Sets its limits unless it is a
 * deployment's. */
void registration_apply_stored(struct registration *registration, struct environment *env);

/* Sets the limits of the queues that the worker declares. They apply until another
 * version's are set. */
void registration_set_limits(struct worker *worker, struct environment *env);

/* Forgets versions if there are too many, with the queues that no other version has. */
void registration_forget_oldest(struct engine *engine, struct environment *env);

/* Forgets a version whose deployment has failed, or is no longer kept. Returns false and
 * does nothing if it is current, or about to be. */
bool registration_forget(struct engine *engine, struct environment *env,
                         struct worker *worker);

/* Frees its contents. Accepts a zeroed one. */
void registration_finish(struct registration *registration);
