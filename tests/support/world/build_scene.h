/* build_scene.h - a build of a small bundle with real children, whose node is a script.
 *
 * child_world.h has the children; npm is a script too. */
#pragma once

#include "supervisor/versions/version_build.h"

/* A Containerfile with these commands. */
#define BUILD_COPY "COPY --chown=node:node"
#define BUILD_STAGE(commands)                                                              \
    "FROM x AS build\n" BUILD_COPY " package.json ./\n"                                    \
    "RUN npm i --no-audit --no-fund --no-save --no-package-lock\n" BUILD_COPY              \
    " . .\n" commands BUILD_COPY " . .\nRUN mkdir -p node_modules\nFROM scratch AS code\n"

extern const char build_scene_index[]; /* an index.sh that writes a correct index */

struct build_scene {
    char *top;
    struct version_build_options options;
    struct build_job job;
    struct version_build_task task;
    char *archive, *scratch;
    struct version_build *build;
    bool done;
    bool ok, canceled;
    char *error, *message, *errors, *index;
    struct build_output output;
    struct buf log;
    int children;   /* children that are alive */
    pid_t last;     /* the newest child */
    unsigned begun; /* children so far */
};

/* index: what index.sh of the bundle does, which the script for node executes. */
void build_scene_begin(struct build_scene *scene, const char *containerfile,
                       const char *index);
void build_scene_end(struct build_scene *scene);

/* Packs the bundle's folder, and begins its build. */
void build_scene_pack(struct build_scene *scene);
void build_scene_start(struct build_scene *scene);
void build_scene_wait(struct build_scene *scene);
void build_scene_run(struct build_scene *scene);

/* The callback of version_build_begin. */
void build_scene_done(void *owner, const struct version_outcome *outcome);

/* Resets the outcome, for another build. */
void build_scene_forget(struct build_scene *scene);

/* Runs a build that fails with this message, and ends the scene. */
void build_scene_fails(struct build_scene *scene, const char *message,
                       const char *errors_part);

/* Moves the build's output so far to the log. */
void build_scene_log(struct build_scene *scene);

/* Names are relative to the scene's folder. The caller frees the path. */
char *build_scene_path(const struct build_scene *scene, const char *name);
void build_scene_folder(const struct build_scene *scene, const char *name, mode_t mode);
void build_scene_write(const struct build_scene *scene, const char *name, const char *text,
                       mode_t mode);
bool build_scene_has(const struct build_scene *scene, const char *name);

/* The content with a zero after it; the caller frees it. */
struct buf build_scene_read(const struct build_scene *scene, const char *name);

/* Returns how many folders of versions exist, unfinished ones included. */
unsigned build_scene_versions(const struct build_scene *scene);
