/* registering.c - registers a version: reads it from a call, writes it, makes it current.
 *
 * Two concurrent plain registrations get the same version number. The store accepts one of
 * them, and the other takes the next number, unless both are of the same build: then they
 * are one version. */
#include "api/registration/registering.h"

#include "api/registration/promotion.h"
#include "api/registration/registration.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/fleet/dev_sessions.h"

enum { VERSION_TRIES_MAX = 16 };

struct registering {
    struct api_call *call;
    registering_done_fn *done;
    struct registration_reader reader;
    struct registration registration; /* set once all of it is read */
    struct registering_deployment deployment;
    struct deferred deferred;
    struct document_write write;
    struct schedule_sync sync;  /* in dev */
    struct promotion promotion; /* elsewhere */
    struct registered made;
    unsigned tries;
};

static struct workers *workers_of(const struct registering *op)
{
    return op->call->env->fleet->workers;
}

static bool is_of_deployment(const struct registering *op)
{
    return op->deployment.id[0];
}

static void destroy(struct registering *op)
{
    op->call->state = NULL;
    op->call->on_gone = NULL;
    registration_reader_finish(&op->reader);
    registration_finish(&op->registration);
    free(op);
}

static void registering_finish(struct registering *op, enum err status)
{
    struct api_call *call = op->call;
    registering_done_fn *done = op->done;
    struct registered made = op->made;

    destroy(op);
    done(call, status ? NULL : &made, status);
}

/* ---- it is registered ---- */

/* Notes the response at once: while its schedules are written, another version may become
 * current. */
static void note_made(struct registering *op, const struct worker *worker)
{
    memcpy(op->made.id, worker->id, sizeof(op->made.id));
    memcpy(op->made.version, worker->version, sizeof(op->made.version));
    memcpy(op->made.content_hash, worker->content_hash, sizeof(op->made.content_hash));
}

static void on_synced(struct schedule_sync *sync, enum err status)
{
    registering_finish(container_of(sync, struct registering, sync), status);
}

static void on_promoted(struct promotion *promotion, enum err status)
{
    struct registering *op = container_of(promotion, struct registering, promotion);
    if (promotion->why.code)
        op->call->why = promotion->why;
    registering_finish(op, status);
}

/* Makes the version current. One that was made current after it stays current. */
static void follow(struct registering *op)
{
    struct api_call *call = op->call;
    if (call->env->is_dev) {
        schedule_sync_begin(call->api, call->account, &op->sync, on_synced);
        return;
    }
    op->promotion.rule = PROMOTION_NEWER;
    promotion_begin(&op->promotion, call->api, call->account, slice_of(op->made.version),
                    on_promoted);
}

/* ---- writing it ---- */

static bool is_same_build(const struct registering *op, const struct worker *worker)
{
    return !strcmp(worker->content_hash, op->registration.worker->content_hash);
}

/* Returns the version of the same build that is current, or about to be; NULL if none. */
static const struct worker *same_build(const struct registering *op)
{
    const struct workers *workers = workers_of(op);
    const struct worker *current = workers_current(workers);
    const struct worker *newest = workers->count ? workers->all[workers->count - 1] : NULL;
    if (current && is_same_build(op, current))
        return current;
    if (newest && !newest->deployment[0] && is_same_build(op, newest) &&
        (!current ||
         version_compare(slice_of(newest->version), slice_of(current->version)) > 0))
        return newest;
    return NULL;
}

static void on_written(struct document_write *write, enum err status);

static void name_deployment(const struct registering_deployment *deployment,
                            struct worker *worker)
{
    memcpy(worker->version, deployment->version, sizeof(worker->version));
    memcpy(worker->deployment, deployment->id, sizeof(worker->deployment));
    memcpy(worker->short_code, deployment->short_code, sizeof(worker->short_code));
    memcpy(worker->external_id, deployment->external_id, sizeof(worker->external_id));
    memcpy(worker->archive_hash, deployment->archive_hash, sizeof(worker->archive_hash));
    memcpy(worker->runtime, deployment->runtime, sizeof(worker->runtime));
}

static void name_worker(struct registering *op, struct worker *worker)
{
    struct workers *workers = workers_of(op);
    const struct worker *newest = workers->count ? workers->all[workers->count - 1] : NULL;
    int64_t now = loop_wall_ms(engine_loop(api_engine(op->call->api)));

    text_make_id("worker", now, worker->id);
    if (is_of_deployment(op))
        name_deployment(&op->deployment, worker);
    else
        workers_next_version(workers, now, worker->version);
    /* The newest version is the last, even if the clock was set back. */
    worker->created_at = newest && newest->created_at > now ? newest->created_at : now;
}

