/* version_build.h - makes a version out of its archive: one folder with everything that its runs
 * need.
 *
 *   begin ─► hashed ─► judged ─► npm ─► everything unpacked ─► commands ─► index ─► in its place ─► done
 *            (pool)   (child)  (child)       (child)          (children)  (child)     (pool)
 *
 * Strangers wrote the archive and everything in it. So it is read and executed by children: as
 * the build's own user, with an environment from nothing, until the deadline. It asks nobody but the
 * children; whoever began it tells the gateway. */
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
    const char *versions; /* the folder of all, absolute */
    const char *architecture, *libc;
    struct image_settings image;
    bool no_scripts;    /* packages install without their scripts */
    const char *passed; /* build_home */
    char *const *outer; /* the same */
    const char *cgroup; /* the root of groups (cgroup.h); NULL: none */
    bool apart;         /* children have no folder for temporary files but the scratch */
    uint64_t memory;    /* bytes that its children may take */
    const struct bundle_limits *limits;
    /* The program that executes this runtime here, to be freed; or why there is none. */
    enum err (*find_program)(void *owner, struct slice runtime, char **program,
                             struct failure *why);
    /* Each child, from when it is there until nothing of it is. */
    void (*on_child)(void *owner, pid_t pid, bool begins);
    void *owner; /* of both */
};

/* One build; borrowed until done. */
struct version_build_task {
    const struct build_job *job;
    const char *archive; /* path of the file */
    const char *scratch; /* a folder of the user's own */
    struct process_user user;
    struct build_output *output; /* what it says; its begin and end are the owner's */
    /* That another machine has made: it is not made here. Absent: it is. */
    struct slice index;
};

enum version_build_step { VERSION_BUILD_INSTALLING, VERSION_BUILD_BUILDING };

/* Borrowed for the call of done. */
struct version_outcome {
    bool ok;
    bool canceled;
    struct slice index; /* with the paths of an image, as the gateway keeps it */
    uint64_t bytes;     /* of the folder */
    const char *error;  /* its name: "BuildError", "TimeoutError" */
    const char *message;
    struct slice errors; /* the last lines of the child that failed */
};

/* The build is gone when it returns. */
typedef void version_build_done_fn(void *owner, const struct version_outcome *outcome);

/* done comes later, once. */
struct version_build *version_build_begin(const struct version_build_options *options,
                                          const struct version_build_task *task,
                                          version_build_done_fn *done, void *owner);

/* Its children are killed, and done comes soon: canceled, unless it was done already. */
void version_build_cancel(struct version_build *build);

enum version_build_step version_build_step(const struct version_build *build);
