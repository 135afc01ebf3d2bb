/* workers.c - the versions of one environment, oldest first, and how they are found. */
#include "engine/workers.h"

#include <stdio.h>

#include "base/mem.h"

struct workers *workers_create(void)
{
    return mem_new(struct workers);
}

void worker_destroy(struct worker *worker)
{
    if (!worker)
        return;
    for (size_t i = 0; i < worker->task_count; i++) {
        struct worker_task *task = &worker->tasks[i];
        bytes_unref(task->id);
        bytes_unref(task->file_path);
        bytes_unref(task->export_name);
        bytes_unref(task->queue);
        bytes_unref(task->ttl);
        bytes_unref(task->cron);
        bytes_unref(task->timezone);
        bytes_unref(task->window);
    }
    free(worker->tasks);
    free(worker);
}

void workers_destroy(struct workers *workers)
{
    if (!workers)
        return;
    for (size_t i = 0; i < workers->count; i++)
        worker_destroy(workers->all[i]);
    free(workers->all);
    free(workers);
}

/* At start they come by name: the order is that of their creation. */
void workers_add(struct workers *workers, struct worker *worker)
{
    size_t at = workers->count++;
    workers->all = mem_resize(workers->all, workers->count * sizeof(struct worker *));
    for (; at > 0 && workers->all[at - 1]->created_at > worker->created_at; at--)
        workers->all[at] = workers->all[at - 1];
    workers->all[at] = worker;
}

const struct worker *workers_current(const struct workers *workers)
{
    return workers->count ? workers->all[workers->count - 1] : NULL;
}

const struct worker *workers_by_version(const struct workers *workers, struct slice version)
{
    for (size_t i = workers->count; i > 0; i--)
        if (slice_is(version, workers->all[i - 1]->version))
            return workers->all[i - 1];
    return NULL;
}

const struct worker_task *worker_task(const struct worker *worker, struct slice task)
{
    for (size_t i = 0; worker && i < worker->task_count; i++)
        if (slice_equal(bytes_slice(worker->tasks[i].id), task))
            return &worker->tasks[i];
    return NULL;
}

const struct worker_task *workers_task(const struct workers *workers, struct slice task)
{
    for (size_t i = workers->count; i > 0; i--) {
        const struct worker_task *found = worker_task(workers->all[i - 1], task);
        if (found)
            return found;
    }
    return NULL;
}

void workers_next_version(const struct workers *workers, int64_t now_ms, char out[24])
{
    char time[TIME_TEXT_LEN + 1], day[9];
    unsigned number = 0, n;

    text_from_time(now_ms, time);
    snprintf(day, sizeof(day), "%.4s%.2s%.2s", time, time + 5, time + 8);
    for (size_t i = 0; i < workers->count; i++)
        if (!strncmp(workers->all[i]->version, day, 8) &&
            sscanf(workers->all[i]->version + 8, ".%u", &n) == 1 && n > number)
            number = n;
    snprintf(out, 24, "%s.%u", day, number + 1);
}
