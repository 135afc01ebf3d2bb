/* version_build.h - makes a version from its archive: a folder with everything that its
 * runs need.
 *
 *   begin ─► hash ─► check ─► npm ─► unpack ─► commands ─► index ─► put in place ─► done
 *            pool    child    child   child    children    child       pool
 *
 * The archive and everything in it are untrusted, so only children read and execute it: as
 * the build's own user, with only the environment that build_environment.h lists, until the
 * deadline. The build itself makes no calls to the gateway; the caller reports its
 * outcome. */
#pragma once

#include "base/loop.h"
#include "os/archive/bundle.h"
#include "os/process/process.h"
#include "supervisor/versions/build_job.h"
#include "supervisor/versions/build_output.h"
#include "supervisor/versions/image_needs.h"

struct version_build;

/* Borrowed until done. */
struct version_build_options {
    struct loop *loop;
    struct processes *processes;
    const char *versions; /* path of the folder with all versions, absolute */
    const char *architecture, *libc;
    struct image_settings image;
    bool no_scripts;    /* install packages without their scripts */
    const char *passed; /* see build_home */
    char *const *outer; /* see build_home */
    const char *cgroup; /* root of the control groups (cgroup.h); NULL: none */
    bool apart;         /* children have no temporary folder but the scratch */
    uint64_t memory;    /* bytes that its children may use */
    const struct bundle_limits *limits;
    /* Finds the program that executes this runtime here; *program is to be freed. Returns
     * an error with the reason if there is none. */
    enum err (*find_program)(void *owner, struct slice runtime, char **program,
                             struct failure *why);
    /* Called when a child has started, and when none of its processes is left. */
    void (*on_child)(void *owner, pid_t pid, bool begins);
    void *owner; /* for both functions */
};

/* One build; borrowed until done. */
struct version_build_task {
    const struct build_job *job;
    const char *archive; /* path of the archive */
    const char *scratch; /* scratch folder, which belongs to user */
    struct process_user user;
    /* collects the output; the caller initializes and finishes it */
    struct build_output *output;
    /* The index, if another machine has made it; absent: make it here. */
    struct slice index;
};

enum version_build_step { VERSION_BUILD_INSTALLING, VERSION_BUILD_BUILDING };

/* Valid only during the call of done. */
struct version_outcome {
    bool ok;
    bool canceled;
    struct slice index; /* with the paths of an image, as the gateway stores it */
    uint64_t bytes;     /* size of the folder */
    const char *error;  /* error name: "BuildError", "TimeoutError" */
    const char *message;
    struct slice errors; /* last lines of the child that failed */
};

/* Called once at the end; the build is freed when it returns. */
typedef void version_build_done_fn(void *owner, const struct version_outcome *outcome);

/* Begins a build; done is called later, once. */
struct version_build *version_build_begin(const struct version_build_options *options,
                                          const struct version_build_task *task,
                                          version_build_done_fn *done, void *owner);

/* Kills its children. done is called soon, as canceled unless the version was already
 * made. */
void version_build_cancel(struct version_build *build);

enum version_build_step version_build_step(const struct version_build *build);
