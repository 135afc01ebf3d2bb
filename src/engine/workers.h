/* workers.h - who can execute what in one environment: worker versions and their tasks.
 *
 * A registration makes a version (worker-protocol §1.4, call 8); in dev the newest one is
 * current. Kept as documents; api reads and writes their JSON, the engine looks up. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "base/text.h"
#include "runcast/run.h"

struct worker_task {
    struct bytes *id;
    struct bytes *file_path, *export_name;
    struct bytes *queue; /* NULL: "task/<id>" */
    struct bytes *ttl;   /* NULL: none */
    int machine;         /* enum machine; -1: none named */
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

struct worker {
    char id[ID_MAX];  /* "worker_…" */
    char version[24]; /* "20261120.1" */
    char content_hash[128];
    int64_t created_at;
    struct worker_task *tasks;
    size_t task_count;
};

struct workers {
    struct worker **all; /* oldest first */
    size_t count;
};

struct workers *workers_create(void);
void workers_destroy(struct workers *workers);

/* Takes over the worker; it is the current one. */
void workers_add(struct workers *workers, struct worker *worker);
void worker_destroy(struct worker *worker);

/* NULL: none registered. */
const struct worker *workers_current(const struct workers *workers);
const struct worker *workers_by_version(const struct workers *workers,
                                        struct slice version);
const struct worker_task *worker_task(const struct worker *worker, struct slice task);

/* A task of any version, newest first. */
const struct worker_task *workers_task(const struct workers *workers, struct slice task);

/* "YYYYMMDD.n", n counted per day from 1. */
void workers_next_version(const struct workers *workers, int64_t now_ms, char out[24]);
