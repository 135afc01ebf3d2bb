/* deployments.h - the deployments of all environments: the service behind their calls.
 *
 *   bundle ─► PENDING ─► a builder asks (builds.h) ─► it reports ─► DEPLOYED ─► current
 *                │             │                          │
 *                └─ 15 min     └─ deploy-timeout          └─ silent for 60 s, or this gateway was
 *                   TIMED_OUT     TIMED_OUT                  restarted: begun anew, once
 *
 * All of an environment's deployments are in memory; of those that have ended without a version
 * only the newest. Beside the rows there are files (api/artifacts/kept_files.h): the
 * archive, the index and the log of each. A file goes after its row has said so: what a
 * crash leaves behind is removed at the next start. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct api;
struct deployments;
struct document;
struct environment;

struct deployment_options {
    const char *data;   /* the data directory */
    int64_t hold_ms;    /* how long a call of the CLI is held, each time that it asks */
    int64_t timeout_ms; /* of a build */
    int64_t keep;       /* versions that an environment keeps at least */
    bool executes; /* a supervise role of the gateway's own builds, as soon as it asks */
};

struct deployments *deployments_create(struct api *api,
                                       const struct deployment_options *options);

/* Stopped, or never started. NULL is fine. */
void deployments_destroy(struct deployments *all);

/* What a document of DOC_DEPLOYMENT or DOC_BUILD_VARIABLES says, at start, when the worker
 * versions are there; the latter come later. */
enum err deployments_restore(struct deployments *all, struct environment *env,
                             const struct document *document, struct failure *why);

/* All is restored: what was being built begins anew, files that nothing names are removed. The
 * store takes commits. ERR_INTERNAL with the reason: the folder cannot be made. */
enum err deployments_start(struct deployments *all, struct failure *why);

/* Every call is answered: nothing new is begun. False: something is on its way to the store;
 * to be asked again. */
bool deployments_stop(struct deployments *all);

/* The environment was archived: what is not final is canceled. */
void deployments_retire(struct deployments *all, const struct environment *env);

/* The deployments of a retired environment leave memory, and their files the disk. False: one
 * of them is being written. */
bool deployments_forget(struct deployments *all, const struct environment *env);
