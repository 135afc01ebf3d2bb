/* registration.c - tasks and queues out of JSON, and into a document.
 *
 * The members are found as spans; of one task or queue at a time what is used becomes a
 * tree, so the sources and schemas that come along cost little. The document has the form of the request's
 * metadata, reduced to what is used, with id, version and createdAt added. */
#include "api/registration.h"

#include <jansson.h>
#include <math.h>

#include "auth/bootstrap.h"
#include "base/mem.h"
#include "base/members.h"
#include "base/scan.h"

enum {
    TASKS_MAX = 1000,  /* all of them are read in one turn */
    QUEUES_MAX = 1000, /* those that tasks bring along not included */
    NAME_BYTES_MAX = 256,
    PATH_BYTES_MAX = 1024,
    QUEUE_LIMIT_MAX = 100000,
    DEFAULT_ATTEMPTS = 3,
    DEFAULT_MIN_TIMEOUT_MS = 1000,
    DEFAULT_MAX_TIMEOUT_MS = 60000,
};

/* ---- one member ---- */

/* Where a mistake is: "metadata.tasks[3].queue". */
struct spot {
    const char *list;
    size_t index;
    struct failure *why;
};

static enum err refuse(const struct spot *spot, const char *member, const char *rule)
{
    return explain(spot->why, ERR_INVALID, "metadata.%s[%zu].%s: %s", spot->list,
                   spot->index, member, rule);
}

static bool is_set(const json_t *value)
{
    return value && !json_is_null(value);
}

/* NULL when unset. */
static enum err read_name(const struct spot *spot, const json_t *value, const char *member,
                          struct bytes **name)
{
    if (!is_set(value))
        return OK;
    size_t len = json_string_length(value);
    if (!json_is_string(value) || !len || len > NAME_BYTES_MAX)
        return refuse(spot, member, "must be a string of 1 to 256 bytes");
    *name = bytes_create_shared((struct slice){ json_string_value(value), len });
    return OK;
}

/* Where the task is in the worker's sources; only handed back to it. */
static enum err read_path(const struct spot *spot, const json_t *value, const char *member,
                          struct bytes **path)
{
    if (!json_is_string(value))
        return OK;
    if (json_string_length(value) > PATH_BYTES_MAX)
        return refuse(spot, member, "must be a string of at most 1024 bytes");
    *path = bytes_create_shared(slice_of(json_string_value(value)));
    return OK;
}

/* Leaves the number alone when unset. */
static enum err read_number(const struct spot *spot, const json_t *value,
                            const char *member, double max, double *number)
{
    if (!is_set(value))
        return OK;
    double given = json_number_value(value);
    if (!json_is_number(value) || !isfinite(given) || given < 0)
        return refuse(spot, member, "must be a number of 0 or more");
    *number = given > max ? max : given;
    return OK;
}

static enum err read_limit(const struct spot *spot, const json_t *object, uint32_t *limit)
{
    double number = -1;
    enum err err = read_number(spot, json_object_get(object, "concurrencyLimit"),
                               "concurrencyLimit", QUEUE_LIMIT_MAX, &number);
    *limit = number < 0 ? UINT32_MAX : (uint32_t)number;
    return err;
}

/* ---- queues ---- */

static void add_queue(struct worker *worker, struct bytes *name, uint32_t limit)
{
    size_t size = (worker->queue_count + 1) * sizeof(struct queue_limit);
    worker->queues = mem_resize(worker->queues, size);
    worker->queues[worker->queue_count++] = (struct queue_limit){ name, limit };
}

static struct bytes *own_queue(const struct bytes *task)
{
    struct buf name = { 0 };
    buf_add_text(&name, "task/");
    buf_add(&name, bytes_slice(task));
    struct bytes *bytes = bytes_create_shared(buf_slice(&name));
    buf_finish(&name);
    return bytes;
}

/* A task owns a queue unless it names one; a limit it gives is that queue's. */
static enum err read_task_queue(const struct spot *spot, const json_t *queue,
                                struct worker_task *task, struct worker *worker)
{
    uint32_t limit = UINT32_MAX;
    enum err err = OK;
    if (is_set(queue) && !json_is_object(queue))
        return refuse(spot, "queue", "must be an object");
    if (is_set(queue)) {
        err = read_name(spot, json_object_get(queue, "name"), "queue.name", &task->queue);
        err = err ? err : read_limit(spot, queue, &limit);
    }
    if (!err && !task->queue)
        add_queue(worker, own_queue(task->id), limit);
    else if (!err && limit != UINT32_MAX)
        add_queue(worker, bytes_ref(task->queue), limit);
    return err;
}

