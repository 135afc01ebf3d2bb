/* version_store.h - the versions on this machine, one folder each.
 *
 *   versions/ID/build.json      manifest of the bundle, with paths of this folder
 *              /runcast.json    facts from the builder: architecture, libc, hash
 *              /…               node_modules, controllers, tasks
 *
 * A folder is complete or absent, and nothing in it changes. A missing or damaged version
 * is fetched from the gateway (version_job.h), once for all waiting requests:
 *
 *   provide ─► here? ─► done
 *                └─ no ─► in line ─► fetched ─► done, for each waiting request
 *                             └─ failed: done with the reason; retried later */
#pragma once

#include "base/loop.h"
#include "supervisor/gateway_client/run_message.h"

struct version_store;
struct version_shared;

/* Borrowed from the store, valid as long as it lives. */
struct ready_version {
    char id[MESSAGE_ID_MAX];
    char *directory;
    char *entry;   /* path of the run controller */
    char *program; /* executes the version */
    char *content_hash;
};

/* A request for a version; embedded by the caller. */
struct version_request {
    void (*done)(struct version_request *request, enum err status);
    const struct ready_version *version; /* set if the status is OK */
    struct failure why;                  /* set otherwise */
    struct deferred later;
    enum err status;
    struct list link; // of those who wait for the same version
};

/* programs: see host_program; path: folder with all versions. Both are copied. */
struct version_store *version_store_create(struct loop *loop, const char *path,
                                           const char *programs);
void version_store_destroy(struct version_store *store);

/* Lets the store fetch missing versions; until then it has only those in its folder.
 *
 * shared is borrowed for as long as the store lives. */
void version_store_use(struct version_store *store, const struct version_shared *shared);

/* Stops fetching. Requests in line get ERR_RULE soon. */
void version_store_stop(struct version_store *store);
bool version_store_is_idle(const struct version_store *store);

/* Calls done later, once: with the version, or why it cannot be executed here. */
void version_store_provide(struct version_store *store, const struct run_message *message,
                           struct version_request *request);

/* Cancels the request: done will not be called. Also allowed after done. */
void version_store_forget(struct version_request *request);
