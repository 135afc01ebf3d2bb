/* supervise.h - the supervise role: builds deployed versions, and executes their runs.
 *
 *   gateway ◄── gateway_client.h ── supervise role ── workload API ──► controllers
 *
 * Each run has a process, with a controller from the SDK that calls the workload API. There
 * is one supervise role per machine and folder. It may outlive a gateway: while the gateway
 * is unreachable, the controllers continue, and their calls get 502.
 *
 *   supervise_start ─► waits for its token ─► dequeues ─ supervise_drain ─► runs finish ─►
 *   on_stopped      and runs that have not finished in time are killed */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/http/server.h"
#include "supervisor/versions/version_job.h"

struct supervise;
struct uv_loop_s;

struct supervise_options {
    const char *url;        /* of the gateway */
    const char *ca_file;    /* additional trusted certificates; "": none */
    const char *token;      /* worker token; "": read it from token_file */
    const char *token_file; /* written by the gateway at startup; the role waits for it */
    const char *folder;     /* the role's folder, see site.h */
    const char *instance;   /* name of this supervisor; "": the host name */
    const char *programs;   /* see host_program */
    /* see user_resolve; "": the user of this process, which requires unsafe */
    const char *runner_user;
    bool unsafe;
    /* isolates organizations from each other; supervise_check has the conditions */
    bool tenants;
    const char *cgroup; /* "auto", "off" or a path */
    const char *cores;  /* "": all of the machine */
    int64_t memory;     /* bytes; 0: 75 % of the machine's memory */
    unsigned runs;      /* max runs at once; 0: limited by cores and memory */
    unsigned waiting;   /* max processes while runs wait; 0: as many as the memory holds */
    bool strict;   /* CPU is a hard limit, and runs larger than the machine are refused */
    unsigned warm; /* max kept controllers */
    int64_t drain_ms;
    struct version_settings versions;
    struct listen_options figures; /* where its metrics are served */
    char *const *environment;      /* of this process */
};

struct supervise_events {
    /* Called last. reason.code is OK if it was drained. */
    void (*on_stopped)(void *owner, const struct failure *reason);
    void *owner;
};

/* Checks the options before starting. Returns ERR_INVALID with what to do instead. */
enum err supervise_check(const struct supervise_options *options, struct failure *why);

/* Starts the role; options must outlive it. An error means that nothing was started.
 *
 * Returns ERR_CONFLICT if another process supervises in that folder. */
enum err supervise_start(struct uv_loop_s *uv, const struct supervise_options *options,
                         const struct supervise_events *events,
                         struct supervise **supervise, struct failure *why);

/* Stops dequeuing and lets runs finish. A second call kills the runs at once. */
void supervise_drain(struct supervise *supervise);
