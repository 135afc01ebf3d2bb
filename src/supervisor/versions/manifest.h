/* manifest.h - build.json and package.json: what a bundle says of itself, and what it installs.
 *
 * The paths of build.json are those of an image, below /app. A version stands elsewhere: manifest_move writes
 * the same manifest with the paths that are right there, and index_move the index of its tasks. */
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
    char *index_controller, *run_controller; /* below the root: "node_modules/…" */
    char *runtime;                           /* "node-22" */
    char *content_hash;
    char *cli_version;

    /* What an image would have given. */
    struct bytes **packages; /* names of system packages */
    size_t package_count;
    bool has_base;         /* an image of its own */
    bool has_instructions; /* steps that make one */
};

/* ERR_INVALID: it cannot be built, and why. The manifest has to be finished in any case. */
enum err manifest_read(struct slice text, struct manifest *manifest, struct failure *why);
void manifest_finish(struct manifest *manifest);

/* Written by a CLI whose bundles nobody has tried: told with the log, not refused. */
bool manifest_is_untried(const struct manifest *manifest);

/* A text that manifest_read accepted, with another folder instead of the root. */
void manifest_move(struct slice text, const char *folder, struct buf *out);

/* A valid JSON text in which every text that is a path in one folder (or the folder) names the
 * other instead. */
void index_move(struct slice text, const char *from, const char *to, struct buf *out);

/* Sets has if package.json names packages to install. ERR_INVALID: it is not a JSON object. */
enum err package_has_dependencies(struct slice text, bool *has, struct failure *why);

/* Appends package.json without "workspaces". The CLI keeps that member, whose folders are not in a
 * bundle, and bun installs nothing then ("Workspace not found"). Returns false if the text has no
 * such member, and appends nothing. */
bool package_without_workspaces(struct slice text, struct buf *out);