static enum err read_queue(const struct spot *spot, const json_t *json,
                           struct worker *worker)
{
    struct bytes *name = NULL;
    uint32_t limit;
    enum err err = read_name(spot, json_object_get(json, "name"), "name", &name);
    if (!err && !name)
        err = refuse(spot, "name", "must be a string of 1 to 256 bytes");
    err = err ? err : read_limit(spot, json, &limit);
    if (err)
        bytes_unref(name);
    else
        add_queue(worker, name, limit);
    return err;
}

/* ---- a task ---- */

/* What a partial setting leaves open has the SDK's defaults (worker-protocol §3.4). */
static enum err read_retry(const struct spot *spot, const json_t *retry,
                           struct worker_task *task)
{
    double attempts = DEFAULT_ATTEMPTS, factor = 2, min = DEFAULT_MIN_TIMEOUT_MS,
           max = DEFAULT_MAX_TIMEOUT_MS;
    if (!is_set(retry))
        return OK;
    if (!json_is_object(retry))
        return refuse(spot, "retry", "must be an object");
    const struct {
        const char *name;
        double max;
        double *number;
    } numbers[] = {
        { "maxAttempts", RUN_ATTEMPTS_MAX, &attempts },
        { "factor", 1e6, &factor },
        { "minTimeoutInMs", 1e12, &min },
        { "maxTimeoutInMs", 1e12, &max },
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (read_number(spot, json_object_get(retry, numbers[i].name), numbers[i].name,
                        numbers[i].max, numbers[i].number))
            return ERR_INVALID;
    task->has_retry = true;
    task->max_attempts = (uint16_t)attempts;
    task->factor = factor;
    task->min_timeout_ms = (int64_t)min;
    task->max_timeout_ms = (int64_t)max;
    task->randomize = !json_is_false(json_object_get(retry, "randomize"));
    enum machine machine;
    const char *name = json_string_value(
        json_object_get(json_object_get(retry, "outOfMemory"), "machine"));
    if (name && !machine_from_name(slice_of(name), &machine))
        task->big_machine = (uint8_t)machine;
    return OK;
}

/* A text like "1h", or seconds; 0 stays: the run never expires. */
static enum err read_ttl(const struct spot *spot, const json_t *ttl,
                         struct worker_task *task)
{
    char text[48];
    double seconds = 0;
    if (!is_set(ttl) || json_is_string(ttl))
        return read_name(spot, ttl, "ttl", &task->ttl);
    if (read_number(spot, ttl, "ttl", 1e10, &seconds))
        return ERR_INVALID;
    text_from_seconds((uint64_t)seconds, text);
    task->ttl = bytes_create_shared(slice_of(text));
    return OK;
}

static unsigned place_of(const char *type)
{
    for (unsigned i = 0; type && i < ENVIRONMENT_TYPES; i++)
        if (!strcmp(type, environment_type_name((enum environment_type)i)))
            return 1u << i;
    return 0;
}

/* Unset or empty: everywhere. */
static enum err read_places(const struct spot *spot, const json_t *list, unsigned *places)
{
    size_t i;
    json_t *name;
    *places = 0;
    if (is_set(list) && !json_is_array(list))
        return refuse(spot, "schedule.environments", "must be an array");
    json_array_foreach(list, i, name)
    {
        unsigned place = place_of(json_string_value(name));
        if (!place)
            return refuse(spot, "schedule.environments",
                          "must be names like DEVELOPMENT, STAGING, PRODUCTION, PREVIEW");
        *places |= place;
    }
    if (!json_array_size(list))
        *places = ~0u;
    return OK;
}

/* Only the shape: what the texts mean is looked at before a version is taken. */
static enum err read_schedule(const struct spot *spot, const json_t *schedule,
                              struct worker_task *task)
{
    if (!is_set(schedule))
        return OK;
    if (!json_is_object(schedule))
        return refuse(spot, "schedule", "must be an object");
    enum err err =
        read_name(spot, json_object_get(schedule, "cron"), "schedule.cron", &task->cron);
    if (!err && !task->cron)
        err = refuse(spot, "schedule.cron", "must be a string of 1 to 256 bytes");
    if (!err)
        err = read_name(spot, json_object_get(schedule, "timezone"), "schedule.timezone",
                        &task->timezone);
    if (!err)
        err = read_name(spot, json_object_get(schedule, "window"), "schedule.window",
                        &task->window);
    if (!err)
        err = read_places(spot, json_object_get(schedule, "environments"),
                          &task->schedule_in);
    if (!err && !task->timezone)
        task->timezone = bytes_create_shared(SLICE("UTC"));
    return err;
}

static void read_machine(const json_t *machine, struct worker_task *task)
{
    enum machine preset;
    const char *name = json_string_value(json_object_get(machine, "preset"));
    task->machine = name && !machine_from_name(slice_of(name), &preset) ? (int)preset : -1;
}

static enum err read_task(const struct spot *spot, const json_t *json,
                          struct worker *worker)
{
    struct worker_task *task = &worker->tasks[worker->task_count++];
    const char *source = json_string_value(json_object_get(json, "triggerSource"));
    double max_duration = 0;

