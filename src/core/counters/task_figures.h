/* task_figures.h - what an environment's tasks did in the last few hours, for a table.
 *
 *   run created, run ended ──► its task ──► the slot of this quarter of an hour
 *
 * A slot without events is not stored, so a task that was idle for a quarter costs nothing
 * for it. The first TASK_FIGURES_MAX tasks are counted. A task without events in six hours
 * makes way for a new one. Runs of tasks that find no place are left out. Once the memory
 * for the project's figures is used up, a task must drop its oldest slot for each new one.
 *
 * The figures are in memory. They are stored every quarter of an hour
 * (api/router/stored_activity.h), and restored at startup. */
#pragma once

#include <stdbool.h>

#include "base/quota.h"
#include "core/counters/octaves.h"
#include "runcast/run.h"

enum {
    TASK_FIGURES_MAX = 50,
    TASK_SLOT_MS = 15 * 60 * 1000,
    TASK_SLOTS = 25,                 /* six hours, and the open one */
    PROJECT_FIGURES_BYTES = 8 << 20, /* of slots of all environments of a project */
};

struct task_slot {
    int64_t at; /* its start; Unix ms, a multiple of TASK_SLOT_MS */
    uint32_t triggers, completed, failed, canceled, expired;
    uint32_t durations[OCTAVES_BUCKETS]; /* of completed and failed runs, in ms */
};

/* The run that failed last. */
struct task_failure {
    int64_t at; /* Unix ms; 0: none failed */
    char run[RUN_ID_MAX];
};

struct task_figures {
    struct bytes *task;
    struct task_slot *slots; /* oldest first; grows to TASK_SLOTS */
    size_t count, capacity;
    struct task_failure failure;
};

/* Zeroed: empty. */
struct task_table {
    struct task_figures *tasks; /* grows to TASK_FIGURES_MAX */
    size_t count;
    bool is_cut;         /* a run was left out because of a limit */
    struct quota *quota; /* quota of the slots; NULL: none */
};

void task_table_finish(struct task_table *table);

/* A run was created (before: -1) or has changed its status. */
void task_table_note(struct task_table *table, int before, const struct run *run,
                     int64_t now_ms);

/* Adds a slot from an earlier process, with its task's last failure. Skips a slot that is
 * not later than the task's last one, or that is older than six hours. */
void task_table_restore(struct task_table *table, struct bytes *task,
                        const struct task_failure *failure, const struct task_slot *slot,
                        int64_t now_ms);

/* Sums the slots that end after this time. Returns false if no slot does. */
bool task_figures_sum(const struct task_figures *task, int64_t from_ms,
                      struct task_slot *sum);
