/* worker_versions.h - who can execute what in one environment: worker versions and their tasks.
 *
 * A registration makes a version, and the newest one is
 * current; in dev each one that a session asks with is (sessions.h). Versions are kept as
 * documents (workers/registration.h); here they are looked up. A developer makes one
 * whenever a file is saved, so the oldest ones go. */
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
    VERSIONS_KEPT = 1000, /* of one environment */
    TASKS_KEPT = 50000,   /* of all its versions together */
};

struct queue_limit {
    struct bytes *name;
    uint32_t limit; /* UINT32_MAX: none of its own */
};

struct session;

struct worker {
    char id[ID_MAX];  /* "worker_…" */
    char version[24]; /* "20261120.1" */
    char content_hash[128];
    int64_t created_at;
    struct worker_task *tasks; /* by id */
    size_t task_count;
    struct queue_limit *queues; /* in the order in which they are to be set */
    size_t queue_count;
    struct session *session; /* that has it (sessions.h); NULL: none */
};

struct workers {
    struct worker **all; /* oldest first */
    size_t count;
    size_t tasks;        /* of all versions */
    struct table newest; /* of struct worker_task by id: that of the newest version */
};

struct workers *workers_create(void);
void workers_destroy(struct workers *workers);

/* Sorts the tasks of a worker by their ids, which is how they are found; before it is added. */
void worker_sort(struct worker *worker);

/* Takes over the worker; it is the current one. */
void workers_add(struct workers *workers, struct worker *worker);
void worker_destroy(struct worker *worker);

/* The oldest version when there are more than are kept; the caller's. Never the current
 * one. NULL: none has to go. */
struct worker *workers_take_excess(struct workers *workers);

/* Whether the worker is newer than the other; both are among them. */
bool workers_is_newer(const struct workers *workers, const struct worker *worker,
                      const struct worker *than);

/* The current version of the environment: what a run is judged by that names none, and its
 * declared schedules come from, elsewhere than in dev. When another one is, the sweep
 * (engine_sweep_environment) judges what waits and what is queued. NULL: none registered. */
const struct worker *workers_current(const struct workers *workers);
const struct worker *workers_by_version(const struct workers *workers,
                                        struct slice version);

/* The version that the run is locked to, else the current one. */
const struct worker *workers_for(const struct workers *workers, const struct run *run);

const struct worker_task *worker_task(const struct worker *worker, struct slice task);

/* A task of any version, newest first. */
const struct worker_task *workers_task(const struct workers *workers, struct slice task);

/* "YYYYMMDD.n", n counted per day from 1. */
void workers_next_version(const struct workers *workers, int64_t now_ms, char out[24]);
