/* task_figures.c - the slots of each task. */
#include "core/counters/task_figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

enum { FIRST_CAPACITY = 2 };

static void finish(struct task_table *table, struct task_figures *task)
{
    if (table->quota)
        quota_release(table->quota, task->capacity * sizeof(*task->slots));
    bytes_unref(task->task);
    free(task->slots);
}

void task_table_finish(struct task_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        finish(table, &table->tasks[i]);
    free(table->tasks);
    *table = (struct task_table){ 0 };
}

/* ---- the task ---- */

/* Returns true if the task had no event in the last six hours. */
static bool is_idle(const struct task_figures *task, int64_t now_ms)
{
    return !task->count ||
           task->slots[task->count - 1].at <= now_ms - TASK_SLOTS * (int64_t)TASK_SLOT_MS;
}

/* Returns a place for one more task; NULL: the table is full of active tasks. */
static struct task_figures *place_of(struct task_table *table, int64_t now_ms)
{
    if (table->count < TASK_FIGURES_MAX) {
        table->tasks = mem_resize(table->tasks, (table->count + 1) * sizeof(*table->tasks));
        return &table->tasks[table->count++];
    }
    for (size_t i = 0; i < table->count; i++)
        if (is_idle(&table->tasks[i], now_ms)) {
            finish(table, &table->tasks[i]);
            return &table->tasks[i];
        }
    return NULL;
}

static struct task_figures *task_of(struct task_table *table, struct bytes *name,
                                    int64_t now_ms)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->tasks[i].task == name ||
            slice_equal(bytes_slice(table->tasks[i].task), bytes_slice(name)))
            return &table->tasks[i];
    struct task_figures *task = place_of(table, now_ms);
    if (task)
        *task = (struct task_figures){ .task = bytes_ref(name) };
    else
        table->is_cut = true;
    return task;
}

/* ---- the slot ---- */

/* Returns false if the project has no memory left for more slots. */
static bool grow(struct task_table *table, struct task_figures *task)
{
    size_t capacity = task->capacity ? task->capacity * 2 : FIRST_CAPACITY;
    capacity = capacity < TASK_SLOTS ? capacity : TASK_SLOTS;
    size_t more = (capacity - task->capacity) * sizeof(*task->slots);
    if (table->quota && !quota_has(table->quota, more))
        return false;
    if (table->quota)
        quota_take(table->quota, more);
    task->capacity = capacity;
    task->slots = mem_resize(task->slots, capacity * sizeof(*task->slots));
    return true;
}

/* Makes a place for one more slot. Without memory for it, removes the oldest slot. Returns
 * false if the task has no slot to remove. */
static bool make_place(struct task_table *table, struct task_figures *task)
{
    bool is_full = task->count == TASK_SLOTS;
    if (task->count < task->capacity || (!is_full && grow(table, task)))
        return true;
    table->is_cut |= !is_full;
    if (task->count)
        memmove(task->slots, task->slots + 1, --task->count * sizeof(*task->slots));
    return task->capacity > 0;
}

/* Returns the slot of this time; NULL if the project has no memory for it. If the clock was
 * set back, returns the newest slot. */
static struct task_slot *slot_of(struct task_table *table, struct task_figures *task,
                                 int64_t now_ms)
{
    int64_t at = now_ms - now_ms % TASK_SLOT_MS;
    if (!task->count || task->slots[task->count - 1].at < at) {
        if (!make_place(table, task))
            return NULL;
        task->slots[task->count++] = (struct task_slot){ .at = at };
    }
    return &task->slots[task->count - 1];
}

static void note_end(struct task_figures *task, struct task_slot *slot,
                     const struct run *run, int64_t now_ms)
{
    switch (run->status) {
    case RUN_CANCELED: slot->canceled++; return;
    case RUN_EXPIRED: slot->expired++; return;
    case RUN_COMPLETED: slot->completed++; break;
    default:
        slot->failed++;
        task->failure.at = now_ms;
        snprintf(task->failure.run, sizeof(task->failure.run), "%s", run->id);
    }
    if (run->started_at && run->finished_at)
        slot->durations[octaves_bucket(run->finished_at - run->started_at)]++;
}

void task_table_note(struct task_table *table, int before, const struct run *run,
                     int64_t now_ms)
{
    bool ends = run->status >= RUN_CANCELED && before < (int)RUN_CANCELED;
    if (before >= 0 && !ends)
        return;
    struct task_figures *task = task_of(table, run->task, now_ms);
    if (!task)
        return;
    struct task_slot *slot = slot_of(table, task, now_ms);
    if (!slot)
        return;
    slot->triggers += before < 0;
    if (ends)
        note_end(task, slot, run, now_ms);
}

void task_table_restore(struct task_table *table, struct bytes *task,
                        const struct task_failure *failure, const struct task_slot *slot,
                        int64_t now_ms)
{
    if (slot->at % TASK_SLOT_MS || slot->at > now_ms ||
        slot->at <= now_ms - TASK_SLOTS * (int64_t)TASK_SLOT_MS)
        return;
    struct task_figures *figures = task_of(table, task, now_ms);
    if (!figures || (figures->count && figures->slots[figures->count - 1].at >= slot->at))
        return;
    struct task_slot *place = slot_of(table, figures, slot->at);
    if (!place)
        return;
    *place = *slot;
    figures->failure = *failure;
}

bool task_figures_sum(const struct task_figures *task, int64_t from_ms,
                      struct task_slot *sum)
{
    bool any = false;
    *sum = (struct task_slot){ 0 };
    for (size_t i = 0; i < task->count; i++) {
        const struct task_slot *slot = &task->slots[i];
        if (slot->at + TASK_SLOT_MS <= from_ms)
            continue;
        if (!any)
            sum->at = slot->at;
        any = true;
        sum->triggers += slot->triggers;
        sum->completed += slot->completed;
        sum->failed += slot->failed;
        sum->canceled += slot->canceled;
        sum->expired += slot->expired;
        for (size_t bucket = 0; bucket < OCTAVES_BUCKETS; bucket++)
            sum->durations[bucket] += slot->durations[bucket];
    }
    return any;
}
