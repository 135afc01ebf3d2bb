/* worker_versions.c - versions of one environment, oldest first, and lookups in them. */
#include "core/fleet/worker_versions.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/quota.h"

enum { DAY = 8 }; /* length of the day at the start of a version */

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
        bytes_unref(task->limits);
        bytes_unref(task->schema);
        bytes_unref(task->cron);
        bytes_unref(task->timezone);
        bytes_unref(task->window);
    }
    free(worker->tasks);
    for (size_t i = 0; i < worker->queue_count; i++)
        bytes_unref(worker->queues[i].name);
    table_finish(&worker->queues_by_name);
    free(worker->queues);
    for (size_t i = 0; i < worker->limit_count; i++)
        bytes_unref(worker->limits[i].name);
    free(worker->limits);
    bytes_unref(worker->warnings);
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
    free(workers->gone);
    free(workers);
}

static int compare_tasks(const void *a, const void *b)
{
    return slice_compare(task_key(a), task_key(b));
}

static struct slice queue_key(const void *value)
{
    const struct queue_limit *queue = value;
    return bytes_slice(queue->name);
}

void worker_sort(struct worker *worker)
{
    if (worker->task_count)
        qsort(worker->tasks, worker->task_count, sizeof(worker->tasks[0]), compare_tasks);
    table_init(&worker->queues_by_name, queue_key);
    for (size_t i = 0; i < worker->queue_count; i++)
        if (!table_find(&worker->queues_by_name, queue_key(&worker->queues[i])))
            table_insert(&worker->queues_by_name, &worker->queues[i]);
}

/* Makes lookups by id find this version's tasks, except those that a newer version has
 * too. */
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

static bool is_newest_plain(const struct workers *workers, size_t at)
{
    while (++at < workers->count)
        if (!workers->all[at]->deployment[0])
            return false;
    return true;
}

/* Shares a schema that a task of another version already has. */
static void share_schemas(const struct workers *workers, struct worker *worker)
{
    for (size_t i = 0; i < worker->task_count; i++) {
        struct worker_task *task = &worker->tasks[i];
        const struct worker_task *other = workers_task(workers, bytes_slice(task->id));
        if (task->schema && other && other->schema &&
            slice_equal(bytes_slice(task->schema), bytes_slice(other->schema)))
            bytes_set(&task->schema, other->schema);
    }
}

/* At start, versions are added in the order of their names; here they are kept in the order
 * of their creation. */
void workers_add(struct workers *workers, struct worker *worker)
{
    size_t at = workers->count++;
    share_schemas(workers, worker);
    workers->all = mem_resize(workers->all, workers->count * sizeof(struct worker *));
    for (; at > 0 && workers->all[at - 1]->created_at > worker->created_at; at--)
        workers->all[at] = workers->all[at - 1];
    workers->all[at] = worker;
    workers->tasks += worker->task_count;
    index_tasks(workers, at);
    bool is_plain = !worker->deployment[0];
    worker->is_deployed |= is_plain;
    if (is_plain && !workers->pointer && is_newest_plain(workers, at))
        workers->current = worker;
}

void workers_promote(struct workers *workers, struct worker *worker, uint32_t pointer)
{
    workers->current = worker;
    workers->pointer = pointer;
}

/* ---- removing versions ---- */

/* Makes lookups find the tasks of the worker, which was at this index, in the newest older
 * version: no newer version has the tasks that were found in it. */
static void unindex_tasks(struct workers *workers, const struct worker *worker, size_t at)
{
    for (size_t i = 0; i < worker->task_count; i++) {
        struct slice id = bytes_slice(worker->tasks[i].id);
        const struct worker_task *other = NULL;
        if (table_find(&workers->newest, id) != &worker->tasks[i])
            continue;
        table_remove(&workers->newest, id);
        for (size_t older = at; older > 0 && !other; older--)
            other = worker_task(workers->all[older - 1], id);
        if (other)
            table_insert(&workers->newest, (struct worker_task *)other);
    }
}

static struct worker *take_at(struct workers *workers, size_t at)
{
    struct worker *worker = workers->all[at];
    size_t after = --workers->count - at;
    memmove(workers->all + at, workers->all + at + 1, after * sizeof(struct worker *));
    workers->tasks -= worker->task_count;
    unindex_tasks(workers, worker, at);
    return worker;
}

void workers_take(struct workers *workers, struct worker *worker)
{
    size_t at = 0;
    while (workers->all[at] != worker)
        at++;
    take_at(workers, at);
}

/* Returns true if `own`, the number that an environment has, is too high for its project,
 * whose preview branches and other environments have that many. */
static bool has_too_many(size_t own, size_t max, size_t branches, size_t others,
                         bool is_branch)
{
    size_t part = max / BRANCHES_PART;
    if (is_branch)
        return own + branches > part || own + branches + others > max;
    return own + (branches < part ? branches : part) + others > max;
}

static bool project_is_full(const struct workers *workers,
                            const struct sibling_workers *siblings)
{
    bool is_spared = workers->count <= VERSIONS_SPARED && workers->tasks <= TASKS_SPARED;
    return !is_spared &&
           (has_too_many(workers->count, PROJECT_VERSIONS_KEPT, siblings->branches.versions,
                         siblings->others.versions, siblings->is_branch) ||
            has_too_many(workers->tasks, PROJECT_TASKS_KEPT, siblings->branches.tasks,
                         siblings->others.tasks, siblings->is_branch));
}

