/* version_job.h - makes one version on this machine from its archive, which the gateway keeps.
 *
 *   version_job_begin ─► ARCHIVE ─► INDEX ─► CLEARING ─► MAKING ─► done ─► version_job_finish
 *                           └─ a version to be built ────▲
 *
 *   ARCHIVE    the archive is downloaded into a file                    upward
 *   INDEX      the index is downloaded                                  upward
 *   CLEARING   the damaged version at this place is set aside           pool
 *   MAKING     version_build makes the folder                           version_build
 *   DROPPING   the version that was made is set aside again             pool
 *
 * A version has one of two sources: it is built here (building.h), or another machine has built it
 * and it is fetched (version_store.h). The owner embeds the job and describes the source by a struct
 * version_source. A job makes one version at a time, and can be used for another one after
 * version_job_finish. */
#pragma once

#include "base/work.h"
#include "supervisor/gateway_client/upward.h"
#include "supervisor/versions/site.h"
#include "supervisor/versions/tenants.h"
#include "supervisor/versions/version_build.h"
#include "supervisor/versions/version_sweep.h"

/* Chosen by an operator. */
struct version_settings {
    bool builds;        /* versions are built here */
    const char *passed; /* names of this process's variables that builds get, too */
    struct image_settings image;
    bool no_scripts; /* packages install without their scripts */
    struct bundle_limits limits;
};

/* All jobs of a supervise role share this. Borrowed for as long as a job lives. */
struct version_shared {
    struct loop *loop;
    struct upward *upward;
    struct processes *processes;
    struct site *site;
    struct tenants *tenants;
    struct version_sweep *sweep;
    const char *programs; /* host_program */
    char *const *outer;   /* the environment of this process */
    const char *cgroup;   /* the root of groups; NULL: none */
    struct version_settings settings;
    struct version_build_options build; /* set by version_shared_init */
};

/* Derives build from the other members. The struct must not move afterwards. */
void version_shared_init(struct version_shared *shared);

/* The difference between building and fetching. Functions are called on the loop, with the owner. */
struct version_source {
    const char *scratch; /* "build-": the deployment follows in the name of the folder */
    bool is_indexed;     /* another machine has built it: INDEX and CLEARING are needed */

    /* Messages of failures. */
    const char *unwritable; /* the file of the archive cannot be opened */
    const char *unasked;    /* a request cannot be sent; NULL: the message is the reason */
    const char *full;       /* the disk is full */
    const char *away;       /* the gateway does not answer */
    const char *gone;       /* the gateway answers 404 */
    const char *refused;    /* the gateway answers with another status */

    /* Returns the ms after which a failed request is repeated; -1: it is not repeated. */
    int64_t (*pause)(void *owner);
    /* Called once for each version_job_begin. May call version_job_finish. */
    version_build_done_fn *done;
    /* Called once for each version_job_drop. NULL if no version is dropped. */
    void (*dropped)(void *owner);
};

enum version_job_state {
    VERSION_JOB_IDLE,
    VERSION_JOB_ARCHIVE,
    VERSION_JOB_INDEX,
    VERSION_JOB_CLEARING,
    VERSION_JOB_MAKING,
    VERSION_JOB_DROPPING
};

/* Embedded by its owner, who reads it, and writes order alone. */
struct version_job {
    const struct version_shared *shared;
    const struct version_source *source;
    void *owner;
    enum version_job_state state; /* in done: the state that ended the job */
    bool canceled;
    struct build_job order;     /* set before version_job_begin */
    struct build_output output; /* of the children; there until version_job_finish */

    /* Private. */
    struct timer timer;
    struct upward_call call;
    bool calls;                          /* the call is in flight */
    int file;                            /* the archive during its download; -1: none */
    char *archive, *scratch;             /* paths; NULL: none */
    char scratch_name[BUILD_ID_MAX + 8]; /* of the folder */
    struct bytes *index;
    struct version_build *build;
    struct work work;
};

void version_job_init(struct version_job *job, const struct version_shared *shared,
                      const struct version_source *source, void *owner);

/* The job is idle, and its order is set. done is called later. */
void version_job_begin(struct version_job *job);

/* Between version_job_begin and done: done is called soon, perhaps before this returns. It reports
 * a failure, unless the version was made already. */
void version_job_cancel(struct version_job *job);

/* After done, once: sets aside the version that was made. */
void version_job_drop(struct version_job *job);

/* After done, or when nothing was begun: removes the job's files and wipes its order. */
void version_job_finish(struct version_job *job);

/* Returns true if the build has come to the commands of the version. */
bool version_job_is_building(const struct version_job *job);
