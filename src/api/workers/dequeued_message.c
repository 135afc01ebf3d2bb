/* dequeued_message.c - writes snapshots, runs and executions as JSON, for workers. */
#include "api/workers/dequeued_message.h"

#include <inttypes.h>

#include "accounts/auth/signed_url.h"
#include "accounts/variables.h"
#include "base/json/members.h"

enum {
    QUEUE_LEAST =
        10000, /* spans, and logs, that a task process keeps until they are sent */
    BATCHES_AT_ONCE = 25, /* the SDK sends at most 30 */
};

/* ---- members ---- */

static void open_object(struct buf *out, const char *name)
{
    members_add_name(out, name);
    buf_add_char(out, '{');
}

static void close_object(struct buf *out)
{
    buf_add_char(out, '}');
}

static void add_ids(struct buf *out, struct slice id)
{
    members_add_text(out, "id", id);
    members_add_text(out, "friendlyId", id);
}

/* ---- parts ---- */

static const char *const descriptions[EXECUTION_COUNT] = {
    [EXECUTION_CREATED] = "The run waits for a worker version",
    [EXECUTION_DELAYED] = "The run is delayed",
    [EXECUTION_QUEUED] = "The run is queued",
    [EXECUTION_PENDING_EXECUTING] = "The run was dequeued",
    [EXECUTION_EXECUTING] = "The run executes",
    [EXECUTION_WITH_WAITPOINTS] = "The run is blocked by a waitpoint",
    [EXECUTION_PENDING_CANCEL] = "The run is being canceled",
    [EXECUTION_FINISHED] = "The run is finished",
};

void message_add_snapshot(struct buf *out, const struct run *run)
{
    char id[64];
    run_snapshot_id(run, id);
    buf_add_char(out, '{');
    add_ids(out, slice_of(id));
    members_add_text(out, "executionStatus", slice_of(run_execution_name(run->execution)));
    members_add_text(out, "description", slice_of(descriptions[run->execution]));
    members_add_time(out, "createdAt", run->updated_at);
    close_object(out);
}

void message_add_run(struct buf *out, const struct run *run)
{
    buf_add_char(out, '{');
    add_ids(out, slice_of(run->id));
    members_add_text(out, "status",
                     slice_of(run_status_name(run->status, VOCABULARY_INTERNAL)));
    if (run->attempt)
        members_add_number(out, "attemptNumber", run->attempt);
    else
        members_add_json(out, "attemptNumber", SLICE("null"));
    close_object(out);
}

static void add_machine(struct buf *out, const struct run *run, double cents_per_ms)
{
    open_object(out, "machine");
    members_add_text(out, "name", slice_of(machine_name(run->machine)));
    members_add_name(out, "cpu");
    buf_add_json_double(out, machine_cpu(run->machine));
    members_add_name(out, "memory");
    buf_add_json_double(out, machine_memory_gb(run->machine));
    members_add_name(out, "centsPerMs");
    buf_add_json_double(out, cents_per_ms);
    close_object(out);
}

static void add_batch(struct buf *out, const struct run *run)
{
    if (!run->batch)
        return;
    open_object(out, "batch");
    add_ids(out, bytes_slice(run->batch));
    close_object(out);
}

/* ---- dequeue ---- */

static void add_dequeued_run(struct buf *out, const struct dequeued *dequeued)
{
    const struct run *run = dequeued->run;
    open_object(out, "run");
    add_ids(out, slice_of(run->id));
    members_add_bool(out, "isTest", run->is_test);
    members_add_bool(out, "isReplay", run->is_replay);
    add_machine(out, run, dequeued->cents_per_ms);
    members_add_number(out, "attemptNumber", run->attempt + 1);
    members_add_text(out, "masterQueue", slice_of(dequeued->account->id));
    members_add_json(out, "traceContext", SLICE("{}"));
    close_object(out);
}

static void add_worker(struct buf *out, const struct run *run, const struct worker *worker)
{
    open_object(out, "backgroundWorker");
    add_ids(out, worker ? slice_of(worker->id) : SLICE(""));
    members_add_text(out, "version", bytes_slice(run->worker_version));
    close_object(out);
}

/* "linux/amd64": the machine that the gateway was built for. */
#if defined(__aarch64__)
static const char image_platform[] = "linux/arm64";
#elif defined(__x86_64__)
static const char image_platform[] = "linux/amd64";
#else
static const char image_platform[] = "linux/unknown";
#endif

