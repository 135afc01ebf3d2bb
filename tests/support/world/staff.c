/* staff.c - draws versions, and derives which runs they may have without the engine. */
#include "tests/support/world/staff.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/engine/attempts.h"
#include "core/engine/calls.h"
#include "core/fleet/dev_sessions.h"
#include "core/fleet/versions.h"
#include "tests/support/world/calls.h"

static const char *const tasks[] = { "hello", "mail", "sms", "once" };
static const char *const externals[STAFF_EXTERNALS] = { "ci-1", "ci-2", "ci-3" };

static bool has_task(const struct worker *worker, const struct run *run)
{
    for (size_t i = 0; i < worker->task_count; i++)
        if (slice_equal(bytes_slice(worker->tasks[i].id), bytes_slice(run->task)))
            return true;
    return false;
}

static const struct worker *worker_of(const struct environment *env, const char *version)
{
    const struct workers *workers = env->fleet->workers;
    for (size_t i = 0; i < workers->count; i++)
        if (!strcmp(workers->all[i]->version, version))
            return workers->all[i];
    return NULL;
}

static void draw_tasks(struct draws *draws, char *out, size_t size)
{
    size_t len = 0;
    for (unsigned i = 0; i < 4; i++)
        if (chance(draws, 750))
            len +=
                (size_t)snprintf(out + len, size - len, "%s%s", len ? "," : "", tasks[i]);
    if (!len)
        snprintf(out, size, "%s", tasks[0]);
}

/* external: the user's id of the deployment; NULL: a plain registration. */
static void add(struct staff *staff, const char *names, const char *external)
{
    unsigned at = staff->count++;
    snprintf(staff->all[at].version, sizeof(staff->all[at].version), "20260101.%u", at + 1);
    snprintf(staff->all[at].tasks, sizeof(staff->all[at].tasks), "%s", names);
    staff->all[at].external = external;
    staff->all[at].is_deployed = !external;
    if (external)
        add_deployment(staff->world, staff->all[at].version, names, external);
    else
        register_worker(staff->world, staff->all[at].version, names, 3);
}

static const char *any_external(struct staff *staff)
{
    return staff->world->env->is_dev ? NULL
                                     : externals[draw(staff->draws, STAFF_EXTERNALS)];
}

static void deploy(const struct staff *staff, unsigned at)
{
    struct environment *env = staff->world->env;
    versions_deployed(env, (struct worker *)worker_of(env, staff->all[at].version));
}

static void promote(const struct staff *staff, unsigned at)
{
    struct environment *env = staff->world->env;
    workers_promote(env->fleet->workers,
                    (struct worker *)worker_of(env, staff->all[at].version),
                    staff->promotions);
    fleet_changed(env);
}

/* One of the versions becomes DEPLOYED, or is promoted if it already is. */
static void step_outside_dev(struct staff *staff)
{
    unsigned at = draw(staff->draws, staff->count);
    if (!staff->all[at].is_deployed) {
        staff->all[at].is_deployed = true;
        deploy(staff, at);
    } else {
        staff->current = at;
        staff->promotions++;
        promote(staff, at);
    }
}

void staff_init(struct staff *staff, struct world *world, struct draws *draws)
{
    *staff = (struct staff){ .world = world, .ledger = ledger_of(world), .draws = draws };
    add(staff, "hello,mail,sms,once", NULL);
}

void staff_step(struct staff *staff)
{
    char names[64];
    if (chance(staff->draws, 300) && staff->count < STAFF_VERSIONS) {
        draw_tasks(staff->draws, names, sizeof(names));
        add(staff, names, chance(staff->draws, 500) ? any_external(staff) : NULL);
    } else if (!staff->world->env->is_dev) {
        step_outside_dev(staff);
    } else if (chance(staff->draws, 500)) {
        dev_sessions_connect(staff->world->env, SESSION_SOCKET);
        staff->connected++;
    } else if (staff->connected) {
        dev_sessions_disconnect(staff->world->env, SESSION_SOCKET);
        staff->connected--;
    }
}