static void write_worker(struct registering *op)
{
    struct engine *engine = api_engine(op->call->api);
    enum err over =
        engine_check_quota(op->call->env, op->registration.tasks.len, &op->call->why);
    if (over) {
        registering_finish(op, over);
        return;
    }
    name_worker(op, op->registration.worker);
    struct bytes *name = registration_document_name(op->registration.worker);
    struct bytes *body = registration_write(&op->registration);
    document_write_begin(engine, op->call->account->number, DOC_WORKER, name, body, 0,
                         &op->write, on_written);
    bytes_unref(name);
    bytes_unref(body);
}

/* The version number is taken. A deployment's number is taken by its own registration,
 * which arrived twice at once; otherwise another registration has it, or one of the same
 * build. */
static void on_taken(struct registering *op)
{
    struct slice deployment = slice_of(op->deployment.id);
    const struct worker *known = is_of_deployment(op)
                                     ? workers_by_deployment(workers_of(op), deployment)
                                     : same_build(op);
    if (known)
        note_made(op, known);
    if (known && is_of_deployment(op)) {
        registering_finish(op, OK);
    } else if (known) {
        follow(op);
    } else if (!is_of_deployment(op) && ++op->tries < VERSION_TRIES_MAX) {
        write_worker(op);
    } else {
        explain(&op->call->why, ERR_CONFLICT,
                "Too many versions are being registered at once; try again");
        registering_finish(op, ERR_CONFLICT);
    }
}

static void log_warnings(const struct environment *env, const struct worker *worker)
{
    struct scan_members all = scan_members(bytes_slice(worker->warnings));
    struct slice warning;
    while (worker->warnings && scan_next_element(&all, &warning)) {
        struct bytes *feature = members_text(warning, "feature");
        log_warn("version declares unsupported features", "environment", env->id, "version",
                 worker->version, "feature", feature->data, NULL);
        bytes_unref(feature);
    }
}

static void on_written(struct document_write *write, enum err status)
{
    struct registering *op = container_of(write, struct registering, write);
    struct environment *env = op->call->env;

    if (status == ERR_CONFLICT) {
        on_taken(op);
    } else if (status) {
        registering_finish(op, status);
    } else {
        note_made(op, op->registration.worker);
        log_warnings(env, op->registration.worker);
        registration_apply(&op->registration, env);
        registration_forget_oldest(api_engine(op->call->api), env);
        if (is_of_deployment(op))
            registering_finish(op, OK);
        else
            follow(op);
    }
}

/* ---- reading its body ---- */

/* The whole registration is read: it is the current version again, or a new one. */
static void registering_begin_version(struct registering *op)
{
    struct bytes *refusal = unsupported_refusal(&op->reader.unsupported);
    if (refusal) {
        explain(&op->call->why, ERR_INVALID, "%s", refusal->data);
        op->call->why_full = refusal;
        registering_finish(op, ERR_INVALID);
        return;
    }
    op->registration.worker->warnings = unsupported_warnings(&op->reader.unsupported);
    registration_reader_finish(&op->reader);
    const struct worker *known = is_of_deployment(op) ? NULL : same_build(op);
    if (known) {
        note_made(op, known);
        dev_sessions_renew(op->call->env);
        follow(op);
    } else {
        write_worker(op);
    }
}

/* Reads one task or queue. When all are read, writes the document of one task instead, and
 * checks its schedule. */
static enum err read_one(struct registering *op)
{
    struct api_call *call = op->call;
    struct registration *all = &op->registration;
    if (!all->worker)
        return registration_read_next(&op->reader, all, &call->why);
    const struct worker_task *task = &all->worker->tasks[all->written];
    registration_write_task(all);
    return schedule_sync_check(call->api, task, true, &call->why);
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
    struct timeslice timeslice = loop_timeslice(loop);
    enum err err = OK;

    while (!err && !is_read(op) && timeslice_left(&timeslice))
        err = read_one(op);
    if (err)
        registering_finish(op, err);
    else if (!is_read(op))
        loop_defer(loop, deferred);
    else
        registering_begin_version(op);
}

/* The client disconnected in the middle of its body. */
static void on_gone(struct api_call *call)
{
    destroy(call->state);
    api_reply_gone(call);
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

enum err registering_take(struct api_call *call, struct slice piece)
{
    struct registering *op = state_of(call);
    if (!registration_feed(&op->reader, piece, &call->why))
        return OK;
    destroy(op);
    return ERR_INVALID;
}

void registering_drop(struct api_call *call)
{
    destroy(call->state);
}

enum err registering_end(struct api_call *call)
{
    struct registering *op = state_of(call);
    enum err err = registration_end(&op->reader, &call->why);
    if (err)
        destroy(op);
    return err;
}

void registering_begin(struct api_call *call,
                       const struct registering_deployment *deployment,
                       registering_done_fn *done)
{
    struct registering *op = call->state;
    if (deployment)
        op->deployment = *deployment;
    op->done = done;
    call->busy = true;
    call->on_gone = NULL;
    loop_defer(engine_loop(api_engine(call->api)), &op->deferred);
}
