/* registration_document.c - stores, restores and forgets worker versions. */
#include <stdio.h>

#include "accounts/bootstrap.h"
#include "api/registration/registration.h"
#include "api/registration/registration_limits.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/fleet/dev_sessions.h"

/* ---- writing ---- */

static void add_retry(struct buf *out, const struct worker_task *task)
{
    if (!task->has_retry)
        return;
    buf_print(out, ",\"retry\":{\"maxAttempts\":%u,\"factor\":", task->max_attempts);
    buf_add_json_double(out, task->factor);
    buf_print(out, ",\"minTimeoutInMs\":%lld,\"maxTimeoutInMs\":%lld,\"randomize\":%s",
              (long long)task->min_timeout_ms, (long long)task->max_timeout_ms,
              task->randomize ? "true" : "false");
    if (task->big_machine)
        buf_print(out, ",\"outOfMemory\":{\"machine\":\"%s\"}",
                  machine_name((enum machine)task->big_machine));
    buf_add_char(out, '}');
}

static void add_schedule(struct buf *out, const struct worker_task *task)
{
    bool first = true;
    if (!task->cron)
        return;
    buf_add_text(out, ",\"schedule\":{\"cron\":");
    buf_add_json(out, bytes_slice(task->cron));
    members_add_text(out, "timezone", bytes_slice(task->timezone));
    members_add_text(out, "window", bytes_slice(task->window));
    buf_add_text(out, ",\"environments\":[");
    for (unsigned type = 0; task->schedule_in != ~0u && type < ENVIRONMENT_TYPES; type++) {
        if (!(task->schedule_in & 1u << type))
            continue;
        buf_print(out, "%s\"%s\"", first ? "" : ",",
                  environment_type_name((enum environment_type)type));
        first = false;
    }
    buf_add_text(out, "]}");
}

static void add_task(struct buf *out, const struct worker *worker,
                     const struct worker_task *task)
{
    buf_add_text(out, "{\"id\":");
    buf_add_json(out, bytes_slice(task->id));
    members_add_text(out, "filePath", bytes_slice(task->file_path));
    members_add_text(out, "exportName", bytes_slice(task->export_name));
    members_add_text(out, "ttl", bytes_slice(task->ttl));
    members_add_json(out, "payloadSchema", bytes_slice(task->schema));
    if (task->queue) {
        buf_add_text(out, ",\"queue\":{\"name\":");
        buf_add_json(out, bytes_slice(task->queue));
        buf_add_char(out, '}');
    }
    if (task->machine >= 0)
        buf_print(out, ",\"machine\":{\"preset\":\"%s\"}",
                  machine_name((enum machine)task->machine));
    if (task->is_scheduled)
        buf_add_text(out, ",\"triggerSource\":\"schedule\"");
    if (task->max_duration_s)
        buf_print(out, ",\"maxDuration\":%u", task->max_duration_s);
    add_retry(out, task);
    add_schedule(out, task);
    registration_write_needs(out, worker, task);
    buf_add_char(out, '}');
}

static void add_queue(struct buf *out, const struct queue_limit *queue)
{
    buf_add_text(out, "{\"name\":");
    buf_add_json(out, bytes_slice(queue->name));
    if (queue->limit != UINT32_MAX)
        buf_print(out, ",\"concurrencyLimit\":%u", queue->limit);
    if (queue->total != UINT32_MAX)
        buf_print(out, ",\"combinedConcurrencyLimit\":%u", queue->total);
    buf_add_char(out, '}');
}

void registration_write_task(struct registration *registration)
{
    const struct worker *worker = registration->worker;
    if (registration->written)
        buf_add_char(&registration->tasks, ',');
    add_task(&registration->tasks, worker, &worker->tasks[registration->written++]);
}

static void add_deployment(struct buf *out, const struct worker *worker)
{
    if (!worker->deployment[0])
        return;
    buf_add_text(out, ",\"deployment\":{");
    members_add_text(out, "id", slice_of(worker->deployment));
    members_add_text(out, "shortCode", slice_of(worker->short_code));
    members_add_text(out, "externalId", slice_of(worker->external_id));
    members_add_text(out, "archiveHash", slice_of(worker->archive_hash));
    members_add_text(out, "runtime", slice_of(worker->runtime));
    buf_add_char(out, '}');
}

struct bytes *registration_write(struct registration *registration)
{
    const struct worker *worker = registration->worker;
    struct buf out = { 0 };

    while (registration->written < worker->task_count)
        registration_write_task(registration);
    buf_print(&out, "{\"id\":\"%s\",\"version\":\"%s\",\"createdAt\":%lld,\"contentHash\":",
              worker->id, worker->version, (long long)worker->created_at);
    buf_add_json(&out, slice_of(worker->content_hash));
    members_add_text(&out, "packageVersion", slice_of(worker->sdk));
    members_add_text(&out, "cliPackageVersion", slice_of(worker->cli));
    add_deployment(&out, worker);
    members_add_json(&out, "warnings", bytes_slice(worker->warnings));
    buf_add_text(&out, ",\"tasks\":[");
    buf_add(&out, buf_slice(&registration->tasks));
    buf_add_text(&out, "],\"queues\":[");
    for (size_t i = 0; i < worker->queue_count; i++) {
        if (worker->queues[i].is_named_only) /* its task names it */
            continue;
        if (out.ptr[out.len - 1] != '[')
            buf_add_char(&out, ',');
        add_queue(&out, &worker->queues[i]);
    }
    buf_add_char(&out, ']');
    registration_write_limits(&out, worker);
    buf_add_char(&out, '}');
    struct bytes *body = buf_to_bytes(&out);
    buf_finish(&out);
    return body;
}

