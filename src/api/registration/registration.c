/* registration.c - reads tasks and queues from JSON, and makes them known to the engine.
 *
 * The members in use were extracted while the body arrived (declaration.h). One task or
 * queue at a time becomes a tree, and the tree a member of the worker. */
#include "api/registration/registration.h"

#include <jansson.h>
#include <math.h>

#include "accounts/bootstrap.h"
#include "api/registration/member.h"
#include "api/registration/registration_limits.h"
#include "base/json/json_tree.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/fleet/dev_sessions.h"

enum {
    TASKS_MAX = 1000,
    QUEUES_MAX = 1000, /* without those that tasks add */
    /* Counts members that are used: a tree of them takes less than a millisecond. */
    TASK_BYTES_MAX = 16 * 1024,
    DEFAULT_ATTEMPTS = 3,
    DEFAULT_MIN_TIMEOUT_MS = 1000,
    DEFAULT_MAX_TIMEOUT_MS = 60000,
};

/* ---- queues ---- */

/* Takes ownership of the name. The queue has no limit yet. */
static struct queue_limit *add_queue(struct worker *worker, struct bytes *name)
{
    size_t size = (worker->queue_count + 1) * sizeof(struct queue_limit);
    worker->queues = mem_resize(worker->queues, size);
    struct queue_limit *queue = &worker->queues[worker->queue_count++];
    *queue = (struct queue_limit){ .name = name, .limit = UINT32_MAX, .total = UINT32_MAX };
    return queue;
}