struct worker *workers_take_excess(struct workers *workers, struct sibling_workers siblings)
{
    bool is_full = workers->count > VERSIONS_KEPT || workers->tasks > TASKS_KEPT;
    bool has_to_go = is_full || project_is_full(workers, &siblings);
    for (size_t at = 0; has_to_go && at < workers->count; at++) {
        const struct worker *worker = workers->all[at];
        if (workers_may_take(workers, worker) && !worker->deployment[0] &&
            (is_full || !worker->session))
            return take_at(workers, at);
    }
    return NULL;
}

void workers_note_gone(struct workers *workers, struct slice version)
{
    if (workers->gone_count == VERSIONS_REMEMBERED)
        memmove(workers->gone, workers->gone + 1,
                --workers->gone_count * sizeof(workers->gone[0]));
    workers->gone =
        mem_resize(workers->gone, (workers->gone_count + 1) * sizeof(workers->gone[0]));
    snprintf(workers->gone[workers->gone_count++], WORKER_VERSION_MAX, "%.*s",
             SLICE_ARG(version));
}

bool workers_knows_gone(const struct workers *workers, struct slice version)
{
    for (size_t i = 0; i < workers->gone_count; i++)
        if (slice_is(version, workers->gone[i]))
            return true;
    return false;
}

/* ---- lookups ---- */

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
    return workers->current;
}

const struct worker *workers_by_version(const struct workers *workers, struct slice version)
{
    for (size_t i = workers->count; i > 0; i--) {
        const struct worker *worker = workers->all[i - 1];
        if (worker->is_deployed && slice_is(version, worker->version))
            return worker;
    }
    return NULL;
}

struct worker *workers_by_deployment(const struct workers *workers, struct slice deployment)
{
    for (size_t i = workers->count; deployment.len && i > 0; i--)
        if (slice_is(deployment, workers->all[i - 1]->deployment))
            return workers->all[i - 1];
    return NULL;
}

const struct worker *workers_by_external(const struct workers *workers, struct slice id)
{
    const struct worker *highest = NULL;
    for (size_t i = 0; id.len && i < workers->count; i++) {
        const struct worker *worker = workers->all[i];
        if (worker->is_deployed && slice_is(id, worker->external_id) &&
            (!highest ||
             version_compare(slice_of(worker->version), slice_of(highest->version)) > 0))
            highest = worker;
    }
    return highest;
}

const struct worker *workers_for(const struct workers *workers, const struct run *run)
{
    const struct bytes *external = run_rare(run)->external_deployment;
    if (run->worker_version)
        return workers_by_version(workers, bytes_slice(run->worker_version));
    return external ? workers_by_external(workers, bytes_slice(external))
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

static bool is_own_queue(const struct worker *worker, struct slice queue)
{
    const struct slice prefix = SLICE("task/");
    const struct worker_task *task =
        slice_starts(queue, prefix.ptr) ? worker_task(worker, slice_from(queue, prefix.len))
                                        : NULL;
    return task && !task->queue;
}

bool worker_has_queue(const struct worker *worker, struct slice queue)
{
    return is_own_queue(worker, queue) || table_find(&worker->queues_by_name, queue);
}

const struct worker_task *workers_task(const struct workers *workers, struct slice task)
{
    const struct worker_task *found = worker_task(workers->current, task);
    return found ? found : table_find(&workers->newest, task);
}

const struct worker_task *workers_task_of(const struct workers *workers,
                                          const struct run *run)
{
    struct slice task = bytes_slice(run->task);
    const struct worker_task *found = worker_task(workers_for(workers, run), task);
    return found ? found : workers_task(workers, task);
}

/* ---- version numbers ---- */

/* Days have eight digits; numbers have no leading zero. */
int version_compare(struct slice a, struct slice b)
{
    struct slice day_a = { a.ptr, a.len < DAY ? a.len : DAY };
    struct slice day_b = { b.ptr, b.len < DAY ? b.len : DAY };
    int order = slice_compare(day_a, day_b);
    if (!order && a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return order ? order : slice_compare(a, b);
}

static const char *higher(const char *a, const char *b)
{
    return version_compare(slice_of(a), slice_of(b)) < 0 ? b : a;
}

/* Returns the version after `last`, whose day may be later than today if the clock was set
 * back. */
static void version_after(const char *last, int64_t now_ms, char out[WORKER_VERSION_MAX])
{
    char time[TIME_TEXT_LEN + 1], day[DAY + 1];
    unsigned long number = 0;

    text_from_time(now_ms, time);
    snprintf(day, sizeof(day), "%.4s%.2s%.2s", time, time + 5, time + 8);
    if (strlen(last) > DAY && strncmp(last, day, DAY) >= 0) {
        memcpy(day, last, DAY);
        number = strtoul(last + DAY + 1, NULL, 10);
    }
    snprintf(out, WORKER_VERSION_MAX, "%s.%lu", day, number + 1);
}

static const char *highest(const struct workers *workers)
{
    const char *last = workers->reserved;
    for (size_t i = 0; i < workers->count; i++)
        last = higher(last, workers->all[i]->version);
    return last;
}

static void lift(char place[WORKER_VERSION_MAX], const char *version)
{
    if (version_compare(slice_of(place), slice_of(version)) < 0)
        memmove(place, version, strlen(version) + 1);
}

void workers_next_version(struct workers *workers, int64_t now_ms,
                          char out[WORKER_VERSION_MAX])
{
    version_after(highest(workers), now_ms, out);
    lift(workers->tried, out);
}

void workers_take_version(struct workers *workers, int64_t now_ms,
                          char out[WORKER_VERSION_MAX])
{
    version_after(higher(highest(workers), workers->tried), now_ms, out);
    lift(workers->reserved, out);
}

void workers_reserve_version(struct workers *workers, struct slice version)
{
    char text[WORKER_VERSION_MAX];
    snprintf(text, sizeof(text), "%.*s", SLICE_ARG(version));
    lift(workers->reserved, text);
}
