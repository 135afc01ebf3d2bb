/* deployed.c - the routes of workers that run outside a developer's session.
 *
 * They are the routes of worker_routes.c with a worker's token.
 *
 *   tr_wgt_… ─► a project and some of its environments
 *     dequeue: a run of any of them, each in turn
 *     runs/{id}/…: which of them has the run? ─► the call enters it ─► handler of dev
 *
 * There are no checkpoints: a process stays while its run waits. So nothing is suspended,
 * continued or restored here, and requests for this get an error with that reason. */
#include "api/request/body_fields.h"
#include "api/request/route.h"
#include "api/request/served.h"
#include "api/workers/worker_routes.h"
#include "base/mem.h"
#include "core/engine/attempts.h"

enum {
    NO_BODY = 4096,
    SMALL_BODY = 64 * 1024,
    DEBUG_BODY = 1024 * 1024,
    REASON_MAX = 256,
};

/* ---- dequeue ---- */

static enum err read_room(struct api_call *call, const json_t *room,
                          struct dequeue_terms *terms)
{
    const json_t *cores = json_object_get(room, "cpu");
    const json_t *memory = json_object_get(room, "memory");
    terms->has_room = room && !json_is_null(room);
    if (!terms->has_room)
        return OK;
    if (!json_is_number(cores) || !json_is_number(memory))
        return explain(&call->why, ERR_INVALID,
                       "maxResources: must be an object of two numbers, cpu (cores) and "
                       "memory (GB)");
    terms->cores = json_number_value(cores);
    terms->gigabytes = json_number_value(memory);
    return OK;
}

/* Ignores other members, like regions: one worker is as good as another. */
static enum err read_terms(struct api_call *call, const json_t *body,
                           struct dequeue_terms *terms)
{
    const json_t *deployed = json_object_get(body, "deployed");
    if (deployed && !json_is_boolean(deployed))
        return explain(&call->why, ERR_INVALID, "deployed: must be true or false");
    terms->deployed_only = json_is_true(deployed);
    return read_room(call, json_object_get(body, "maxResources"), terms);
}

static enum err take(struct api_call *call)
{
    struct dequeue_terms terms = { 0 };
    size_t count = 0;
    struct account *account = NULL;
    json_t *body;

    if (api_read_json(call, &body))
        return ERR_INVALID;
    enum err refused = read_terms(call, body, &terms);
    json_decref(body);
    if (refused)
        return refused;
    while ((account = served_next(call->api, call->identity, account)))
        count++;
    struct environment **environments = mem_new_array(struct environment *, count);
    for (size_t i = 0; (account = served_next(call->api, call->identity, account));)
        environments[i++] = served_runs(call->api, account);
    refused = worker_take(call, environments, count, &terms);
    free(environments);
    return refused;
}

/* ---- the environment of a run ---- */

struct finding {
    struct api_call *call;
    route_fn *handle;
    void (*on_gone)(struct api_call *call); /* of the body that was read */
    struct store_load load;
    uint32_t *others; /* numbers of the environments that are searched */
};

static enum err enter(struct api_call *call, struct account *account, route_fn *handle)
{
    api_enter_environment(call, account);
    return handle(call);
}

static void give_up(struct api_call *call, enum err status)
{
    body_fields_drop(call);
    if (status == ERR_NOT_FOUND)
        explain(&call->why, ERR_NOT_FOUND, "Run not found");
    api_reply_error(call, status);
}

/* Returns NULL if the environment was archived meanwhile. */
static struct account *served_number(const struct api_call *call, uint32_t number)
{
    struct account *account = accounts_by_number(api_accounts(call->api), number);
    return account && secret_serves(call->identity->secret, account) ? account : NULL;
}

static void on_loaded(struct store_read *read, enum store_status status)
{
    struct finding *op = container_of(read, struct finding, load.read);
    struct api_call *call = op->call;
    struct account *account = status ? NULL : served_number(call, read->env);
    route_fn *handle = op->handle;

    call->on_gone = op->on_gone;
    if (!status)
        run_finish(&op->load.run);
    bytes_unref(op->load.name);
    free(op->others);
    free(op);
    if (!account) {
        give_up(call, status ? err_of_store(status) : ERR_NOT_FOUND);
        return;
    }
    enum err refused = enter(call, account, handle);
    if (refused)
        api_reply_error(call, refused);
}

/* Lists the environments of which memory does not have every run. */
static void list_cold(struct finding *op)
{
    const struct api_call *call = op->call;
    struct account *account = NULL;
    size_t count = 0;
    while ((account = served_next(call->api, call->identity, account)))
        count++;
    op->others = mem_new_array(uint32_t, count);
    while ((account = served_next(call->api, call->identity, account)))
        if (environment_is_cold(served_runs(call->api, account)))
            op->others[op->load.other_count++] = account->number;
}

