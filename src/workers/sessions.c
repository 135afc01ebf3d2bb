/* sessions.c - before a worker works: who it is, where it belongs, what it can execute.
 *
 *   registration ─► read, a few tasks a turn ─► document written (synced)
 *                ─► current version ─► waiting runs released
 *                                   ─► declared schedules
 *
 * Two registrations at once get the same version number; the store lets one of them in and
 * the other takes the next. */
#include "fleet/sessions.h"
#include "base/mem.h"
#include "call/project.h"
#include "schedules/schedule_sync.h"
#include "workers/dequeued_message.h"
#include "workers/registration.h"
#include "workers/worker_routes.h"
#include "json/members.h"

enum {
    /* How long the CLI rests before it asks again. A dequeue that finds nothing is held;
     * the CLI also rests, without asking, while it has all the runs that it takes. */
    DEQUEUE_INTERVAL_WITH_RUN_MS = 0,
    DEQUEUE_INTERVAL_WITHOUT_RUN_MS = 50,
    /* The CLI counts runs that wait, too: with as many of them as it is told it takes no
     * other, and what they wait for never begins. How many execute the gateway says. */
    CLI_RUNS = 1000000,
    VERSION_TRIES_MAX = 16,
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

/* Of a key the same key, not a newer one that has replaced it; a personal token opens all. */
enum err worker_environment(struct api_call *call)
{
    const struct secret *shown = call->identity->secret;
    struct account *account;
    struct slice path = call->x->path, slug;
    struct buf out = { 0 }, url = { 0 };

