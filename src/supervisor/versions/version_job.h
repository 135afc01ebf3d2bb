/* version_job.h - makes one version on this machine from the gateway's archive.
 *
 *   version_job_begin ─► ARCHIVE ─► INDEX ─► CLEARING ─► MAKING ─► done ─► …_finish
 *                           └─ a version to be built ────▲
 *
 *   ARCHIVE    the archive is downloaded into a file                    gateway
 *   INDEX      the index is downloaded                                  gateway
 *   CLEARING   a damaged version in this place is set aside             pool
 *   MAKING     version_build makes the folder                           version_build
 *   DROPPING   the finished version is set aside again                  pool
 *
 * A version is either built here (building.h), or was built on another machine and is
 * fetched (version_store.h). The owner embeds the job and describes the kind of work in a
 * struct version_source. A job makes one version at a time, and can be reused after
 * version_job_finish. */
#pragma once

#include "base/work.h"
#include "supervisor/gateway_client/gateway_client.h"
#include "supervisor/versions/site.h"
#include "supervisor/versions/tenants.h"
#include "supervisor/versions/version_build.h"
#include "supervisor/versions/version_sweep.h"

/* The operator's settings. */
struct version_settings {
    bool builds;        /* build versions on this machine */
    const char *passed; /* names of this process's variables that builds also get */
    struct image_settings image;
    bool no_scripts; /* install packages without their scripts */
    struct bundle_limits limits;
};

/* Shared by all jobs of a supervise role. Borrowed for as long as a job lives. */
struct version_shared {
    struct loop *loop;
    struct gateway_client *gateway_client;
    struct processes *processes;
    struct site *site;
    struct tenants *tenants;
    struct version_sweep *sweep;
    const char *programs; /* host_program */
    char *const *outer;   /* the environment of this process */
    const char *cgroup;   /* root of the control groups; NULL: none */
    struct version_settings settings;
    struct version_build_options build; /* set by version_shared_init */
};

/* Derives build from the other members. The struct must not move afterwards. */
void version_shared_init(struct version_shared *shared);

/* How a job builds or fetches. Callbacks are called on the loop, with the owner. */
struct version_source {
    /* prefix of its scratch folder's name, such as "build-"; the deployment follows */
    const char *scratch;
    bool is_indexed; /* built on another machine: INDEX and CLEARING are needed */

    /* Error messages. */
    const char *unwritable; /* cannot open the archive's file */
    const char *not_sent;   /* cannot send a request; NULL: use the reason */
    const char *full;       /* the disk is full */
    const char *away;       /* no response from the gateway */
    const char *gone;       /* response 404 */
    const char *refused;    /* response with another status */

    /* Returns the ms after which a failed request is retried; -1: do not retry. */
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

/* Embedded by its owner, who may read it but write only order. */
struct version_job {
    const struct version_shared *shared;
    const struct version_source *source;
    void *owner;
    enum version_job_state state; /* in done: the state in which the job ended */
    bool canceled;
    struct build_job order;     /* set it before version_job_begin */
    struct build_output output; /* of the children; valid until version_job_finish */

    /* Private. */
    struct timer timer;
    struct gateway_call call;
    bool calls;                          /* the call is in flight */
    int file;                            /* the archive during its download; -1: none */
    char *archive, *scratch;             /* paths; NULL: none */
    char scratch_name[BUILD_ID_MAX + 8]; /* name of the scratch folder */
    struct bytes *index;
    struct version_build *build;
    struct work work;
};

void version_job_init(struct version_job *job, const struct version_shared *shared,
                      const struct version_source *source, void *owner);

/* Requires an idle job with its order set. done is called later. */
void version_job_begin(struct version_job *job);

/* Cancels a job between version_job_begin and done.
 *
 * done is called soon, perhaps before this returns. It reports a failure, unless the
 * version was already made. */
void version_job_cancel(struct version_job *job);

/* Sets aside the finished version. Call it at most once, after done. */
void version_job_drop(struct version_job *job);

/* Removes the job's files and wipes its order. Call it after done, or if nothing was
 * begun. */
void version_job_finish(struct version_job *job);

/* Returns true once the build has reached the commands of the version. */
bool version_job_is_building(const struct version_job *job);
