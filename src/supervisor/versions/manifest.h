/* manifest.h - parses and rewrites a bundle's build.json and package.json.
 *
 * The paths in build.json are those of a container image, below /app. Here, a version is in
 * another folder: manifest_move rewrites the manifest for it, and index_move the index of
 * its tasks. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

enum {
    MANIFEST_BYTES_MAX = 16 << 20,
    MANIFEST_PACKAGES_MAX = 1000,
};

#define MANIFEST_ROOT "/app"

struct manifest {
    char *index_controller, *run_controller; /* relative to the root: "node_modules/…" */
    char *runtime;                           /* such as "node-22" */
    char *content_hash;
    char *cli_version;

    /* Parts that an image would have provided. */
    struct bytes **packages; /* names of system packages */
    size_t package_count;
    bool has_base;         /* it has its own base image */
    bool has_instructions; /* it has steps that change its image */
};

/* Returns ERR_INVALID with the reason if the version cannot be built.
 *
 * Call manifest_finish in any case. */
enum err manifest_read(struct slice text, struct manifest *manifest, struct failure *why);
void manifest_finish(struct manifest *manifest);

/* Returns true if bundles of this CLI version were not tested.
 *
 * That causes a warning in the log, not a rejection. */
bool manifest_is_untested(const struct manifest *manifest);

/* Rewrites a text that manifest_read accepted, with folder instead of the root. */
void manifest_move(struct slice text, const char *folder, struct buf *out);

/* Rewrites a valid JSON text: replaces the folder `from` at the start of paths with
 * `to`. */
void index_move(struct slice text, const char *from, const char *to, struct buf *out);

/* Sets *has if package.json names packages to install. Returns ERR_INVALID if it is not a
 * JSON object. */
enum err package_has_dependencies(struct slice text, bool *has, struct failure *why);

/* Appends package.json without "workspaces".
 *
 * The CLI keeps that member, but its folders are not in a bundle, so bun would install
 * nothing ("Workspace not found"). Returns false and appends nothing if the member is
 * missing. */
bool package_without_workspaces(struct slice text, struct buf *out);
