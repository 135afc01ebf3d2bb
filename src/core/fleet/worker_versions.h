/* worker_versions.h - the worker versions of one environment, and their tasks.
 *
 *   plain registration ─────────────────────────────┐
 *   deployment: registered ─► DEPLOYED ─(promoted)──┴─► current
 *
 * One version is current. Outside of dev it is the last one promoted
 * (api/registration/promotion.h); before the first promotion and in dev, the newest plain
 * registration. In dev, each version that a session dequeues with executes runs
 * (dev_sessions.h).
 *
 * Versions are stored as documents (api/registration/registration.h); this is the in-memory
 * lookup. A developer creates one with every saved file, so the oldest are removed.
 * Versions of deployments are removed with their deployments. */
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
    uint8_t big_machine; /* enum machine: after running out of memory; 0: no retry */
    bool is_scheduled;
    struct bytes *schema;                   /* of its payload, JSON; NULL: none */
    struct bytes *cron, *timezone, *window; /* of its declared schedule; NULL: none */
    struct bytes *limits; /* and gates that its runs need (versions.h); NULL: none */
    bool has_inline;      /* the first of them is its own, "task/<id>" */
    unsigned schedule_in; /* where it is declared: bits of the environments' types */
    bool has_retry;
    uint16_t max_attempts; /* 0: no retry settings */
    double factor;
    int64_t min_timeout_ms, max_timeout_ms;
    bool randomize;
    uint32_t max_duration_s; /* 0: none */
};

enum {
    VERSIONS_KEPT = 1000,                      /* per environment */
    TASKS_KEPT = 50000,                        /* of all its versions together */
    PROJECT_VERSIONS_KEPT = 4 * VERSIONS_KEPT, /* of all its environments */
    PROJECT_TASKS_KEPT = 4 * TASKS_KEPT,
    VERSIONS_SPARED = 20, /* each environment keeps these, whatever its project has */
    TASKS_SPARED = 1000,
    VERSIONS_REMEMBERED = 1000, /* removed versions whose names are kept */
    WORKER_VERSION_MAX = 24,
    WORKER_RUNTIME_MAX = 24,
    PACKAGE_VERSION_MAX = 64,
    EXTERNAL_ID_MAX = 128, /* UTF-16 units of a user's name for a deployment */
};

struct queue_limit {
    struct bytes *name;
    uint32_t limit;     /* for each concurrencyKey; UINT32_MAX: none of its own */
    uint32_t total;     /* for all of them together; UINT32_MAX: none */
    bool is_named_only; /* declared by a task, without a limit: an existing limit stays */
};

/* A concurrency limit that runs of several queues may share. */
struct declared_limit {
    struct bytes *name;
    uint32_t per_key, total; /* for each concurrencyKey, for all; UINT32_MAX: none */
};

struct session;

struct worker {
    char id[ID_MAX];                  /* "worker_…" */
    char version[WORKER_VERSION_MAX]; /* "20261120.1" */
    char content_hash[128];
    char sdk[PACKAGE_VERSION_MAX]; /* version of the package; "": unknown */
    char cli[PACKAGE_VERSION_MAX]; /* the same */
    char deployment[ID_MAX];       /* "deployment_…"; "": registered without one */
    char short_code[16];           /* of the deployment */
    char external_id[3 * EXTERNAL_ID_MAX + 1]; /* its user's name for it; "": none */
    char archive_hash[65];                     /* SHA-256 of its archive, in hex */
    char runtime[WORKER_RUNTIME_MAX];          /* of the deployment: "node-22" */
    bool is_deployed;    /* runs may get it; with a deployment: once that is DEPLOYED */
    bool has_limits;     /* its queues count as registered with its limits */
    uint32_t promotions; /* promotions to it in flight; it is kept meanwhile */
    int64_t created_at;
    struct worker_task *tasks; /* by id */
    size_t task_count;
    struct queue_limit *queues; /* in the order in which to set them */
    size_t queue_count;
    struct declared_limit *limits;
    size_t limit_count;
    struct table queues_by_name; /* of struct queue_limit: the first of each name */
    struct bytes *warnings;      /* declared features that the gateway lacks, as JSON
                                    (api/registration/unsupported.h); NULL: none */
    struct session *session;     /* the session that has it (dev_sessions.h); NULL: none */
};