/* Reads the run from the store, in a single read for all environments. */
static void look_into_store(struct finding *op)
{
    struct api_call *call = op->call;
    struct store *store = engine_store(api_engine(call->api));
    call->on_gone = NULL;
    call->busy = true;
    op->load.others = op->others;
    op->load.name = bytes_create(call->params[0]);
    op->load.read = (struct store_read){ .kind = READ_LOAD, .done = on_loaded };
    store->ops->read(store, &op->load.read);
}

/* Calls the handler in the environment of the run. An unfinished run is in memory. A
 * finished one may be requested again, by a worker that did not get its response. */
static enum err in_environment(struct api_call *call, route_fn *handle)
{
    struct account *account = served_with_run(call->api, call->identity, call->params[0]);
    if (account)
        return enter(call, account, handle);
    struct finding *op = mem_new(struct finding);
    op->call = call;
    op->handle = handle;
    op->on_gone = call->on_gone;
    list_cold(op);
    if (op->load.other_count) {
        look_into_store(op);
        return OK;
    }
    free(op->others);
    free(op);
    give_up(call, ERR_NOT_FOUND);
    return OK;
}

static enum err start(struct api_call *call)
{
    return in_environment(call, worker_start);
}

static enum err complete(struct api_call *call)
{
    return in_environment(call, worker_complete);
}

static enum err heartbeat_run(struct api_call *call)
{
    return in_environment(call, worker_heartbeat);
}

static enum err latest(struct api_call *call)
{
    return in_environment(call, worker_latest);
}

static enum err since(struct api_call *call)
{
    return in_environment(call, worker_since);
}

/* ---- release ---- */

struct releasing {
    struct api_call *call;
    struct release release;
    char reason[REASON_MAX + 1];
};

static void on_released(struct command *command, enum err status)
{
    struct releasing *op = container_of(command, struct releasing, release.command);
    struct api_call *call = op->call;
    if (status) {
        api_reply_refused(call, status, &command->why, "Run not found");
    } else {
        api_add_seq(call, command->seq);
        api_reply_json(call, 200,
                       run_is_final(command->run)
                           ? SLICE("{\"ok\":true,\"requeued\":false}")
                           : SLICE("{\"ok\":true,\"requeued\":true}"));
    }
    free(op);
}

static enum err read_reason(struct api_call *call, char reason[REASON_MAX + 1])
{
    json_t *body;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    const json_t *value = json_object_get(body, "reason");
    size_t len = json_string_length(value);
    bool fits = len && len <= REASON_MAX;
    snprintf(reason, REASON_MAX + 1, "%s", fits ? json_string_value(value) : "");
    json_decref(body);
    return fits ? OK
                : explain(&call->why, ERR_INVALID,
                          "reason: must be a string of 1 to %d characters", REASON_MAX);
}

static enum err release_here(struct api_call *call)
{
    struct releasing *op = mem_new(struct releasing);
    op->call = call;
    op->release.snapshot = call->params[1];
    read_reason(call, op->reason); /* it was checked before */
    op->release.reason = slice_of(op->reason);
    call->busy = true;
    attempt_release(api_engine(call->api), call->env, call->params[0], &op->release,
                    on_released);
    return OK;
}

static enum err release(struct api_call *call)
{
    char reason[REASON_MAX + 1];
    enum err refused = read_reason(call, reason);
    return refused ? refused : in_environment(call, release_here);
}

/* ---- checkpoints, which do not exist ---- */

static enum err keep_process(struct api_call *call)
{
    return explain(&call->why, ERR_INVALID,
                   "This gateway has no checkpoints; keep the process, which is notified "
                   "when the wait ends");
}

static enum err not_suspended(struct api_call *call)
{
    return explain(&call->why, ERR_INVALID,
                   "The run is not suspended: this gateway has no checkpoints");
}

static enum err still_there(struct api_call *call)
{
    api_reply_json(call, 200, SLICE("{\"ok\":true}"));
    return OK;
}

/* A worker that could not make a checkpoint continues, and needs no more than that. */
static enum err suspend(struct api_call *call)
{
    json_t *body;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    const json_t *success = json_object_get(body, "success");
    bool is_said = json_is_boolean(success), made = json_is_true(success);
    json_decref(body);
    if (!is_said)
        return explain(&call->why, ERR_INVALID, "success: must be true or false");
    return in_environment(call, made ? keep_process : still_there);
}

static enum err resume(struct api_call *call)
{
    return in_environment(call, not_suspended);
}

/* ---- the worker itself ---- */

