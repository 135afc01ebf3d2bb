/* version_store.h - the versions that this machine has, each in a folder of its own.
 *
 *   versions/ID/build.json      what the bundle says of itself, its paths rewritten to here
 *              /runcast.json    what the builder says of it: architecture, libc, hash
 *              /…               node_modules, controllers, tasks
 *
 * A folder is there whole or not at all, and nothing in it changes. One that is not there, or is
 * damaged, is fetched from the gateway (version_job.h), once for all who want it:
 *
 *   provide ─► here? ─► done
 *                └─ no ─► in line ─► fetched ─► done, for all who wait
 *                             └─ it failed: done with the reason, and again in a while */
#pragma once

#include "base/loop.h"
#include "supervisor/gateway_client/run_message.h"

struct version_store;
struct version_shared;

/* Borrowed from the store, for as long as it lives. */
struct ready_version {
    char id[MESSAGE_ID_MAX];
    char *directory;
    char *entry;   /* of the run controller */
    char *program; /* that executes it */
    char *content_hash;
};

/* One wants a version: embedded by who does. */
struct version_wish {
    void (*done)(struct version_wish *wish, enum err status);
    const struct ready_version *version; /* when status is OK */
    struct failure why;                  /* else */
    struct deferred later;
    enum err status;
    struct list link; // of those who wait for the same version
};

/* programs: as host_program takes them; path: the folder of all. Copied. */
struct version_store *version_store_create(struct loop *loop, const char *path,
                                           const char *programs);
void version_store_destroy(struct version_store *store);

/* Lets the store fetch versions that are not here; before this call it has only those that are.
 * shared is borrowed for as long as the store lives. */
void version_store_use(struct version_store *store, const struct version_shared *shared);

/* Whoever waits is told soon that it ends. */
void version_store_stop(struct version_store *store);
bool version_store_is_idle(const struct version_store *store);

/* done comes later, once: with the version, or why it cannot be executed here. */
void version_store_provide(struct version_store *store, const struct run_message *message,
                           struct version_wish *wish);

/* done does not come any more. Harmless when it came. */
void version_store_forget(struct version_wish *wish);
