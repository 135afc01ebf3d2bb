/* worker_versions.c - the versions of one environment, oldest first, and how they are found. */
#include "fleet/worker_versions.h"

#include <stdio.h>

#include "base/mem.h"

static struct slice task_key(const void *value)
{
    const struct worker_task *task = value;
    return bytes_slice(task->id);
}

struct workers *workers_create(void)
{
    struct workers *workers = mem_new(struct workers);
    table_init(&workers->newest, task_key);
    return workers;
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
    for (size_t i = 0; i < worker->queue_count; i++)
        bytes_unref(worker->queues[i].name);
    free(worker->queues);
    free(worker);
}

void workers_destroy(struct workers *workers)
{
    if (!workers)
        return;
    for (size_t i = 0; i < workers->count; i++)
        worker_destroy(workers->all[i]);
    table_finish(&workers->newest);
    free(workers->all);
    free(workers);
}

static int compare_tasks(const void *a, const void *b)
{
    return slice_compare(task_key(a), task_key(b));
}

void worker_sort(struct worker *worker)
{
    if (worker->task_count)
        qsort(worker->tasks, worker->task_count, sizeof(worker->tasks[0]), compare_tasks);
}

/* Its tasks are those that are found, but where a newer version has them too. */
static void index_tasks(struct workers *workers, size_t at)
{
    struct worker *worker = workers->all[at];
    for (size_t i = 0; i < worker->task_count; i++) {
        struct slice id = bytes_slice(worker->tasks[i].id);
        bool has_newer = false;
        for (size_t newer = at + 1; newer < workers->count && !has_newer; newer++)
            has_newer = worker_task(workers->all[newer], id);
        if (has_newer)
            continue;
        table_remove(&workers->newest, id);
        table_insert(&workers->newest, &worker->tasks[i]);
    }
}

/* At start they come by name: the order is that of their creation. */
void workers_add(struct workers *workers, struct worker *worker)
{
    size_t at = workers->count++;
    workers->all = mem_resize(workers->all, workers->count * sizeof(struct worker *));
    for (; at > 0 && workers->all[at - 1]->created_at > worker->created_at; at--)
        workers->all[at] = workers->all[at - 1];
    workers->all[at] = worker;
    workers->tasks += worker->task_count;
    index_tasks(workers, at);
}

struct worker *workers_take_excess(struct workers *workers)
{
    bool excess = workers->count > VERSIONS_KEPT || workers->tasks > TASKS_KEPT;
    if (!excess || workers->count < 2)
        return NULL;
    struct worker *oldest = workers->all[0];
    memmove(workers->all, workers->all + 1, --workers->count * sizeof(struct worker *));
    workers->tasks -= oldest->task_count;
    for (size_t i = 0; i < oldest->task_count; i++) {
        struct worker_task *task = &oldest->tasks[i];
        if (table_find(&workers->newest, task_key(task)) == task)
            table_remove(&workers->newest, task_key(task));
    }
    return oldest;
}

bool workers_is_newer(const struct workers *workers, const struct worker *worker,
                      const struct worker *than)
{
    size_t i = workers->count - 1;
    while (workers->all[i] != worker && workers->all[i] != than)
        i--;
    return workers->all[i] == worker && worker != than;
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

const struct worker *workers_for(const struct workers *workers, const struct run *run)
{
    return run->worker_version
               ? workers_by_version(workers, bytes_slice(run->worker_version))
               : workers_current(workers);
}

const struct worker_task *worker_task(const struct worker *worker, struct slice task)
{
    size_t low = 0, high = worker ? worker->task_count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(task, bytes_slice(worker->tasks[middle].id));
        if (!order)
            return &worker->tasks[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct worker_task *workers_task(const struct workers *workers, struct slice task)
{
    return table_find(&workers->newest, task);
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