    enum err err = read_name(spot, json_object_get(json, "id"), "id", &task->id);
    if (!err && !task->id)
        err = refuse(spot, "id", "must be a string of 1 to 256 bytes");
    err = err ? err
              : read_path(spot, json_object_get(json, "filePath"), "filePath",
                          &task->file_path);
    err = err ? err
              : read_path(spot, json_object_get(json, "exportName"), "exportName",
                          &task->export_name);
    err = err ? err : read_task_queue(spot, json_object_get(json, "queue"), task, worker);
    err = err ? err : read_retry(spot, json_object_get(json, "retry"), task);
    err = err ? err : read_schedule(spot, json_object_get(json, "schedule"), task);
    err = err ? err : read_ttl(spot, json_object_get(json, "ttl"), task);
    err = err ? err
              : read_number(spot, json_object_get(json, "maxDuration"), "maxDuration",
                            INT32_MAX, &max_duration);
    read_machine(json_object_get(json, "machine"), task);
    task->is_scheduled = source && !strcmp(source, "schedule");
    task->max_duration_s = max_duration < INT32_MAX ? (uint32_t)max_duration : 0;
    return err;
}

/* ---- the lists ---- */

typedef enum err element_fn(const struct spot *spot, const json_t *json,
                            struct worker *worker);

/* What is read of a task or a queue. */
static const char *const used[] = { "id",    "filePath",      "exportName",
                                    "queue", "retry",         "schedule",
                                    "ttl",   "maxDuration",   "machine",
                                    "name",  "triggerSource", "concurrencyLimit" };

enum { USED_COUNT = sizeof(used) / sizeof(used[0]) };

/* The members that are used, as a tree: what else comes along (schemas of payloads) may be
 * megabytes of small values, and a tree of them hundreds of milliseconds. */
static json_t *load_used(struct slice object, json_error_t *error)
{
    struct slice values[USED_COUNT];
    struct buf text = { 0 };
    members_find(object, used, USED_COUNT, values);
    buf_add_char(&text, '{');
    for (size_t i = 0; i < USED_COUNT; i++)
        members_add_json(&text, used[i], values[i]);
    buf_add_char(&text, '}');
    json_t *json = json_loadb(text.ptr, text.len, 0, error);
    buf_finish(&text);
    return json;
}

static enum err read_element(const struct spot *spot, struct slice span, element_fn *read,
                             struct worker *worker)
{
    json_error_t error;
    if (scan_type(span) != SCAN_OBJECT)
        return explain(spot->why, ERR_INVALID, "metadata.%s[%zu]: must be an object",
                       spot->list, spot->index);
    json_t *json = load_used(span, &error);
    if (!json)
        return explain(spot->why, ERR_INVALID, "metadata.%s[%zu]: %s", spot->list,
                       spot->index, error.text);
    enum err err = read(spot, json, worker);
    json_decref(json);
    return err;
}

static enum err read_list(struct slice metadata, const char *list, element_fn *read,
                          struct worker *worker, struct failure *why)
{
    struct spot spot = { .list = list, .why = why };
    struct slice span, array = scan_member(metadata, list);
    enum err err = OK;

