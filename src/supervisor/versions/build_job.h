/* build_job.h - what the gateway hands out to be built: a deployment, and all that its build
 * needs to know.
 *
 * Ids are names of folders and of variables, and are judged as such. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

enum {
    BUILD_ID_MAX = 64,
    BUILD_VERSION_MAX = 32,
    BUILD_HASH_MAX = 65, /* SHA-256 in hex digits */
};

struct build_job {
    char deployment[BUILD_ID_MAX], version[BUILD_VERSION_MAX];
    char environment[BUILD_ID_MAX], project[BUILD_ID_MAX], project_ref[BUILD_ID_MAX];
    char organization[BUILD_ID_MAX]; /* "": the gateway does not say it */
    char archive_hash[BUILD_HASH_MAX];
    int64_t archive_bytes;
    int64_t deadline_ms; /* from when it is handed out */
    int64_t attempt;
    struct bytes *content_hash;
    struct bytes *branch; /* NULL: none */
    struct bytes *key;    /* a secret: what the index may say of this version with it */
    struct bytes *api_url;
    struct bytes *variables; /* secret: a JSON object of texts; NULL: none */
};

/* text: one element of the gateway's answer, valid JSON. ERR_INVALID with the reason; an id that
 * could be read is there all the same, and the job has to be finished. */
enum err build_job_read(struct slice text, struct build_job *job, struct failure *why);

/* Wipes its secrets. A zeroed one is fine. */
void build_job_finish(struct build_job *job);

/* Names of folders: letters, digits, - and _. */
bool build_id_is_right(struct slice id);
