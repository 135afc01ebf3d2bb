/* deployments.h - the service that holds the deployments of all environments.
 *
 *   bundle ─► PENDING ─► a builder takes it (builds.h) ─► it reports ─► DEPLOYED ─► current
 *                │             │                            │
 *                └─ 15 min     └─ deploy-timeout            └─ silent for 60 s, or gateway
 *                   TIMED_OUT     TIMED_OUT                    restarted: again, once
 *
 * All deployments of an environment are in memory, except that of those that ended without
 * a version only the newest are. Each has files in addition to its row
 * (api/artifacts/kept_files.h): an archive, an index and a log. A file is removed once its
 * row no longer names it. Files left over by a crash are removed at the next start. */
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
    int64_t hold_ms;    /* how long each of the CLI's calls is held */
    int64_t timeout_ms; /* of a build */
    int64_t keep;       /* versions that an environment keeps, at least */
    bool executes;      /* a supervise role of this gateway builds, once it has called */
};

struct deployments *deployments_create(struct api *api,
                                       const struct deployment_options *options);

/* Requires that it was stopped or never started. Ignores NULL. */
void deployments_destroy(struct deployments *all);

/* Restores a document of DOC_DEPLOYMENT or DOC_BUILD_VARIABLES at startup. Call it after
 * the worker versions were restored, and for the former kind first. */
enum err deployments_restore(struct deployments *all, struct environment *env,
                             const struct document *document, struct failure *why);

/* Starts the service once everything is restored and the store accepts commits. Builds that
 * were in progress begin again, and files that no row names are removed. Returns
 * ERR_INTERNAL with the reason if the folder cannot be created. */
enum err deployments_start(struct deployments *all, struct failure *why);

/* Begins nothing more; call it once every call has its reply. Returns false while something
 * is being written: call it again. */
bool deployments_stop(struct deployments *all);

/* Cancels unfinished deployments of an environment that was archived. */
void deployments_retire(struct deployments *all, const struct environment *env);

/* Frees the deployments of a retired environment, and removes their files. Returns false if
 * one of them is still in use. */
bool deployments_forget(struct deployments *all, const struct environment *env);
