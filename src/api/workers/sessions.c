/* sessions.c - calls before a worker works: identity, keys, configuration, registration. */
#include "api/registration/registering.h"
#include "api/request/project.h"
#include "api/workers/dequeued_message.h"
#include "api/workers/worker_routes.h"
#include "base/json/members.h"

enum {
    /* How long the CLI pauses before its next dequeue. A dequeue that finds nothing is
     * held. The CLI also pauses, without a request, while it has as many runs as it
     * takes. */
    DEQUEUE_INTERVAL_WITH_RUN_MS = 0,
    DEQUEUE_INTERVAL_WITHOUT_RUN_MS = 50,
    /* The CLI also counts runs that wait: with this many of them it takes no other, and the
     * runs that they wait for never start. The gateway decides how many execute. */
    CLI_RUNS = 1000000,
};

static enum err reply(struct api_call *call, struct buf *out)
{
    api_reply_json(call, 200, buf_slice(out));
    buf_finish(out);
    return OK;
}

static enum err no_project(struct api_call *call)
{
    return explain(&call->why, ERR_NOT_FOUND, "Project not found");
}

/* ---- the start-up calls ---- */

enum err worker_whoami(struct api_call *call)
{
    const struct user *user = call->identity->user;
    struct slice ref = api_query(call, "projectRef");
    const struct project *project =
        ref.len ? accounts_project(api_accounts(call->api), ref) : NULL;
    struct buf out = { 0 }, url = { 0 };

    api_base_url(call, &url);
    buf_add_char(&out, '{');
    members_add_text(&out, "userId", slice_of(user->id));
    members_add_text(&out, "email", slice_of(user->email));
    members_add_text(&out, "dashboardUrl", buf_slice(&url));
    if (project && user_sees(user, project)) {
        buf_add_text(&out, ",\"project\":{");
        members_add_text(&out, "name", slice_of(project->name));
        members_add_text(&out, "url", buf_slice(&url));
        members_add_text(&out, "orgTitle", slice_of(project->organization->name));
        buf_add_char(&out, '}');
    }
    buf_add_char(&out, '}');
    buf_finish(&url);
    return reply(call, &out);
}

/* Returns the key of an environment. A key gets itself, not a newer one that has replaced
 * it; a personal token gets the key of any environment. */
enum err worker_environment(struct api_call *call)
{
    const struct secret *shown = call->identity->secret;
    struct account *account;
    struct slice path = call->x->path, slug;
    struct buf out = { 0 }, url = { 0 };

    while (slice_split(&path, '/', &slug))
        ; /* the last segment is one of four, by the routes */
    enum err refused = project_find_environment(call, call->params[0], slug, &account);
    if (refused)
        return refused;
    api_base_url(call, &url);
    buf_add_char(&out, '{');
    members_add_text(&out, "apiKey",
                     slice_of(call->account ? shown->key : account->secret_key));
    members_add_text(&out, "name", slice_of(account->project->name));
    members_add_text(&out, "apiUrl", buf_slice(&url));
    members_add_text(&out, "projectId", slice_of(account->project->id));
    buf_add_char(&out, '}');
    buf_finish(&url);
    return reply(call, &out);
}

enum err worker_config(struct api_call *call)
{
    struct buf out = { 0 }, url = { 0 };

    api_base_url(call, &url);
    buf_add_char(&out, '{');
    members_add_text(&out, "environmentId", slice_of(call->account->id));
    buf_print(&out,
              ",\"dequeueIntervalWithRun\":%d,\"dequeueIntervalWithoutRun\":%d,"
              "\"maxConcurrentRuns\":%d",
              DEQUEUE_INTERVAL_WITH_RUN_MS, DEQUEUE_INTERVAL_WITHOUT_RUN_MS, CLI_RUNS);
    members_add_text(&out, "engineUrl", buf_slice(&url));
    buf_add_char(&out, '}');
    buf_finish(&url);
    return reply(call, &out);
}

static bool is_own_project(const struct api_call *call)
{
    return slice_is(call->params[0], call->account->project->ref);
}

enum err worker_variables(struct api_call *call)
{
    struct buf out = { 0 }, url = { 0 };
    if (!is_own_project(call))
        return no_project(call);
    api_base_url(call, &url);
    buf_add_text(&out, "{\"variables\":");
    struct task_home home = { .account = call->account,
                              .base_url = buf_slice(&url),
                              .log_rows = api_options(call->api)->trace_rows };
    message_add_variables(&out, NULL, &home);
    buf_add_char(&out, '}');
    buf_finish(&url);
    return reply(call, &out);
}

/* ---- registration ---- */

static void on_registered(struct api_call *call, const struct registered *made,
                          enum err status)
{
    struct buf answer = { 0 };
    if (status) {
        api_reply_error(call, status);
        return;
    }
    buf_add_char(&answer, '{');
    members_add_text(&answer, "id", slice_of(made->id));
    members_add_text(&answer, "version", slice_of(made->version));
    members_add_text(&answer, "contentHash", slice_of(made->content_hash));
    buf_add_char(&answer, '}');
    reply(call, &answer);
}

enum err worker_register_piece(struct api_call *call, struct slice piece)
{
    return registering_take(call, piece);
}

enum err worker_register(struct api_call *call)
{
    enum err err = registering_end(call);
    if (err)
        return err;
    if (!is_own_project(call)) {
        registering_drop(call);
        return no_project(call);
    }
    registering_begin(call, NULL, on_registered);
    return OK;
}
