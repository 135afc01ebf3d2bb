/* build_job.h - parses a deployment that the gateway hands out to be built.
 *
 * Ids become names of folders and values of variables, and are checked for that. */
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
    char organization[BUILD_ID_MAX]; /* "": the gateway does not send it */
    char archive_hash[BUILD_HASH_MAX];
    int64_t archive_bytes;
    int64_t deadline_ms; /* from the hand-out */
    int64_t attempt;
    struct bytes *content_hash;
    struct bytes *branch; /* NULL: none */
    struct bytes *key; /* secret: authorizes the index to register this version's tasks */
    struct bytes *api_url;
    struct bytes *variables; /* secret: a JSON object of strings; NULL: none */
};

/* Parses one element of the gateway's response, which must be valid JSON.
 *
 * Returns ERR_INVALID with the reason. A deployment id that could be read is set even then.
 * Call build_job_finish in any case. */
enum err build_job_read(struct slice text, struct build_job *job, struct failure *why);

/* Wipes the secrets. A zeroed job is allowed. */
void build_job_finish(struct build_job *job);

/* Returns true for a valid folder name: letters, digits, - and _. */
bool build_id_is_right(struct slice id);
