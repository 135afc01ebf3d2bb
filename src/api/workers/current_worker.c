/* current_worker.c - shows people whether a CLI is connected, and the current version. */
#include "api/request/project.h"
#include "api/workers/worker_routes.h"
#include "base/json/members.h"
#include "core/fleet/dev_sessions.h"

static struct environment *environment_of(const struct api_call *call,
                                          const struct account *account)
{
    return engine_environment(api_engine(call->api), account->number);
}

static enum err reply(struct api_call *call, struct buf *out)
{
    api_reply_json(call, 200, buf_slice(out));
    buf_finish(out);
    return OK;
}

/* A session whose connection has closed does not count, though it may return. */
static bool has_session(const struct environment *env)
{
    for (const struct session *one = NULL; (one = dev_sessions_next(env, one));)
        if (!dev_sessions_gone_ms(env, one))
            return true;
    return false;
}

enum err worker_dev_status(struct api_call *call)
{
    struct account *account;
    struct buf out = { 0 };
    enum err refused =
        project_find_environment(call, call->params[0], SLICE("dev"), &account);
    if (refused)
        return refused;
    const struct environment *env = environment_of(call, account);
    buf_add_char(&out, '{');
    members_add_bool(&out, "isConnected", env && has_session(env));
    buf_add_char(&out, '}');
    return reply(call, &out);
}

static void add_task(const struct worker *worker, const struct worker_task *task,
                     struct buf *out)
{
    struct slice path = bytes_slice(task->file_path);
    buf_add_char(out, '{');
    members_add_text(out, "id", bytes_slice(task->id));
    members_add_text(out, "slug", bytes_slice(task->id));
    members_add_text(out, "filePath", path.ptr ? path : SLICE(""));
    members_add_text(out, "triggerSource",
                     task->is_scheduled ? SLICE("SCHEDULED") : SLICE("STANDARD"));
    members_add_time(out, "createdAt", worker->created_at);
    members_add_json(out, "payloadSchema", bytes_slice(task->schema));
    buf_add_char(out, '}');
}

static void add_worker(const struct worker *worker, struct buf *out)
{
    members_add_name(out, "worker");
    buf_add_char(out, '{');
    members_add_text(out, "id", slice_of(worker->id));
    members_add_text(out, "version", slice_of(worker->version));
    members_add_text(out, "engine", SLICE("V2"));
    if (worker->sdk[0])
        members_add_text(out, "sdkVersion", slice_of(worker->sdk));
    if (worker->cli[0])
        members_add_text(out, "cliVersion", slice_of(worker->cli));
    members_add_json(out, "warnings", bytes_slice(worker->warnings));
    members_add_name(out, "tasks");
    buf_add_char(out, '[');
    for (size_t i = 0; i < worker->task_count; i++) {
        if (i)
            buf_add_char(out, ',');
        add_task(worker, &worker->tasks[i], out);
    }
    buf_add_text(out, "]}");
}

static const struct worker *worker_asked_for(const struct environment *env,
                                             struct slice version)
{
    const struct workers *workers = env->fleet->workers;
    return version.ptr ? workers_by_version(workers, version) : workers_current(workers);
}

enum err worker_current(struct api_call *call)
{
    struct account *account;
    struct buf out = { 0 }, url = { 0 };
    enum err refused =
        project_find_environment(call, call->params[0], call->params[1], &account);
    if (refused)
        return refused;
    const struct environment *env = environment_of(call, account);
    struct slice version = api_query(call, "version");
    const struct worker *worker = env ? worker_asked_for(env, version) : NULL;
    if (!worker && version.ptr)
        return explain(&call->why, ERR_NOT_FOUND, "The environment has no version %.*s",
                       SLICE_ARG(text_clip(version)));
    if (!worker)
        return explain(&call->why, ERR_NOT_FOUND,
                       "No version is current; start the CLI's dev command, or deploy one");
    api_base_url(call, &url);
    buf_print(&url, "/projects/v3/%s/runs", account->project->ref);
    buf_add_char(&out, '{');
    add_worker(worker, &out);
    members_add_name(&out, "urls");
    buf_add_char(&out, '{');
    members_add_text(&out, "runs", buf_slice(&url));
    buf_add_text(&out, "}}");
    buf_finish(&url);
    return reply(call, &out);
}