/* Adds a name for the image of a deployed version, which is a directory and has no image.
 * The CLI, the official supervisor and tasks expect a name and a platform nevertheless;
 * nothing is pulled. */
static void add_image_name(struct buf *out, const struct account *account,
                           struct slice version)
{
    buf_print(out, "runcast/%s:%.*s", account->project->ref, SLICE_ARG(version));
}

/* Adds the members by which a supervisor finds the version's code; a plain registration has
 * none. */
static void add_image(struct buf *out, const struct dequeued *dequeued)
{
    const struct worker *worker = dequeued->worker;
    struct buf image = { 0 };
    if (!worker || !worker->deployment[0]) {
        members_add_json(out, "deployment", SLICE("{}"));
        return;
    }
    open_object(out, "deployment");
    add_ids(out, slice_of(worker->deployment));
    members_add_text(out, "imagePlatform", slice_of(image_platform));
    close_object(out);
    add_image_name(&image, dequeued->account, slice_of(worker->version));
    members_add_text(out, "image", buf_slice(&image));
    buf_finish(&image);
    open_object(out, "x-runcast");
    members_add_text(out, "versionHash", slice_of(worker->archive_hash));
    close_object(out);
}

void message_add_dequeued(struct buf *out, const struct dequeued *dequeued)
{
    const struct account *account = dequeued->account;
    const struct run *run = dequeued->run;
    buf_add_text(out, "{\"version\":\"1\"");
    members_add_time(out, "dequeuedAt", dequeued->at);
    members_add_name(out, "snapshot");
    message_add_snapshot(out, run);
    members_add_json(out, "completedWaitpoints", SLICE("[]"));
    add_worker(out, run, dequeued->worker);
    add_image(out, dequeued);
    add_dequeued_run(out, dequeued);
    open_object(out, "environment");
    members_add_text(out, "id", slice_of(account->id));
    members_add_text(out, "type", slice_of(environment_type_name(account->type)));
    close_object(out);
    open_object(out, "organization");
    members_add_text(out, "id", slice_of(account->project->organization_id));
    close_object(out);
    open_object(out, "project");
    members_add_text(out, "id", slice_of(account->project_id));
    close_object(out);
    close_object(out);
}

/* ---- latest, complete ---- */

void message_add_state(struct buf *out, const struct run *run, struct slice waitpoints)
{
    buf_add_text(out, "{\"version\":\"1\"");
    members_add_name(out, "snapshot");
    message_add_snapshot(out, run);
    members_add_name(out, "run");
    message_add_run(out, run);
    members_add_json(out, "completedWaitpoints", waitpoints);
    add_batch(out, run);
    close_object(out);
}

void message_add_latest(struct buf *out, const struct run *run, struct slice waitpoints)
{
    buf_add_char(out, '{');
    members_add_name(out, "execution");
    message_add_state(out, run, waitpoints);
    close_object(out);
}

void message_add_result(struct buf *out, const struct run *run, enum attempt_result result)
{
    static const char *const names[] = {
        [ATTEMPT_RUN_FINISHED] = "RUN_FINISHED",
        [ATTEMPT_RETRY_IMMEDIATELY] = "RETRY_IMMEDIATELY",
        [ATTEMPT_RETRY_QUEUED] = "RETRY_QUEUED",
        [ATTEMPT_PENDING_CANCEL] = "RUN_PENDING_CANCEL",
    };
    buf_add_text(out, "{\"result\":{");
    members_add_text(out, "attemptStatus", slice_of(names[result]));
    members_add_name(out, "snapshot");
    message_add_snapshot(out, run);
    members_add_name(out, "run");
    message_add_run(out, run);
    buf_add_text(out, "}}");
}

/* ---- start ---- */

static void add_default(struct buf *out, const struct account *account, const char *name,
                        struct slice value)
{
    if (!variables_find(account, slice_of(name)))
        members_add_text(out, name, value);
}

/* Sets how the SDK sends spans and logs. Without these variables it sends each in a
 * separate request, and drops those beyond 30 requests.
 *
 * A queue holds the lines that a task logs before it yields; its length is the maximum
 * number of spans and logs of a run. Logs are sent one batch after another, each as soon as
 * the previous one has its response: with a short delay, few lines are lost when the
 * process is killed. When a run ends, all batches of the span queue are sent at once, and
 * with SDK 3.x also those of the log queue. The SDK drops those beyond 30. */
