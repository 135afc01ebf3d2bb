/* supervise.h - the supervise role: executes runs of deployed versions, each in a process, and
 * builds the versions.
 *
 *   gateway ◄── upward, by its calls ── supervise role ── workload API ──► controllers
 *
 * One for a machine and folder. It may live longer than a gateway: while that is away the
 * controllers go on, and what they ask is answered 502.
 *
 *   supervise_start ─► waits for its token ─► dequeues ─ supervise_drain ─► runs finish ─►
 *   on_stopped      and what has not finished in time is killed */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "net/http/server.h"
#include "supervisor/versions/version_job.h"

struct supervise;
struct uv_loop_s;

struct supervise_options {
    const char *url;         /* of the gateway */
    const char *ca_file;     /* more certificates that are trusted; "": none */
    const char *token;       /* of a worker; "": it is in token_file */
    const char *token_file;  /* which the gateway makes at its start; it is waited for */
    const char *folder;      /* site.h */
    const char *instance;    /* name of this supervisor; "": that of the machine */
    const char *programs;    /* host_program */
    const char *runner_user; /* user_resolve; "": as this process, which unsafe permits */
    bool unsafe;
    bool tenants; /* organizations are kept apart: supervise_check says what it takes */
    const char *cgroup; /* "auto", "off" or a path */
    const char *cores;  /* "": those of the machine */
    int64_t memory;     /* bytes; 0: 75 % of the machine's */
    unsigned runs;      /* 0: by cores and memory */
    unsigned waiting;   /* processes; 0: as many as the memory holds */
    bool strict;        /* machines */
    unsigned warm;      /* controllers that are kept */
    int64_t drain_ms;
    struct version_settings versions;
    struct listen_options figures; /* where its metrics are read */
    char *const *environment;      /* of this process */
};

struct supervise_events {
    /* The last call. reason.code OK: drained. */
    void (*on_stopped)(void *owner, const struct failure *reason);
    void *owner;
};

/* What a start would refuse before it looks at anything: ERR_INVALID with what to do. */
enum err supervise_check(const struct supervise_options *options, struct failure *why);

/* options outlive it. A refusal has started nothing. ERR_CONFLICT: another process supervises
 * in that folder. */
enum err supervise_start(struct uv_loop_s *uv, const struct supervise_options *options,
                         const struct supervise_events *events,
                         struct supervise **supervise, struct failure *why);

/* Takes nothing new and lets runs finish; said again, what executes is killed at once. */
void supervise_drain(struct supervise *supervise);
