/* version_fetch.h - brings a version that the gateway has to this machine, one at a time.
 *
 *   begin ─► archive into a file ─► its index ─► version_build, which does not index ─► done
 *
 * For a machine that has not built the version, and for one whose folder of it is damaged or
 * gone: that is removed first. */
#pragma once

#include "supervisor/versions/building.h"

struct version_fetch;

/* Borrowed for as long as it lives. */
struct version_fetch_options {
    struct loop *loop;
    struct upward *upward;
    struct processes *processes;
    struct site *site;
    struct tenants *tenants;
    struct version_sweep *sweep;
    const char *programs; /* host_program */
    char *const *outer;   /* the environment of this process */
    const char *cgroup;   /* the root of groups; NULL: none */
    struct building_settings settings;
};

/* What is wanted: copied. */
struct fetched_version {
    const char *deployment;
    const char *version;
    const char *archive_hash; /* SHA-256, in hex */
    const char *organization; /* whose user makes it */
};

/* why: the reason, unless status is OK. Another one may be begun. */
typedef void version_fetch_done_fn(void *owner, enum err status, const struct failure *why);

struct version_fetch *version_fetch_create(const struct version_fetch_options *options);

/* Nothing is under way. done comes later, once. */
void version_fetch_begin(struct version_fetch *fetch, const struct fetched_version *wanted,
                         version_fetch_done_fn *done, void *owner);

/* What is under way ends soon: done comes with ERR_DRAINING. NULL is fine. */
void version_fetch_stop(struct version_fetch *fetch);

/* It is idle. NULL is fine. */
void version_fetch_destroy(struct version_fetch *fetch);