static void add_telemetry(struct buf *out, const struct task_home *home)
{
    int64_t queue = home->log_rows > QUEUE_LEAST ? home->log_rows : QUEUE_LEAST;
    const struct {
        const char *name;
        int64_t value;
    } variables[] = {
        { "TRIGGER_OTEL_BATCH_PROCESSING_ENABLED", 1 },
        { "TRIGGER_OTEL_LOG_MAX_QUEUE_SIZE", queue },
        { "TRIGGER_OTEL_LOG_MAX_EXPORT_BATCH_SIZE", queue / BATCHES_AT_ONCE },
        { "TRIGGER_OTEL_LOG_SCHEDULED_DELAY_MILLIS", 20 },
        { "TRIGGER_OTEL_SPAN_MAX_QUEUE_SIZE", queue },
        { "TRIGGER_OTEL_SPAN_MAX_EXPORT_BATCH_SIZE", queue / BATCHES_AT_ONCE },
        { "TRIGGER_OTEL_SPAN_SCHEDULED_DELAY_MILLIS", 20 },
    };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        char text[24];
        snprintf(text, sizeof(text), "%" PRId64, variables[i].value);
        add_default(out, home->account, variables[i].name, slice_of(text));
    }
}

/* Appends the path below the gateway's address where the environment's workers send spans
 * and logs: /otel/<environment>/<signature>, for which otel.c has routes. Requests there
 * carry no credential, so the path is signed and names the environment. */
static void add_telemetry_path(struct buf *out, const struct account *account)
{
    char signature[URL_SIGNATURE_LEN + 1];
    url_sign(account, "OTLP", SLICE("telemetry"), url_never_s, signature);
    buf_print(out, "/otel/%s/%s", account->id, signature);
}

void message_add_variables(struct buf *out, const struct run *run,
                           const struct task_home *home)
{
    const struct account *account = home->account;
    struct slice base_url = home->base_url;
    struct buf otel = { 0 };
    struct variable_walk walk = { 0 };
    buf_add(&otel, base_url);
    add_telemetry_path(&otel, account);
    buf_add_char(out, '{');
    for (const struct variable *v; (v = variables_next(account, &walk));)
        if (!variable_name_is_reserved(slice_of(v->name))) /* older ones may be */
            members_add_text(out, v->name, v->value);
    members_add_text(out, "TRIGGER_API_URL", base_url);
    members_add_text(out, "TRIGGER_STREAM_URL", base_url);
    add_default(out, account, "TRIGGER_OTEL_EXPORTER_OTLP_ENDPOINT", buf_slice(&otel));
    add_telemetry(out, home);
    add_default(out, account, "TRIGGER_REALTIME_STREAM_VERSION", SLICE("v1"));
    if (home->needs_key)
        members_add_text(out, "TRIGGER_SECRET_KEY", slice_of(account->secret_key));
    if (account->branch)
        members_add_text(out, "TRIGGER_PREVIEW_BRANCH", slice_of(account->branch));
    if (run) {
        members_add_text(out, "TRIGGER_RUN_ID", slice_of(run->id));
        members_add_text(out, "TRIGGER_MACHINE_PRESET",
                         slice_of(machine_name(run->machine)));
    }
    close_object(out);
    buf_finish(&otel);
}

static void add_optional_facts(struct buf *out, const struct run *run)
{
    const struct run_rare *rare = run_rare(run);
    if (run->max_attempts)
        members_add_number(out, "maxAttempts", run->max_attempts);
    if (run->max_duration_s)
        members_add_number(out, "maxDuration", run->max_duration_s);
    members_add_json(out, "metadata", bytes_slice(run->metadata));
    if (rare->priority_ms) {
        members_add_name(out, "priority");
        buf_add_json_double(out, rare->priority_ms / 1000.0);
    }
    members_add_text(out, "version", bytes_slice(run->worker_version));
    members_add_text(out, "idempotencyKey", bytes_slice(rare->idempotency_shown));
    members_add_text(out, "parentTaskRunId", bytes_slice(rare->parent));
    members_add_text(out, "rootTaskRunId", bytes_slice(rare->root));
    members_add_number(out, "durationMs", run->usage_ms);
    members_add_name(out, "costInCents");
    buf_add_json_double(out, run->cost_cents);
    members_add_name(out, "baseCostInCents");
    buf_add_json_double(out, run->base_cost_cents);
    members_add_json(out, "traceContext", SLICE("{}"));
    /* Lets a task of 4.x listen to streams.input; its own writes use the version in PUT's
     * response: v1. */
    members_add_text(out, "realtimeStreamsVersion", SLICE("v2"));
}