    if (scan_type(array) == SCAN_NONE || scan_type(array) == SCAN_NULL)
        return OK;
    if (scan_type(array) != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "metadata.%s: must be an array", list);
    struct scan_members elements = scan_members(array);
    for (; !err && scan_next_element(&elements, &span); spot.index++)
        err = read_element(&spot, span, read, worker);
    return err;
}

/* Refuses more than there may be before any of them is read. */
static enum err count_elements(struct slice metadata, const char *list, size_t most,
                               size_t *count, struct failure *why)
{
    struct slice span, array = scan_member(metadata, list);
    *count = 0;
    if (scan_type(array) != SCAN_ARRAY)
        return OK;
    struct scan_members elements = scan_members(array);
    while (*count <= most && scan_next_element(&elements, &span))
        ++*count;
    return *count <= most ? OK
                          : explain(why, ERR_INVALID, "metadata.%s: at most %zu are taken",
                                    list, most);
}

static enum err check_ids(const struct worker *worker, struct failure *why)
{
    const struct worker_task *tasks = worker->tasks;
    for (size_t i = 1; i < worker->task_count; i++)
        if (slice_equal(bytes_slice(tasks[i - 1].id), bytes_slice(tasks[i].id)))
            return explain(why, ERR_INVALID,
                           "metadata.tasks: two tasks have the id '%.80s': give each its "
                           "own",
                           tasks[i].id->data);
    return OK;
}

static enum err read_hash(struct slice metadata, struct worker *worker, struct failure *why)
{
    struct buf hash = { 0 };
    bool is_text = scan_string(scan_member(metadata, "contentHash"), &hash);
    bool fits = is_text && hash.len && hash.len < sizeof(worker->content_hash);
    if (fits)
        memcpy(worker->content_hash, hash.ptr, hash.len);
    buf_finish(&hash);
    return fits ? OK
                : explain(why, ERR_INVALID,
                          "metadata.contentHash: must be a string of 1 to 127 bytes");
}

static enum err read_metadata(struct slice metadata, size_t tasks_max, size_t queues_max,
                              struct registration *all, struct failure *why)
{
    size_t count, queues;
    if (scan_type(scan_member(metadata, "tasks")) != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "metadata.tasks: must be an array");
    if (count_elements(metadata, "tasks", tasks_max, &count, why) ||
        count_elements(metadata, "queues", queues_max, &queues, why))
        return ERR_INVALID;
    struct worker *worker = all->worker = mem_new(struct worker);
    worker->tasks = mem_new_array(struct worker_task, count);
    enum err err = read_hash(metadata, worker, why);
    err = err ? err : read_list(metadata, "tasks", read_task, worker, why);
    err = err ? err : read_list(metadata, "queues", read_queue, worker, why);
    if (!err)
        worker_sort(worker);
    return err ? err : check_ids(worker, why);
}

static enum err read_within(struct slice body, size_t tasks_max, size_t queues_max,
                            struct registration *registration, struct failure *why)
{
    struct slice metadata = scan_member(body, "metadata");
    struct registration all = { 0 };

    if (scan_type(metadata) != SCAN_OBJECT)
        return explain(why, ERR_INVALID, "metadata: must be an object");
    enum err err = read_metadata(metadata, tasks_max, queues_max, &all, why);
    if (err)
        registration_finish(&all);
    else
        *registration = all;
    return err;
}

enum err registration_read(struct slice body, struct registration *registration,
                           struct failure *why)
{
    return read_within(body, TASKS_MAX, QUEUES_MAX, registration, why);
}

enum err registration_read_again(struct slice body, struct registration *registration,
                                 struct failure *why)
{
    return read_within(body, SIZE_MAX - 1, SIZE_MAX - 1, registration, why);
}

void registration_finish(struct registration *registration)
{
    worker_destroy(registration->worker);
    *registration = (struct registration){ 0 };
}

void registration_apply(struct registration *registration, struct environment *env)
{
    struct worker *worker = registration->worker;
    for (size_t i = 0; i < worker->queue_count; i++)
        queues_set_limit(&env->queues, bytes_slice(worker->queues[i].name),
                         worker->queues[i].limit);
    workers_add(env->workers, worker);
    registration->worker = NULL;
}

/* ---- forgetting ---- */

static void on_forgotten(struct document_write *write, enum err status)
{
    (void)status; /* what stays is forgotten after the next start */
    free(write);
}

void registration_forget_oldest(struct engine *engine, struct environment *env)
{
    for (struct worker *worker; (worker = workers_take_excess(env->workers));) {
        struct bytes *name = registration_document_name(worker);
        document_write_begin(engine, env->number, DOC_WORKER, name, NULL, 1,
                             mem_new(struct document_write), on_forgotten);
        bytes_unref(name);
        for (size_t i = 0; i < worker->queue_count; i++)
            queues_forget_limit(&env->queues, bytes_slice(worker->queues[i].name));
        worker_destroy(worker);
    }
}
