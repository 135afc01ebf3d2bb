/* worker_versions.h - who can execute what in one environment: worker versions and their tasks.
 *
 *   plain registration ─────────────────────────────┐
 *   deployment: registered ─► DEPLOYED ─(promoted)──┴─► current
 *
 * One version is current: outside of dev the one that was promoted last
 * (api/workers/promotion.h), before the first promotion and in dev the newest plain
 * registration; in dev each one that a session asks with is current (dev_sessions.h).
 * Versions are kept as documents (api/workers/registration.h); here they are looked up. A
 * developer makes one whenever a file is saved, so the oldest ones go; those of deployments
 * go when their deployments do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "base/table.h"
#include "base/text.h"
#include "runcast/run.h"

struct worker_task {
    struct bytes *id;
    struct bytes *file_path, *export_name;
    struct bytes *queue; /* NULL: "task/<id>" */
    struct bytes *ttl;   /* NULL: none */
    int machine;         /* enum machine; -1: none named */
    uint8_t big_machine; /* enum machine: after running out of memory; 0: no retry then */
    bool is_scheduled;
    struct bytes *schema;                   /* of its payload, JSON; NULL: none is kept */
    struct bytes *cron, *timezone, *window; /* of its declared schedule; NULL: none */
    unsigned schedule_in; /* where it is declared: bits of the environments' types */
    bool has_retry;
    uint16_t max_attempts; /* 0: no retry settings */
    double factor;
    int64_t min_timeout_ms, max_timeout_ms;
    bool randomize;
    uint32_t max_duration_s; /* 0: none */
};

enum {
    VERSIONS_KEPT = 1000,                      /* of one environment */
    TASKS_KEPT = 50000,                        /* of all its versions together */
    PROJECT_VERSIONS_KEPT = 4 * VERSIONS_KEPT, /* of all its environments */
    PROJECT_TASKS_KEPT = 4 * TASKS_KEPT,
    VERSIONS_SPARED = 20, /* each environment keeps these, however many its project has */
    TASKS_SPARED = 1000,
    VERSIONS_REMEMBERED = 1000, /* that are not kept any more */
    WORKER_VERSION_MAX = 24,
    WORKER_RUNTIME_MAX = 24,
    PACKAGE_VERSION_MAX = 64,
    EXTERNAL_ID_MAX = 128, /* UTF-16 units of what a user calls a deployment */
};

struct queue_limit {
    struct bytes *name;
    uint32_t limit;     /* UINT32_MAX: none of its own */
    bool is_named_only; /* by a task that gives no limit: whatever limit it has, it keeps */
};

struct session;

struct worker {
    char id[ID_MAX];                  /* "worker_…" */
    char version[WORKER_VERSION_MAX]; /* "20261120.1" */
    char content_hash[128];
    char sdk[PACKAGE_VERSION_MAX]; /* version of the package; "": not said */
    char cli[PACKAGE_VERSION_MAX]; /* the same */
    char deployment[ID_MAX];       /* "deployment_…"; "": registered without one */
    char short_code[16];           /* of the deployment */
    char external_id[3 * EXTERNAL_ID_MAX + 1]; /* what its user calls it; "": nothing */
    char archive_hash[65];                     /* SHA-256 of its archive, in hex */
    char runtime[WORKER_RUNTIME_MAX];          /* of the deployment: "node-22" */
    bool is_deployed;    /* runs may have it; a deployment's from its DEPLOYED on */
    bool has_limits;     /* its queues count as registered with its limits */
    uint32_t promotions; /* to it, under way: it stays meanwhile */
    int64_t created_at;
    struct worker_task *tasks; /* by id */
    size_t task_count;
    struct queue_limit *queues; /* in the order in which they are to be set */
    size_t queue_count;
    struct table queues_by_name; /* of struct queue_limit: the first of each name */
    struct bytes *warnings;      /* what it declares and the gateway does not have, as JSON
                                    (api/workers/unsupported.h); NULL: nothing */
    struct session *session;     /* that has it (dev_sessions.h); NULL: none */
};