void staff_return(struct staff *staff)
{
    struct environment *env = staff->world->env;
    staff->connected = 0;
    for (unsigned i = 0; i < staff->count; i++) {
        if (!staff->all[i].external)
            load_worker(staff->world, staff->all[i].version, staff->all[i].tasks, 3);
        else
            add_deployment(staff->world, staff->all[i].version, staff->all[i].tasks,
                           staff->all[i].external)
                ->is_deployed = staff->all[i].is_deployed;
    }
    if (staff->promotions)
        workers_promote(env->fleet->workers,
                        (struct worker *)worker_of(env, staff->all[staff->current].version),
                        staff->promotions);
    dev_sessions_start(env);
    engine_sweep_environment(staff->world->engine, env);
}

/* The newest versions are used most. No run is locked to a version that is not DEPLOYED. */
const char *staff_any(struct staff *staff)
{
    unsigned back = draw(staff->draws, chance(staff->draws, 200) ? staff->count : 2);
    unsigned at = back < staff->count ? staff->count - 1 - back : 0;
    return staff->all[staff->all[at].is_deployed ? at : 0].version;
}

void staff_draw_wish(struct staff *staff, struct run *run)
{
    if (chance(staff->draws, 60))
        run->worker_version = bytes_create(slice_of(staff_any(staff)));
    else if (chance(staff->draws, 60))
        run_rare_edit(run)->external_deployment =
            bytes_create(slice_of(any_external(staff)));
}

static bool is_deployed(const struct staff *staff, const char *version)
{
    for (unsigned i = 0; i < staff->count; i++)
        if (!strcmp(staff->all[i].version, version))
            return staff->all[i].is_deployed;
    return false;
}

/* Returns true if the session began after the run was handed out, which is known only
 * when it is stored: then another session had the run's version. */
static bool began_since(const struct staff *staff, const struct session *session,
                        const struct run *run)
{
    struct loop *loop = staff->world->loop;
    int64_t ago = loop_wall_ms(loop) - run->updated_at;
    return session && session->registered_at >= loop_now_ms(loop) - ago;
}

void staff_check_taken(const struct staff *staff, const char *version,
                       const struct run *run)
{
    const struct environment *env = staff->world->env;
    const struct worker *named = worker_of(env, version);
    const struct worker *bound = worker_of(env, run->worker_version->data);
    const struct bytes *external = run_rare(run)->external_deployment;
    if (external && (!bound || strcmp(bound->external_id, external->data)))
        violated("%s of the deployment %s was given out as %s", run->id, external->data,
                 run->worker_version->data);
    if (bound && !is_deployed(staff, bound->version))
        violated("%s was given out as %s, which is not deployed", run->id, bound->version);
    if (!bound || !has_task(bound, run))
        violated("%s was given out as %s, which has not its task", run->id,
                 run->worker_version->data);
    if (env->is_dev && bound != named && bound->session != named->session &&
        !began_since(staff, bound->session, run))
        violated("%s of %s was given to %s", run->id, bound->version, version);
}

/* ---- at rest ---- */

static bool is_missed(const struct session *session, const struct session *asking)
{
    return session->missed_since && session != asking;
}

/* Returns the session whose run it is while `asking` dequeues, which keeps that one
 * connected; NULL: none can have it. */
static struct session *session_for(const struct environment *env, const struct run *run,
                                   const struct session *asking)
{
    struct session *found = NULL;
    const struct worker *bound =
        run->worker_version ? worker_of(env, run->worker_version->data) : NULL;
    if (run->worker_version)
        return bound && has_task(bound, run) ? bound->session : NULL;
    for (struct session *s = NULL; (s = dev_sessions_next(env, s));)
        if (has_task(s->current, run) &&
            (!found || !is_missed(s, asking) || is_missed(found, asking)))
            found = s; /* the newest is last */
    return found;
}

static bool is_ready(const struct staff *staff, const struct tracked *run)
{
    bool pauses = run->run.started_at && run->run.due_at > loop_wall_ms(staff->world->loop);
    return run->run.execution == EXECUTION_QUEUED && !run_is_final(&run->run) && !pauses;
}

