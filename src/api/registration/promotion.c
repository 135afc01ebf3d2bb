/* promotion.c - makes a version current: writes the pointer, then applies it. */
#include "api/registration/promotion.h"

#include "api/registration/registration.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/log.h"
#include "core/fleet/fleet.h"

enum { TRIES_MAX = 100 };

static struct bytes *name_of_pointer(void)
{
    return bytes_create_shared(SLICE("current"));
}

static struct workers *workers_of(const struct promotion *op)
{
    return op->env->fleet->workers;
}

/* Returns NULL if the version was forgotten, or its deployment is not DEPLOYED. */
static struct worker *worker_of(const struct promotion *op)
{
    return (struct worker *)workers_by_version(workers_of(op), slice_of(op->version));
}

static void promotion_finish(struct promotion *op, enum err status)
{
    if (op->env)
        environment_release(op->env);
    op->done(op, status);
}

/* ---- after the write ---- */

static void on_synced(struct schedule_sync *sync, enum err status)
{
    promotion_finish(container_of(sync, struct promotion, sync), status);
}

static void sync_schedules(struct promotion *op)
{
    schedule_sync_begin(op->api, op->account, &op->sync, on_synced);
}

static void make_current(struct promotion *op)
{
    struct worker *worker = worker_of(op);
    worker->promotions--;
    workers_promote(workers_of(op), worker, workers_of(op)->pointer + 1);
    registration_set_limits(worker, op->env);
    log_info("version promoted", "environment", op->env->id, "version", op->version, NULL);
    fleet_changed(op->env);
    op->outcome = PROMOTION_MADE;
    sync_schedules(op);
}

/* ---- the pointer ---- */

static void decide(struct promotion *op);

static void on_written(struct document_write *write, enum err status)
{
    struct promotion *op = container_of(write, struct promotion, write);
    if (!status) {
        make_current(op);
        return;
    }
    worker_of(op)->promotions--;
    if (status == ERR_CONFLICT && ++op->tries < TRIES_MAX) {
        decide(op);
        return;
    }
    if (status == ERR_CONFLICT)
        explain(&op->why, status,
                "Too many versions are being promoted at once; try again");
    promotion_finish(op, status);
}

/* Writes the pointer. The version is not forgotten before the response. */
static void write_pointer(struct promotion *op, struct worker *worker)
{
    struct engine *engine = api_engine(op->api);
    struct buf body = { 0 };
    struct bytes *name = name_of_pointer();

    worker->promotions++;
    buf_add_char(&body, '{');
    members_add_text(&body, "version", slice_of(op->version));
    buf_add_char(&body, '}');
    struct bytes *text = buf_to_bytes(&body);
    document_write_begin(engine, op->env->number, DOC_CURRENT, name, text,
                         workers_of(op)->pointer, &op->write, on_written);
    bytes_unref(text);
    bytes_unref(name);
    buf_finish(&body);
}

static bool is_older(const struct worker *worker, const struct worker *than)
{
    return version_compare(slice_of(worker->version), slice_of(than->version)) < 0;
}

static void decide(struct promotion *op)
{
    const struct workers *workers = workers_of(op);
    const struct worker *current = workers_current(workers);
    struct worker *worker = worker_of(op);

    if (!worker) {
        bool was_there = workers_knows_gone(workers, slice_of(op->version));
        promotion_finish(op, explain(&op->why, ERR_NOT_FOUND,
                                     was_there ? "Version %s is no longer kept"
                                               : "Version %s is not deployed",
                                     op->version));
    } else if (workers->pointer && worker == current) {
        op->outcome = PROMOTION_WAS_CURRENT;
        sync_schedules(op);
    } else if (op->rule == PROMOTION_NEWER && current && is_older(worker, current)) {
        op->outcome = PROMOTION_OLDER;
        promotion_finish(op, OK);
    } else {
        write_pointer(op, worker);
    }
}

/* Begins later. The environment of an archived branch may have left memory. */
static void on_begun(struct deferred *deferred)
{
    struct promotion *op = container_of(deferred, struct promotion, deferred);
    if (!op->env || engine_is_retired(op->env))
        promotion_finish(op, explain(&op->why, ERR_NOT_FOUND, "The branch was archived"));
    else
        decide(op);
}

void promotion_begin(struct promotion *promotion, struct api *api, struct account *account,
                     struct slice version,
                     void (*done)(struct promotion *promotion, enum err status))
{
    struct engine *engine = api_engine(api);
    *promotion = (struct promotion){ .rule = promotion->rule,
                                     .api = api,
                                     .account = account,
                                     .env = engine_environment(engine, account->number),
                                     .done = done };
    snprintf(promotion->version, sizeof(promotion->version), "%.*s", SLICE_ARG(version));
    if (promotion->env)
        environment_hold(promotion->env);
    list_init(&promotion->deferred.link);
    promotion->deferred.fn = on_begun;
    loop_defer(engine_loop(engine), &promotion->deferred);
}

/* ---- at start ---- */

static struct worker *find(const struct workers *workers, const struct bytes *version)
{
    for (size_t i = 0; i < workers->count; i++)
        if (slice_is(bytes_slice(version), workers->all[i]->version))
            return workers->all[i];
    return NULL;
}

/* Sets the limits of deployments up to the current one: they may have been promoted before
 * it, and their runs may still exist. Plain registrations set theirs when they were
 * loaded. */
static void set_limits(struct environment *env, struct worker *current)
{
    const struct workers *workers = env->fleet->workers;
    for (size_t i = 0; i < workers->count; i++)
        if (workers->all[i]->deployment[0] && is_older(workers->all[i], current))
            registration_set_limits(workers->all[i], env);
    registration_set_limits(current, env);
}

/* A version that was promoted was DEPLOYED. If it is missing, which must not happen, the
 * newest plain registration is current, and a promotion can replace it. */
enum err promotion_restore(struct environment *env, const struct document *document,
                           struct failure *why)
{
    struct workers *workers = env->fleet->workers;
    struct slice body = bytes_slice(document->body);
    struct bytes *version = scan_is_json(body) ? members_text(body, "version") : NULL;
    if (!version)
        return explain(why, ERR_INVALID, "The document of a current version is damaged");
    struct worker *worker = find(workers, version);
    if (env->is_dev) {
        log_warn("current version in dev ignored", "environment", env->id, NULL);
    } else if (worker) {
        worker->is_deployed = true;
        workers_promote(workers, worker, document->version);
        set_limits(env, worker);
    } else {
        log_warn("current version not found", "environment", env->id, "version",
                 log_slice(bytes_slice(version)), NULL);
        workers_promote(workers, workers->current, document->version);
    }
    bytes_unref(version);
    return OK;
}