struct workers {
    struct worker **all; /* oldest first */
    size_t count;
    size_t tasks;        /* of all versions */
    struct table newest; /* of struct worker_task by id: that of the newest version */
    struct worker *current;
    uint32_t
        pointer; /* version of the document that says which is current; 0: there is none */
    char reserved[WORKER_VERSION_MAX]; /* the highest that a deployment has; "": none */
    char tried
        [WORKER_VERSION_MAX]; /* the highest that a registration may be about to have */
    char (*gone)[WORKER_VERSION_MAX]; /* of deployments, not kept any more; oldest first */
    size_t gone_count;
};

/* Below 0 when version a was made before b, above 0 when after it, 0 if they are the same. */
int version_compare(struct slice a, struct slice b);

struct workers *workers_create(void);
void workers_destroy(struct workers *workers);

/* Sorts the tasks of a worker by their ids and indexes its queues by name, which is how both
 * are found; once, before it is added. */
void worker_sort(struct worker *worker);

/* Takes over the worker. It is the current one if it is the newest, no deployment's, and
 * nothing was promoted yet. */
void workers_add(struct workers *workers, struct worker *worker);
void worker_destroy(struct worker *worker);

/* The worker, which is among them, is the current one: the document that says so has this
 * version. */
void workers_promote(struct workers *workers, struct worker *worker, uint32_t pointer);

/* Nothing needs the worker but perhaps runs. */
static inline bool workers_may_take(const struct workers *workers,
                                    const struct worker *worker)
{
    return worker != workers->current && !worker->promotions;
}

/* The worker, which is not the current one, is not among them any more, and the caller's. */
void workers_take(struct workers *workers, struct worker *worker);

/* Versions and tasks of the other environments of a project. */
struct workers_beside {
    size_t versions, tasks;
};

/* The oldest version when there are more than are kept; the caller's. Never the current
 * one, one that is being promoted, nor a deployment's; for the limits of the project none that
 * a session has either. NULL: none has to go. */
struct worker *workers_take_excess(struct workers *workers, struct workers_beside beside);

/* A version of a deployment is not kept any more: who names it is told so. */
void workers_note_gone(struct workers *workers, struct slice version);
bool workers_knows_gone(const struct workers *workers, struct slice version);

/* Whether the worker is newer than the other; both are among them. */
bool workers_is_newer(const struct workers *workers, const struct worker *worker,
                      const struct worker *than);

/* The current version of the environment: what a run is judged by that names none, and its
 * declared schedules come from, elsewhere than in dev. When another one is, the sweep
 * (engine_sweep_environment) judges what waits and what is queued. NULL: none registered. */
const struct worker *workers_current(const struct workers *workers);

/* NULL: there is none, or its deployment is not DEPLOYED. */
const struct worker *workers_by_version(const struct workers *workers,
                                        struct slice version);

/* The version of a deployment, whatever state that is in. NULL: it has none. */
struct worker *workers_by_deployment(const struct workers *workers,
                                     struct slice deployment);

/* The highest version that is DEPLOYED under this name of its user. NULL: none is. */
const struct worker *workers_by_external(const struct workers *workers, struct slice id);

/* The version that the run is locked to; that of the deployment which its trigger names;
 * else the current one. */
const struct worker *workers_for(const struct workers *workers, const struct run *run);

const struct worker_task *worker_task(const struct worker *worker, struct slice task);

/* True if the version declares the queue. A task that names no queue declares "task/<id>". */
bool worker_has_queue(const struct worker *worker, struct slice queue);

/* The task of the current version, else of any, newest first. */
const struct worker_task *workers_task(const struct workers *workers, struct slice task);

/* The task of the version that the run is to be executed by (workers_for); of another one
 * if that is not there or has it not. */
const struct worker_task *workers_task_of(const struct workers *workers,
                                          const struct run *run);

/* For a registration: "YYYYMMDD.n", n counted per day from 1, higher than those of all
 * versions that are there or reserved. Of two that ask at once the store lets one in. */
void workers_next_version(struct workers *workers, int64_t now_ms,
                          char out[WORKER_VERSION_MAX]);

/* For a deployment: the same, reserved; nobody else gets it. */
void workers_take_version(struct workers *workers, int64_t now_ms,
                          char out[WORKER_VERSION_MAX]);

/* A deployment has this version; at start. */
void workers_reserve_version(struct workers *workers, struct slice version);