    while (slice_split(&path, '/', &slug))
        ; /* the last segment is one of four: the route says so */
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
    struct task_home home = { .account = call->account, .base_url = buf_slice(&url) };
    message_add_variables(&out, NULL, &home);
    buf_add_char(&out, '}');
    buf_finish(&url);
    return reply(call, &out);
}

/* ---- registration ---- */

struct registering {
    struct api_call *call;
    struct registration_reader reader;
    struct registration registration; /* once all of it is read */
    struct deferred deferred;
    struct document_write write;
    struct schedule_sync sync;
    unsigned tries;
    struct buf answer; /* names the version that was registered */
};

static void destroy(struct registering *op)
{
    op->call->state = NULL;
    op->call->on_gone = NULL;
    registration_reader_finish(&op->reader);
    registration_finish(&op->registration);
    buf_finish(&op->answer);
    free(op);
}

static void finish(struct registering *op, enum err status)
{
    struct api_call *call = op->call;
    struct buf answer = op->answer;

    op->answer = (struct buf){ 0 };
    destroy(op);
    if (status) {
        buf_finish(&answer);
        api_reply_error(call, status);
    } else {
        reply(call, &answer);
    }
}

/* Now: while its schedules are written another version may become current. */
static void write_answer(struct registering *op, const struct worker *worker)
{
    buf_add_char(&op->answer, '{');
    members_add_text(&op->answer, "id", slice_of(worker->id));
    members_add_text(&op->answer, "version", slice_of(worker->version));
    members_add_text(&op->answer, "contentHash", slice_of(worker->content_hash));
    buf_add_char(&op->answer, '}');
}

static void on_synced(struct schedule_sync *sync, enum err status)
{
    finish(container_of(sync, struct registering, sync), status);
}

/* The version is known: what its tasks say of schedules comes next. */
static void sync_schedules(struct registering *op)
{
    struct api_call *call = op->call;
    schedule_sync_begin(call->api, call->account, &op->sync, on_synced);
}

static bool is_current(const struct registering *op)
{
    const struct worker *current = workers_current(op->call->env->fleet->workers);
    return current && !strcmp(current->content_hash, op->registration.worker->content_hash);
}

static void on_written(struct document_write *write, enum err status);

static void write_worker(struct registering *op)
{
    struct engine *engine = api_engine(op->call->api);
    enum err over =
        engine_check_quota(op->call->env, op->registration.tasks.len, &op->call->why);
    if (over) {
        finish(op, over);
        return;
    }
    struct workers *workers = op->call->env->fleet->workers;
    const struct worker *current = workers_current(workers);
    struct worker *worker = op->registration.worker;
    int64_t now = loop_wall_ms(engine_loop(engine));

    text_make_id("worker", now, worker->id);
    workers_next_version(workers, now, worker->version);
    /* The newest is current, also when the clock was set back. */
    worker->created_at = current && current->created_at > now ? current->created_at : now;
    struct bytes *name = registration_document_name(worker);
    struct bytes *body = registration_write(&op->registration);
    document_write_begin(engine, op->call->account->number, DOC_WORKER, name, body, 0,
                         &op->write, on_written);
    bytes_unref(name);
    bytes_unref(body);
}

static void on_written(struct document_write *write, enum err status)
{
    struct registering *op = container_of(write, struct registering, write);
    struct engine *engine = api_engine(op->call->api);
    struct environment *env = op->call->env;

    if (status == ERR_CONFLICT && is_current(op)) {
        write_answer(op, workers_current(env->fleet->workers));
        sync_schedules(op); /* the same build came twice at once */
    } else if (status == ERR_CONFLICT && ++op->tries < VERSION_TRIES_MAX) {
        write_worker(op);
    } else if (status) {
        if (status == ERR_CONFLICT)
            explain(&op->call->why, status,
                    "Too many versions are being registered at once: try again");
        finish(op, status);
    } else {
        write_answer(op, op->registration.worker);
        registration_apply(&op->registration, env);
        registration_forget_oldest(engine, env);
        sync_schedules(op);
    }
}

/* ---- its body ---- */

/* All is read: it is this version again, or a new one. */
static void begin(struct registering *op)
{
    unsigned undone = op->reader.declaration.undone;
    for (unsigned i = 0; declaration_undone(i); i++)
        if (undone & 1u << i)
            api_skip(op->call->api, i, declaration_undone(i));
    registration_reader_finish(&op->reader);
    if (is_current(op)) {
        write_answer(op, workers_current(op->call->env->fleet->workers));
        sessions_renew(op->call->env);
        sync_schedules(op);
    } else {
        write_worker(op);
    }
}

/* A task or queue; when all are read what is declared of one task, and its document. */
static enum err read_one(struct registering *op)
{
    struct api_call *call = op->call;
    struct registration *all = &op->registration;
    if (!all->worker)
        return registration_read_next(&op->reader, all, &call->why);
    const struct worker_task *task = &all->worker->tasks[all->written];
    registration_write_task(all);
    return schedule_sync_check(call->api, task, &call->why);
}

static bool is_read(const struct registering *op)
{
    const struct registration *all = &op->registration;
    return all->worker && all->written == all->worker->task_count;
}

static void read_some(struct deferred *deferred)
{
    struct registering *op = container_of(deferred, struct registering, deferred);
    struct loop *loop = engine_loop(api_engine(op->call->api));
    struct stint stint = loop_stint(loop);
    enum err err = OK;

    while (!err && !is_read(op) && stint_goes_on(&stint))
        err = read_one(op);
    if (err)
        finish(op, err);
    else if (!is_read(op))
        loop_defer(loop, deferred);
    else
        begin(op);
}

/* The peer left in the middle of its body. */
static void on_gone(struct api_call *call)
{
    destroy(call->state);
    api_reply_empty(call, 499);
}

static struct registering *state_of(struct api_call *call)
{
    struct registering *op = call->state;
    if (op)
        return op;
    call->state = op = mem_new(struct registering);
    call->on_gone = on_gone;
    op->call = call;
    registration_reader_init(&op->reader);
    list_init(&op->deferred.link);
    op->deferred.fn = read_some;
    return op;
}

enum err worker_register_piece(struct api_call *call, struct slice piece)
{
    struct registering *op = state_of(call);
    if (!registration_feed(&op->reader, piece, &call->why))
        return OK;
    destroy(op);
    return ERR_INVALID;
}

enum err worker_register(struct api_call *call)
{
    struct registering *op = state_of(call);
    enum err err = registration_end(&op->reader, &call->why);
    if (!err && !is_own_project(call))
        err = no_project(call);
    if (err) {
        destroy(op);
        return err;
    }
    call->busy = true;
    call->on_gone = NULL;
    loop_defer(engine_loop(api_engine(call->api)), &op->deferred);
    return OK;
}