struct bytes *registration_document_name(const struct worker *worker)
{
    char name[32];
    struct slice number = slice_of(worker->version), day;
    uint64_t n = 0;
    slice_split(&number, '.', &day);
    if (number.ptr && text_to_u64(number, &n))
        n = 0;
    snprintf(name, sizeof(name), "%.*s.%06llu", SLICE_ARG(day), (unsigned long long)n);
    return bytes_create(slice_of(name));
}

/* ---- reading ---- */

static bool read_text(struct slice body, const char *member, char *out, size_t size)
{
    struct buf text = { 0 };
    bool fits = scan_string(scan_member(body, member), &text) && text.len < size;
    if (fits) {
        memcpy(out, buf_slice(&text).ptr, text.len);
        out[text.len] = '\0';
    }
    buf_finish(&text);
    return fits;
}

/* Reads the deployment. The document of a plain registration has none. */
static bool read_deployment(struct slice body, struct worker *worker)
{
    struct slice given = scan_member(body, "deployment");
    if (!given.ptr)
        return true;
    if (scan_type(given) == SCAN_OBJECT) /* older documents lack it */
        read_text(given, "runtime", worker->runtime, sizeof(worker->runtime));
    return scan_type(given) == SCAN_OBJECT &&
           read_text(given, "id", worker->deployment, sizeof(worker->deployment)) &&
           worker->deployment[0] &&
           read_text(given, "shortCode", worker->short_code, sizeof(worker->short_code)) &&
           read_text(given, "externalId", worker->external_id,
                     sizeof(worker->external_id)) &&
           read_text(given, "archiveHash", worker->archive_hash,
                     sizeof(worker->archive_hash));
}

enum err registration_restore(struct slice body, struct registration *registration,
                              struct failure *why)
{
    struct registration read = { 0 };

    if (!scan_is_json(body))
        return explain(why, ERR_INVALID, "A worker's document is damaged");
    enum err err = registration_read_again(body, &read, why);
    if (err)
        return err;
    struct worker *worker = read.worker;
    if (!read_text(body, "id", worker->id, sizeof(worker->id)) ||
        !read_text(body, "version", worker->version, sizeof(worker->version)) ||
        text_to_i64(scan_member(body, "createdAt"), &worker->created_at) ||
        !read_deployment(body, worker)) {
        registration_finish(&read);
        return explain(why, ERR_INVALID, "A worker's document is damaged");
    }
    struct slice warnings = scan_member(body, "warnings");
    if (scan_type(warnings) == SCAN_ARRAY)
        worker->warnings = bytes_create(warnings);
    *registration = read;
    return OK;
}

enum err registration_restore_document(struct environment *env,
                                       const struct document *document, struct failure *why)
{
    struct registration registration;
    enum err err = registration_restore(bytes_slice(document->body), &registration, why);
    if (err)
        return err;
    registration_apply_stored(&registration, env);
    registration_finish(&registration);
    return OK;
}

/* ---- forgetting ---- */

static void on_forgotten(struct document_write *write, enum err status)
{
    (void)status; /* the rest is forgotten after the next start */
    free(write);
}

/* Forgets a worker that is no longer among the versions; takes ownership of it. */
static void forget(struct engine *engine, struct environment *env, struct worker *worker)
{
    struct bytes *name = registration_document_name(worker);
    document_write_begin(engine, env->number, DOC_WORKER, name, NULL, 1,
                         mem_new(struct document_write), on_forgotten);
    bytes_unref(name);
    for (size_t i = 0; worker->has_limits && i < worker->queue_count; i++)
        queues_forget_limit(&env->queues, bytes_slice(worker->queues[i].name));
    registration_forget_limits(worker, env);
    dev_sessions_forget(env, worker);
    worker_destroy(worker);
    engine_match(engine, env);
}

static struct sibling_workers sibling_versions(const struct engine *engine,
                                               const struct environment *env)
{
    struct sibling_workers siblings = { .is_branch = environment_is_branch(env) };
    uint32_t at = 0;
    for (struct environment *other; (other = engine_next_environment(engine, &at));) {
        if (other == env || !engine_share_quota(env, other->number))
            continue;
        struct workers_sum *sum =
            environment_is_branch(other) ? &siblings.branches : &siblings.others;
        sum->versions += other->fleet->workers->count;
        sum->tasks += other->fleet->workers->tasks;
    }
    return siblings;
}

void registration_forget_oldest(struct engine *engine, struct environment *env)
{
    struct workers *workers = env->fleet->workers;
    struct sibling_workers siblings = sibling_versions(engine, env);
    for (struct worker *worker; (worker = workers_take_excess(workers, siblings));)
        forget(engine, env, worker);
}

bool registration_forget(struct engine *engine, struct environment *env,
                         struct worker *worker)
{
    struct workers *workers = env->fleet->workers;
    if (!workers_may_take(workers, worker))
        return false;
    workers_take(workers, worker);
    forget(engine, env, worker);
    return true;
}
