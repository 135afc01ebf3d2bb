/* deployments.h - the service that holds the deployments of all environments.
 *
 *   bundle ─► PENDING ─► a builder takes it (builds.h) ─► it reports ─► DEPLOYED ─► current
 *                │             │                            │
 *                └─ 15 min     └─ deploy-timeout            └─ silent for 60 s, or gateway
 *                   TIMED_OUT     TIMED_OUT                    restarted: again, once
 *
 * All deployments of an environment are in memory, but only the newest of those that ended
 * without a version. Each has files along with its row (api/artifacts/kept_files.h): an
 * archive, an index and a log. A file is removed after its row no longer names it. Files
 * that a crash leaves over are removed at the next start. */
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
    int64_t hold_ms;    /* how long each call of the CLI is held */
    int64_t timeout_ms; /* of a build */
    int64_t keep;       /* versions that an environment keeps at least */
    bool executes;      /* a supervise role of this gateway builds, once it has called */
};

struct deployments *deployments_create(struct api *api,
                                       const struct deployment_options *options);

/* Requires that it was stopped, or never started. Ignores NULL. */
void deployments_destroy(struct deployments *all);

/* Restores a document of DOC_DEPLOYMENT or DOC_BUILD_VARIABLES at start. Call it after the
 * worker versions were restored, and for the former kind first. */
enum err deployments_restore(struct deployments *all, struct environment *env,
                             const struct document *document, struct failure *why);

/* Starts the service when all is restored and the store takes commits. Builds that were in
 * progress begin again, and files that no row names are removed. Returns ERR_INTERNAL with
 * the reason if the folder cannot be made. */
enum err deployments_start(struct deployments *all, struct failure *why);

/* Begins nothing more; call it when every call is answered. Returns false while something
 * is being written: call it again. */
bool deployments_stop(struct deployments *all);

/* Cancels what is not final in an environment that was archived. */
void deployments_retire(struct deployments *all, const struct environment *env);

/* Frees the deployments of a retired environment, and removes their files. Returns false if
 * one of them is still in use. */
bool deployments_forget(struct deployments *all, const struct environment *env);