static enum err connect_worker(struct api_call *call)
{
    json_t *body;
    struct buf out = { 0 };
    if (api_read_json(call, &body))
        return ERR_INVALID;
    bool has_metadata = json_is_object(json_object_get(body, "metadata"));
    json_decref(body);
    if (!has_metadata)
        return explain(&call->why, ERR_INVALID, "metadata: must be an object");
    buf_add_text(&out, "{\"ok\":true,\"workerGroup\":{\"type\":\"UNMANAGED\",\"name\":");
    buf_add_json(&out, slice_of(call->identity->secret->name));
    buf_add_text(&out, "}}");
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
    return OK;
}

/* Ignores the free CPU and memory that a worker's heartbeat reports: a worker requests runs
 * when it has some. */
static enum err heartbeat_worker(struct api_call *call)
{
    json_t *body;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    json_decref(body);
    return still_there(call);
}

static enum err discard(struct api_call *call)
{
    api_reply_empty(call, 204);
    return OK;
}

#define ACTIONS "/engine/v1/worker-actions"
#define RUN ACTIONS "/runs/{runId}"
#define SNAPSHOT RUN "/snapshots/{snapshotId}"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = ACTIONS "/connect",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = connect_worker,
      .id = "deployed_connect_v1", .summary = "Connect a worker",
      .body = "{metadata: {...}, ...}",
      .reply = "{ok: boolean, workerGroup: {type: string, name: string}}" },
    { .method = HTTP_POST_, .path = ACTIONS "/dequeue",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = take,
      .is_alone = true, .id = "deployed_dequeue_v1",
      .summary = "Take the next run of any environment of the token",
      .body = "{maxResources?: {cpu: number, memory: number}, deployed?: boolean, ...}",
      .reply = "{...}[]" },
    { .method = HTTP_POST_, .path = ACTIONS "/heartbeat",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = heartbeat_worker,
      .id = "deployed_heartbeat_v1", .summary = "Send the heartbeat of a worker",
      .body = "{...}",
      .reply = "{ok: boolean}" },
    { .method = HTTP_GET_, .path = RUN "/snapshots/latest",
      .auth = AUTH_WORKER, .body_limit = NO_BODY, .handle = latest,
      .id = "deployed_latest_snapshot_v1", .summary = "The newest snapshot",
      .reply = "{execution: {...}}" },
    { .method = HTTP_GET_, .path = RUN "/snapshots/since/{snapshotId}",
      .auth = AUTH_WORKER, .body_limit = NO_BODY, .handle = since,
      .id = "deployed_snapshots_since_v1",
      .summary = "The newest snapshot, if it has changed",
      .reply = "{snapshots: {...}[]}" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/attempts/start",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = start,
      .has_steps = true, .is_alone = true, .id = "deployed_start_v1", .summary = "Start an attempt",
      .body = "{...}",
      .reply = "{...}",
      .also = "409" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/attempts/complete",
      .auth = AUTH_WORKER | ENDS_ATTEMPT, .body_limit = WORKER_COMPLETION_BODY,
      .handle = complete, .on_body = worker_complete_piece,
      .has_steps = true, .id = "deployed_complete_v1", .summary = "Complete an attempt",
      .body = "{completion: {ok: boolean, ...}, ...}",
      .reply = "{result: {...}}",
      .also = "409 422" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/heartbeat",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = heartbeat_run,
      .id = "deployed_heartbeat_run_v1", .summary = "Send the heartbeat of an attempt",
      .body = "{...}",
      .reply = "{ok: boolean}" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/release",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = release,
      .id = "deployed_release_v1", .summary = "Return a run that was not started",
      .body = "{reason: string(1..256), ...}",
      .reply = "{ok: boolean, requeued: boolean}",
      .also = "409" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/suspend",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = suspend,
      .id = "deployed_suspend_v1", .summary = "Report that there is no checkpoint",
      .body = "{success: boolean, ...}",
      .reply = "{ok: boolean}" },
    { .method = HTTP_GET_, .path = SNAPSHOT "/continue",
      .auth = AUTH_WORKER, .body_limit = NO_BODY, .handle = resume,
      .id = "deployed_continue_v1", .summary = "Refused: nothing is suspended",
      .reply = "{...}" },
    { .method = HTTP_POST_, .path = SNAPSHOT "/restore-outcome",
      .auth = AUTH_WORKER, .body_limit = SMALL_BODY, .handle = resume,
      .id = "deployed_restore_outcome_v1", .summary = "Refused: nothing is restored",
      .body = "{...}",
      .reply = "{ok: boolean}" },
    { .method = HTTP_POST_, .path = RUN "/logs/debug",
      .auth = AUTH_WORKER, .body_limit = DEBUG_BODY, .handle = discard,
      .on_body = api_drop_body,
      .id = "deployed_debug_log_v1", .summary = "Accepted and discarded",
      .body = "{...}",
      .status = 204 },
    { 0 },
};
/* clang-format on */

const struct area deployed_area = { .tag = "workers", .routes = routes };