/* Reads the limits of a queue into it. in: what stands before the names of the members. */
static enum err read_limits(const struct member_location *location, const json_t *json,
                            const char *in, struct queue_limit *queue)
{
    char member[48];
    snprintf(member, sizeof(member), "%sconcurrencyLimit", in);
    if (member_read_limit(location, json_object_get(json, "concurrencyLimit"), member,
                          &queue->limit))
        return ERR_INVALID;
    snprintf(member, sizeof(member), "%scombinedConcurrencyLimit", in);
    return member_read_limit(location, json_object_get(json, "combinedConcurrencyLimit"),
                             member, &queue->total);
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

/* A task has a queue of its own unless it names one. A limit that it gives is that
 * queue's, and null removes an earlier limit. */
static enum err read_task_queue(const struct member_location *location, const json_t *queue,
                                struct worker_task *task, struct worker *worker)
{
    if (member_is_set(queue) && !json_is_object(queue))
        return member_refuse(location, "queue", "must be an object");
    if (member_read_name(location, json_object_get(queue, "name"), "queue.name",
                         &task->queue))
        return ERR_INVALID;
    struct queue_limit *added =
        add_queue(worker, task->queue ? bytes_ref(task->queue) : own_queue(task->id));
    if (read_limits(location, queue, "queue.", added))
        return ERR_INVALID;
    added->is_named_only = task->queue && !json_object_get(queue, "concurrencyLimit") &&
                           !json_object_get(queue, "combinedConcurrencyLimit");
    return OK;
}

static enum err read_queue(const struct member_location *location, const json_t *json,
                           struct worker *worker)
{
    struct bytes *name = NULL;
    if (member_read_name(location, json_object_get(json, "name"), "name", &name))
        return ERR_INVALID;
    if (!name)
        return member_refuse(location, "name", "must be a string of 1 to 256 bytes");
    return read_limits(location, json, "", add_queue(worker, name));
}

/* ---- a task ---- */

/* Reads the machine of the attempt that follows when a process ran out of memory. */
static enum err read_big_machine(const struct member_location *location,
                                 const json_t *out_of_memory, struct worker_task *task)
{
    int machine;
    enum err err = member_read_preset(location, json_object_get(out_of_memory, "machine"),
                                      "retry.outOfMemory.machine", &machine);
    if (!err && machine >= 0)
        task->big_machine = (uint8_t)machine;
    return err;
}

/* Settings that are missing have the SDK's defaults. */
static enum err read_retry(const struct member_location *location, const json_t *retry,
                           struct worker_task *task)
{
    double attempts = DEFAULT_ATTEMPTS, factor = 2, min = DEFAULT_MIN_TIMEOUT_MS,
           max = DEFAULT_MAX_TIMEOUT_MS;
    if (!member_is_set(retry))
        return OK;
    if (!json_is_object(retry))
        return member_refuse(location, "retry", "must be an object");
    const struct {
        const char *name;
        double max;
        double *number;
    } numbers[] = {
        { "factor", 1e6, &factor },
        { "minTimeoutInMs", 1e12, &min },
        { "maxTimeoutInMs", 1e12, &max },
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (member_read_number(location, json_object_get(retry, numbers[i].name),
                               numbers[i].name, numbers[i].max, numbers[i].number))
            return ERR_INVALID;
    if (member_read_whole(location, json_object_get(retry, "maxAttempts"),
                          "retry.maxAttempts", RUN_ATTEMPTS_MAX, &attempts))
        return ERR_INVALID;
    task->has_retry = true;
    task->max_attempts = (uint16_t)attempts;
    task->factor = factor;
    task->min_timeout_ms = (int64_t)min;
    task->max_timeout_ms = (int64_t)max;
    task->randomize = !json_is_false(json_object_get(retry, "randomize"));
    return read_big_machine(location, json_object_get(retry, "outOfMemory"), task);
}

/* A stored text that is not a duration counts as none: the environment's default
 * applies. */
static enum err read_ttl_text(const struct member_location *location, const json_t *ttl,
                              struct worker_task *task)
{
    struct slice text = { json_string_value(ttl), json_string_length(ttl) };
    int64_t ms;
    if (text_to_duration_ms(text, &ms) == OK)
        task->ttl = bytes_create_shared(text);
    else if (!location->is_stored)
        return member_refuse(location, "ttl",
                             "must be a duration like \"1h42m\" or a number of seconds");
    return OK;
}

/* Reads a text like "1h", or seconds. 0 stays: the run never expires. */
static enum err read_ttl(const struct member_location *location, const json_t *ttl,
                         struct worker_task *task)
{
    char text[48];
    double seconds = 0;
    if (!member_is_set(ttl))
        return OK;
    if (json_is_string(ttl))
        return read_ttl_text(location, ttl, task);
    if (member_read_whole(location, ttl, "ttl", 1e10, &seconds))
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

/* Reads the environments where a schedule is declared; unset or empty: all of them. */
static enum err read_places(const struct member_location *location, const json_t *list,
                            unsigned *places)
{
    size_t i;
    json_t *name;
    *places = 0;
    if (member_is_set(list) && !json_is_array(list))
        return member_refuse(location, "schedule.environments", "must be an array");
    json_array_foreach(list, i, name)
    {
        unsigned place = place_of(json_string_value(name));
        if (!place)
            return member_refuse(
                location, "schedule.environments",
                "must be names like DEVELOPMENT, STAGING, PRODUCTION, PREVIEW");
        *places |= place;
    }
    if (!json_array_size(list))
        *places = ~0u;
    return OK;
}

/* Reads the shape of a declared schedule. Its texts are checked before the version is
 * accepted. */
static enum err read_schedule(const struct member_location *location,
                              const json_t *schedule, struct worker_task *task)
{
    if (!member_is_set(schedule))
        return OK;
    if (!json_is_object(schedule))
        return member_refuse(location, "schedule", "must be an object");
    enum err err = member_read_name(location, json_object_get(schedule, "cron"),
                                    "schedule.cron", &task->cron);
    if (!err && !task->cron)
        err =
            member_refuse(location, "schedule.cron", "must be a string of 1 to 256 bytes");
    if (!err)
        err = member_read_name(location, json_object_get(schedule, "timezone"),
                               "schedule.timezone", &task->timezone);
    if (!err)
        err = member_read_name(location, json_object_get(schedule, "window"),
                               "schedule.window", &task->window);
    if (!err)
        err = read_places(location, json_object_get(schedule, "environments"),
                          &task->schedule_in);
    if (!err && !task->timezone)
        task->timezone = bytes_create_shared(SLICE("UTC"));
    return err;
}

static enum err read_machine(const struct member_location *location, const json_t *machine,
                             struct worker_task *task)
{
    if (member_is_set(machine) && !location->is_stored && !json_is_object(machine))
        return member_refuse(location, "machine", "must be an object");
    return member_read_preset(location, json_object_get(machine, "preset"),
                              "machine.preset", &task->machine);
}

static enum err read_task(const struct member_location *location, const json_t *json,
                          struct worker *worker)
{
    struct worker_task *task = &worker->tasks[worker->task_count++];
    const char *source = json_string_value(json_object_get(json, "triggerSource"));
    double max_duration = 0;

    enum err err = member_read_name(location, json_object_get(json, "id"), "id", &task->id);
    if (!err && !task->id)
        err = member_refuse(location, "id", "must be a string of 1 to 256 bytes");
    err = err ? err
              : member_read_path(location, json_object_get(json, "filePath"), "filePath",
                                 &task->file_path);
    err = err ? err
              : member_read_path(location, json_object_get(json, "exportName"),
                                 "exportName", &task->export_name);
    err =
        err ? err : read_task_queue(location, json_object_get(json, "queue"), task, worker);
    err = err ? err : read_retry(location, json_object_get(json, "retry"), task);
    err = err ? err : read_schedule(location, json_object_get(json, "schedule"), task);
    err = err ? err : read_ttl(location, json_object_get(json, "ttl"), task);
    err = err ? err
              : member_read_number(location, json_object_get(json, "maxDuration"),
                                   "maxDuration", INT32_MAX, &max_duration);
    err = err ? err : read_machine(location, json_object_get(json, "machine"), task);
    err = err ? err : registration_read_needs(location, json, task, worker);
    task->is_scheduled = source && !strcmp(source, "schedule");
    task->max_duration_s = max_duration < INT32_MAX ? (uint32_t)ceil(max_duration) : 0;
    return err;
}

/* ---- one element after another ---- */

static enum err add_task(const struct member_location *location, const json_t *json,
                         struct worker *worker)
{
    size_t count = worker->task_count;
    if (!(count & (count - 1))) { /* full: the capacity is 0, 1, 2, 4, … */
        size_t room = count ? 2 * count : 1;
        worker->tasks = mem_resize(worker->tasks, room * sizeof(struct worker_task));
    }
    worker->tasks[count] = (struct worker_task){ 0 };
    return read_task(location, json, worker);
}

/* Loads an element without its schema, a part of the text, which may contain values that no
 * tree can hold. */
static json_t *load_without(struct slice text, struct slice schema, struct failure *wrong)
{
    struct buf rest = { 0 };
    if (!schema.ptr)
        return json_tree_read(text, 0, wrong);
    size_t before = (size_t)(schema.ptr - text.ptr);
    buf_add(&rest, (struct slice){ text.ptr, before });
    buf_add_text(&rest, "null");
    buf_add(&rest, slice_from(text, before + schema.len));
    json_t *json = json_tree_read(buf_slice(&rest), 0, wrong);
    buf_finish(&rest);
    return json;
}

/* Keeps a schema unchanged, for people to read. */
static void keep_schema(struct slice schema, struct worker_task *task)
{
    if (scan_type(schema) == SCAN_OBJECT)
        task->schema = bytes_create(schema);
}

static enum err read_element(const struct member_location *location, struct slice span,
                             struct registration_reader *reader)
{
    struct failure wrong;
    if (scan_type(span) != SCAN_OBJECT)
        return explain(location->why, ERR_INVALID, "metadata.%s[%zu]: must be an object",
                       location->list, location->index);
    struct slice schema = scan_member(span, "payloadSchema");
    json_t *json = load_without(span, schema, &wrong);
    if (!json)
        return explain(location->why, ERR_INVALID, "metadata.%s[%zu]: %s", location->list,
                       location->index, wrong.text);
    enum err err = reader->list == DECLARED_TASKS
                       ? add_task(location, json, reader->worker)
                       : read_queue(location, json, reader->worker);
    if (!err && reader->list == DECLARED_TASKS)
        unsupported_note_task(&reader->unsupported, json);
    else if (!err)
        unsupported_note_queue(&reader->unsupported, json);
    json_decref(json);
    if (!err && reader->list == DECLARED_TASKS)
        keep_schema(schema, &reader->worker->tasks[reader->worker->task_count - 1]);
    return err;
}

static enum err check_ids(const struct worker *worker, struct failure *why)
{
    const struct worker_task *tasks = worker->tasks;
    for (size_t i = 1; i < worker->task_count; i++)
        if (slice_equal(bytes_slice(tasks[i - 1].id), bytes_slice(tasks[i].id)))
            return explain(
                why, ERR_INVALID,
                "metadata.tasks: two tasks have the id \"%.80s\"; give each its own",
                tasks[i].id->data);
    return OK;
}

/* Refuses two values of a limit: one of them would be ignored. UINT32_MAX: not given. In a
 * stored version, the last one counts. */
static enum err merge_limit(uint32_t *limit, uint32_t other, const char *member,
                            const struct queue_limit *queue,
                            const struct registration_reader *reader, struct failure *why)
{
    bool differs = *limit != UINT32_MAX && other != UINT32_MAX && *limit != other;
    if (differs && !reader->is_stored)
        return explain(why, ERR_INVALID,
                       "metadata.queues: the queue \"%.80s\" is declared with the limits "
                       "%u and %u; give it one %s",
                       queue->name->data, *limit, other, member);
    if (other != UINT32_MAX)
        *limit = other;
    return OK;
}

/* Tasks and the list of queues may declare the same queue: each element gets the limits of
 * all. */
static enum err merge_queues(const struct registration_reader *reader, struct failure *why)
{
    struct worker *worker = reader->worker;
    for (size_t i = 0; i < worker->queue_count; i++) {
        struct queue_limit *queue = &worker->queues[i];
        struct queue_limit *first =
            table_find(&worker->queues_by_name, bytes_slice(queue->name));
        if (merge_limit(&first->limit, queue->limit, "concurrencyLimit", queue, reader,
                        why) ||
            merge_limit(&first->total, queue->total, "combinedConcurrencyLimit", queue,
                        reader, why))
            return ERR_INVALID;
        first->is_named_only &= queue->is_named_only;
    }
    for (size_t i = 0; i < worker->queue_count; i++) {
        struct queue_limit *queue = &worker->queues[i];
        const struct queue_limit *first =
            table_find(&worker->queues_by_name, bytes_slice(queue->name));
        queue->limit = first->limit;
        queue->total = first->total;
        queue->is_named_only = first->is_named_only;
    }
    return OK;
}

static void begin_list(struct registration_reader *reader, enum declaration_part list)
{
    struct slice array = declaration_part(&reader->declaration, list);
    reader->list = list;
    reader->elements = scan_members(array);
    reader->index = 0;
}

static enum err read_one(struct registration_reader *reader, struct slice span,
                         struct failure *why)
{
    struct member_location location = { declaration_name(reader->list), reader->index++,
                                        reader->is_stored, why };
    size_t most = reader->list == DECLARED_TASKS ? reader->tasks_max : reader->queues_max;
    if (location.index == most)
        return explain(why, ERR_INVALID, "metadata.%s: too many (max %zu)", location.list,
                       most);
    return read_element(&location, span, reader);
}

static void note_lists(struct registration_reader *reader)
{
    const struct declaration *declaration = &reader->declaration;
    struct unsupported *all = &reader->unsupported;
    unsupported_note_prompts(all, declaration_part(declaration, DECLARED_PROMPTS));
    unsupported_note_webhooks(all, declaration_part(declaration, DECLARED_WEBHOOKS));
    if (!all->webhooks.len)
        unsupported_note_webhooks(all, declaration_part(declaration, DECLARED_SUBSCRIBERS));
}

enum err registration_read_next(struct registration_reader *reader,
                                struct registration *registration, struct failure *why)
{
    struct slice span;
    if (scan_next_element(&reader->elements, &span))
        return read_one(reader, span, why);
    if (reader->list == DECLARED_TASKS) {
        begin_list(reader, DECLARED_QUEUES);
        return OK;
    }
    worker_sort(reader->worker);
    if (check_ids(reader->worker, why) || merge_queues(reader, why) ||
        registration_read_limits(declaration_part(&reader->declaration, DECLARED_LIMITS),
                                 reader->is_stored, reader->worker, why))
        return ERR_INVALID;
    note_lists(reader);
    registration->worker = reader->worker;
    reader->worker = NULL;
    return OK;
}

/* ---- the body ---- */

static enum err read_hash(struct slice text, struct worker *worker, struct failure *why)
{
    struct buf hash = { 0 };
    bool is_text = scan_string(text, &hash);
    bool fits = is_text && hash.len && hash.len < sizeof(worker->content_hash);
    if (fits)
        memcpy(worker->content_hash, hash.ptr, hash.len);
    buf_finish(&hash);
    return fits ? OK
                : explain(why, ERR_INVALID,
                          "metadata.contentHash: must be a string of 1 to 127 bytes");
}

/* Reads a version that is only shown. Ignores one that is not a text, or too long. */
static void read_package(struct slice text, char out[PACKAGE_VERSION_MAX])
{
    struct buf version = { 0 };
    if (scan_string(text, &version) && version.len < PACKAGE_VERSION_MAX)
        memcpy(out, buf_slice(&version).ptr, version.len);
    buf_finish(&version);
}

static void init_within(struct registration_reader *reader, size_t task_bytes, size_t tasks,
                        size_t queues)
{
    *reader = (struct registration_reader){ .tasks_max = tasks, .queues_max = queues };
    declaration_init(&reader->declaration, task_bytes);
}

void registration_reader_init(struct registration_reader *reader)
{
    init_within(reader, TASK_BYTES_MAX, TASKS_MAX, QUEUES_MAX);
}

enum err registration_feed(struct registration_reader *reader, struct slice piece,
                           struct failure *why)
{
    return declaration_feed(&reader->declaration, piece, why);
}

enum err registration_end(struct registration_reader *reader, struct failure *why)
{
    const struct declaration *declaration = &reader->declaration;
    enum scan_type queues = scan_type(declaration_part(declaration, DECLARED_QUEUES));

    if (declaration_end(&reader->declaration, why))
        return ERR_INVALID;
    if (scan_type(declaration_part(declaration, DECLARED_TASKS)) != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "metadata.tasks: must be an array");
    if (queues != SCAN_NONE && queues != SCAN_NULL && queues != SCAN_ARRAY)
        return explain(why, ERR_INVALID, "metadata.queues: must be an array");
    reader->worker = mem_new(struct worker);
    begin_list(reader, DECLARED_TASKS);
    read_package(declaration_part(declaration, DECLARED_SDK), reader->worker->sdk);
    read_package(declaration_part(declaration, DECLARED_CLI), reader->worker->cli);
    return read_hash(declaration_part(declaration, DECLARED_HASH), reader->worker, why);
}

void registration_reader_finish(struct registration_reader *reader)
{
    declaration_finish(&reader->declaration);
    unsupported_finish(&reader->unsupported);
    worker_destroy(reader->worker);
    *reader = (struct registration_reader){ 0 };
}

enum err registration_read_again(struct slice metadata, struct registration *registration,
                                 struct failure *why)
{
    struct registration_reader reader;
    struct slice pieces[] = { SLICE("{\"metadata\":"), metadata, SLICE("}") };
    enum err err = OK;

    init_within(&reader, SIZE_MAX, SIZE_MAX, SIZE_MAX);
    reader.is_stored = true;
    for (size_t i = 0; !err && i < sizeof(pieces) / sizeof(pieces[0]); i++)
        err = registration_feed(&reader, pieces[i], why);
    err = err ? err : registration_end(&reader, why);
    while (!err && !registration->worker)
        err = registration_read_next(&reader, registration, why);
    registration_reader_finish(&reader);
    return err;
}

void registration_finish(struct registration *registration)
{
    worker_destroy(registration->worker);
    buf_finish(&registration->tasks);
    *registration = (struct registration){ 0 };
}

/* A version counts as often as it declares a queue. */
void registration_set_limits(struct worker *worker, struct environment *env)
{
    for (size_t i = 0; i < worker->queue_count; i++) {
        const struct queue_limit *queue = &worker->queues[i];
        struct slice name = bytes_slice(queue->name);
        if (!worker->has_limits && queue->is_named_only)
            queues_register(&env->queues, name);
        else if (!worker->has_limits)
            queues_set_limit(&env->queues, name, queue->limit);
        else if (!queue->is_named_only)
            queues_change_limit(&env->queues, name, queue->limit);
        if (!queue->is_named_only)
            queues_set_total(&env->queues, name, queue->total);
    }
    registration_register_limits(worker, env);
    worker->has_limits = true;
}

static struct worker *take_worker(struct registration *registration)
{
    struct worker *worker = registration->worker;
    registration->worker = NULL;
    return worker;
}

void registration_apply(struct registration *registration, struct environment *env)
{
    if (!env->is_dev) {
        workers_add(env->fleet->workers, take_worker(registration));
        return;
    }
    registration_set_limits(registration->worker, env);
    dev_sessions_add(env, take_worker(registration));
}

void registration_apply_stored(struct registration *registration, struct environment *env)
{
    if (!registration->worker->deployment[0])
        registration_set_limits(registration->worker, env);
    workers_add(env->fleet->workers, take_worker(registration));
}