struct workers {
    struct worker **all; /* oldest first */
    size_t count;
    size_t tasks;        /* of all versions */
    struct table newest; /* of struct worker_task by id: from the newest version */
    struct worker *current;
    uint32_t pointer; /* version of the document that names the current one; 0: none */
    char reserved[WORKER_VERSION_MAX]; /* the highest of a deployment; "": none */
    char tried[WORKER_VERSION_MAX];    /* the highest that a registration may get */
    char (*gone)[WORKER_VERSION_MAX];  /* removed ones of deployments; oldest first */
    size_t gone_count;
};

/* Returns < 0 if version a is older than b, > 0 if it is newer, 0 if they are the same. */
int version_compare(struct slice a, struct slice b);

struct workers *workers_create(void);
void workers_destroy(struct workers *workers);

/* Sorts the tasks of a worker by id and indexes its queues by name, for lookups. Call it
 * once, before workers_add. */
void worker_sort(struct worker *worker);

/* Takes ownership of the worker. It becomes the current one if it is the newest, has no
 * deployment, and nothing was promoted yet. */
void workers_add(struct workers *workers, struct worker *worker);
void worker_destroy(struct worker *worker);

/* Makes an added worker the current one. pointer: the version of the document that says
 * so. */
void workers_promote(struct workers *workers, struct worker *worker, uint32_t pointer);

/* Returns true if nothing needs the worker, except perhaps runs. */
static inline bool workers_may_take(const struct workers *workers,
                                    const struct worker *worker)
{
    return worker != workers->current && !worker->promotions;
}

/* Removes the worker, which must not be the current one; the caller then owns it. */
void workers_take(struct workers *workers, struct worker *worker);

/* How many versions and tasks other environments of a project have. */
struct workers_sum {
    size_t versions, tasks;
};

struct sibling_workers {
    struct workers_sum branches, others; /* preview branches, and other environments */
    bool is_branch;                      /* the environment itself is one */
};

/* Removes and returns the oldest version if a limit is exceeded; the caller then owns it.
 * Preview branches together may have half of what their project may, and with more than
 * that they displace no versions of other environments. Never returns the current one, one
 * that is being promoted, or a deployment's; nor, for the project's limits, one that a
 * session has. Returns NULL if none must go. */
struct worker *workers_take_excess(struct workers *workers,
                                   struct sibling_workers siblings);

/* Remembers that a deployment's version was removed, for the error that requests naming it
 * get. */
void workers_note_gone(struct workers *workers, struct slice version);
bool workers_knows_gone(const struct workers *workers, struct slice version);

/* Returns true if the worker is newer than the other; both must be added. */
bool workers_is_newer(const struct workers *workers, const struct worker *worker,
                      const struct worker *than);

/* Returns the current version of the environment; NULL: none registered. Outside of dev,
 * runs without a version are checked against it, and declared schedules come from it. When
 * it changes, the sweep (engine_sweep_environment) checks waiting and queued runs. */
const struct worker *workers_current(const struct workers *workers);

/* Returns NULL if there is none, or its deployment is not DEPLOYED. */
const struct worker *workers_by_version(const struct workers *workers,
                                        struct slice version);

/* Returns the version of a deployment, in any state; NULL: it has none. */
struct worker *workers_by_deployment(const struct workers *workers,
                                     struct slice deployment);

/* Returns the highest version DEPLOYED under this name given by a user, or NULL. */
const struct worker *workers_by_external(const struct workers *workers, struct slice id);

/* Returns the version for the run: the one that it is locked to, that of the deployment
 * which its trigger names, or the current one. NULL: that one is missing. */
const struct worker *workers_for(const struct workers *workers, const struct run *run);

const struct worker_task *worker_task(const struct worker *worker, struct slice task);

/* Returns true if the version declares the queue. A task without a queue declares
 * "task/<id>". */
bool worker_has_queue(const struct worker *worker, struct slice queue);

/* Returns the task from the current version, or from the newest one that has it. */
const struct worker_task *workers_task(const struct workers *workers, struct slice task);

/* Returns the task from the version that will execute the run (workers_for), or from
 * another one if that version is missing or lacks the task. */
const struct worker_task *workers_task_of(const struct workers *workers,
                                          const struct run *run);

/* Writes a version for a registration: "YYYYMMDD.n", n counted per day from 1, higher than
 * all kept or reserved versions. The store accepts only one of two concurrent
 * registrations. */
void workers_next_version(struct workers *workers, int64_t now_ms,
                          char out[WORKER_VERSION_MAX]);

/* The same for a deployment: reserved, so no other caller gets it. */
void workers_take_version(struct workers *workers, int64_t now_ms,
                          char out[WORKER_VERSION_MAX]);

/* A deployment has this version; called at startup. */
void workers_reserve_version(struct workers *workers, struct slice version);