static size_t add_execution_run(struct buf *out, const struct run *run)
{
    const struct bytes *type = run_rare(run)->payload_type;
    const struct tag_list *tags = run->tags;
    open_object(out, "run");
    members_add_text(out, "id", slice_of(run->id));
    members_add_text(out, "payload", SLICE(""));
    size_t place = out->len - 1;
    members_add_text(out, "payloadType",
                     type ? bytes_slice(type) : SLICE("application/json"));
    members_add_texts(out, "tags", tags ? tags->names : NULL, tags ? tags->count : 0);
    members_add_bool(out, "isTest", run->is_test);
    members_add_bool(out, "isReplay", run->is_replay);
    members_add_time(out, "createdAt", run->created_at);
    members_add_time(out, "startedAt", run->started_at);
    add_optional_facts(out, run);
    close_object(out);
    return place;
}

static void add_tenant(struct buf *out, const struct account *account)
{
    const struct project *project = account->project;
    const struct organization *organization = project->organization;
    open_object(out, "environment");
    members_add_text(out, "id", slice_of(account->id));
    members_add_text(out, "slug", slice_of(environment_slug(account->type)));
    members_add_text(out, "type", slice_of(environment_type_name(account->type)));
    if (account->branch)
        members_add_text(out, "branchName", slice_of(account->branch));
    close_object(out);
    open_object(out, "organization");
    members_add_text(out, "id", slice_of(organization->id));
    members_add_text(out, "slug", slice_of(organization->slug));
    members_add_text(out, "name", slice_of(organization->name));
    close_object(out);
    open_object(out, "project");
    members_add_text(out, "id", slice_of(project->id));
    members_add_text(out, "ref", slice_of(project->ref));
    members_add_text(out, "slug", slice_of(project->slug));
    members_add_text(out, "name", slice_of(project->name));
    close_object(out);
}

static void add_task(struct buf *out, const struct run *run, const struct worker_task *task)
{
    bool has_file = task && task->file_path;
    open_object(out, "task");
    members_add_text(out, "id", bytes_slice(run->task));
    members_add_text(out, "filePath", has_file ? bytes_slice(task->file_path) : SLICE(""));
    if (task)
        members_add_text(out, "exportName", bytes_slice(task->export_name));
    close_object(out);
    open_object(out, "queue");
    members_add_text(out, "id", bytes_slice(run->queue));
    members_add_text(out, "name", bytes_slice(run->queue));
    close_object(out);
}

/* Run controllers refuse the start without these texts. runtimeVersion is empty, because
 * the release that indexed the version is not known here. */
static void add_deployment(struct buf *out, const struct worker *worker)
{
    if (!worker || !worker->deployment[0])
        return;
    open_object(out, "deployment");
    members_add_text(out, "id", slice_of(worker->deployment));
    members_add_text(out, "shortCode", slice_of(worker->short_code));
    members_add_text(out, "version", slice_of(worker->version));
    members_add_text(out, "runtime", slice_of(worker->runtime));
    members_add_text(out, "runtimeVersion", SLICE(""));
    if (worker->external_id[0])
        members_add_text(out, "externalId", slice_of(worker->external_id));
    close_object(out);
}

static size_t add_execution(struct buf *out, const struct run *run,
                            const struct task_home *home, const struct worker *worker)
{
    open_object(out, "execution");
    open_object(out, "attempt");
    members_add_number(out, "number", run->attempt);
    members_add_time(out, "startedAt", run->attempt_at);
    close_object(out);
    size_t place = add_execution_run(out, run);
    add_task(out, run, worker_task(worker, bytes_slice(run->task)));
    add_tenant(out, home->account);
    add_machine(out, run, home->cents_per_ms);
    add_deployment(out, worker);
    if (run->batch) {
        open_object(out, "batch");
        members_add_text(out, "id", bytes_slice(run->batch));
        close_object(out);
    }
    close_object(out);
    return place;
}

size_t message_add_start(struct buf *out, const struct run *run,
                         const struct task_home *home, const struct worker *worker)
{
    buf_add_char(out, '{');
    members_add_name(out, "run");
    message_add_run(out, run);
    members_add_name(out, "snapshot");
    message_add_snapshot(out, run);
    members_add_name(out, "envVars");
    message_add_variables(out, run, home);
    size_t place = add_execution(out, run, home, worker);
    close_object(out);
    return place;
}