static bool has_run_for(const struct staff *staff, const struct session *session)
{
    const struct environment *env = staff->world->env;
    if (env->queues.running >= env->queues.limit)
        return false;
    list_each (link, &staff->ledger->stories) {
        const struct run *last = story_last(container_of(link, struct story, link));
        const struct tracked *run = environment_find(env, slice_of(last->id));
        if (run && is_ready(staff, run) && session_for(env, &run->run, session) == session)
            return true;
    }
    return false;
}

enum { ASK_MS = 1000 };

struct asking {
    struct dequeue dequeue; /* first */
    bool done, got;
};

static void on_asked(struct dequeue *dequeue, enum err status)
{
    struct asking *asking = container_of(dequeue, struct asking, dequeue);
    asking->done = true;
    asking->got = status == OK;
}

/* A run is chosen before any time passes; otherwise the version stops dequeuing, since a
 * pause may end or a slot become free later. */
static bool ask(struct staff *staff, const char *version)
{
    struct world *world = staff->world;
    struct asking asking = { 0 };
    if (dequeue_begin_for(world->engine, world->env, slice_of(version), &asking.dequeue,
                          ASK_MS, on_asked))
        violated("a dequeue is refused");
    while (loop_turn(world->loop, 0) && !asking.done && !asking.dequeue.holding)
        ;
    bool chosen = asking.done || asking.dequeue.holding;
    if (!chosen)
        dequeue_cancel(&asking.dequeue);
    while (!asking.done)
        loop_turn(world->loop, 1);
    if (asking.got != chosen)
        violated("%s was to have a run that was chosen for it", version);
    if (asking.got)
        staff_check_taken(
            staff, version,
            &environment_find(world->env, slice_of(asking.dequeue.command.run_id))->run);
    return asking.got;
}

/* Returns the version that the run must have, outside of dev; NULL: it does not exist. */
static const char *version_for(const struct staff *staff, const struct run *run)
{
    const struct bytes *external = run_rare(run)->external_deployment;
    const char *found = NULL;
    if (run->worker_version)
        return is_deployed(staff, run->worker_version->data) ? run->worker_version->data
                                                             : NULL;
    if (!external && staff->promotions)
        return staff->all[staff->current].version;
    for (unsigned i = 0; i < staff->count; i++) {
        const char *has = staff->all[i].external;
        if (external ? has && staff->all[i].is_deployed && !strcmp(has, external->data)
                     : !has)
            found = staff->all[i].version; /* the highest is last */
    }
    return found;
}

static void check_statuses(const struct staff *staff)
{
    const struct environment *env = staff->world->env;
    bool undecided =
        env->is_dev && (dev_sessions_may_return(env) || !dev_sessions_next(env, NULL));
    list_each (link, &staff->ledger->stories) {
        const struct run *run = story_last(container_of(link, struct story, link));
        const char *version = env->is_dev ? NULL : version_for(staff, run);
        const struct worker *wanted = version ? worker_of(env, version) : NULL;
        bool has = env->is_dev ? session_for(env, run, NULL) != NULL
                               : wanted && has_task(wanted, run);
        if (run->status == RUN_PENDING_VERSION && has)
            violated("%s waits for a version that is there", run->id);
        if (run->status == RUN_QUEUED && !has && !undecided)
            violated("%s is queued and no version has its task", run->id);
    }
}

void staff_check_rest(struct staff *staff)
{
    const struct environment *env = staff->world->env;
    while (!list_empty(&staff->world->engine->sweeps) || !engine_idle(staff->world->engine))
        loop_turn(staff->world->loop, 1);
    check_statuses(staff);
    for (unsigned i = 0; i < staff->count && env->is_dev; i++) {
        const char *version = staff->all[i].version;
        const struct session *session = dev_sessions_asking(env, slice_of(version));
        if (!session)
            continue;
        bool expected = has_run_for(staff, session);
        if (ask(staff, version) != expected)
            violated("%s asked and %s", version,
                     expected ? "did not get the run that waits for it" : "got one");
    }
}
