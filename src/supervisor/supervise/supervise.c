/* supervise.c - creates, connects and stops the parts of the supervise role.
 *
 *   dequeuing ─ message ─► admission ─► runner ─ run has ended ─► admission, dequeuing
 *                  gateway_notices ─► workload ─► controllers            building */
#include "supervisor/supervise/supervise.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/client/trust.h"
#include "os/process/cgroup.h"
#include "os/process/children.h"
#include "supervisor/runners/left_runs.h"
#include "supervisor/runners/workload.h"
#include "supervisor/supervise/admission.h"
#include "supervisor/supervise/dequeuing.h"
#include "supervisor/supervise/gateway_notices.h"
#include "supervisor/supervise/supervise_check.h"
#include "supervisor/versions/building.h"
#include "supervisor/versions/host.h"
#include "supervisor/versions/tenants.h"
#include "supervisor/versions/version_folder.h"
#include "supervisor/versions/version_sweep.h"

enum {
    MIB = 1 << 20,
    WAITING_BYTES = 256 << 20, /* measured memory of a process whose run waits */
    TOKEN_LOOK_MS = 500,
    DRAIN_LOOK_MS = 20,
    KEEP_MS = 60 * 1000,
    POLL_MS = 20 * 1000,
    NAME_MAX_LEN = 64,
    TOKEN_MAX = 4096,
};

enum supervise_phase {
    SUPERVISE_WAITING,
    SUPERVISE_WORKING,
    SUPERVISE_DRAINING,
    SUPERVISE_CLOSING
};

struct supervise {
    const struct supervise_options *options;
    struct supervise_events events;
    struct loop *loop;
    enum supervise_phase phase;
    struct url url;
    struct trust *trust;
    struct places places;
    struct runner_shared shared;
    struct left_runs left;
    struct workload *workload;   /* NULL until begin_work */
    struct dequeuing *dequeuing; /* NULL until begin_work */
    struct building *building;   /* NULL until begin_work, or if nothing is built here */
    struct version_shared jobs;  /* shared by building and shared.versions */
    struct version_sweep *sweep; /* NULL until begin_work */
    struct gateway_notices *notices; /* NULL until begin_work */
    struct admission *admission;     /* NULL until begin_work */
    struct timer timer;
    uint32_t token_kind, drain_kind;
    int64_t drain_until; /* monotonic ms */
    bool killed;
    bool waiting_logged;
    char instance[NAME_MAX_LEN];
    char *cgroup;
};

/* ---- runs ---- */

/* Uses places that may have become free. */
static void look(void *owner)
{
    struct supervise *supervise = owner;
    if (supervise->phase != SUPERVISE_WORKING)
        return;
    admission_look(supervise->admission);
    dequeuing_look(supervise->dequeuing);
}

/* ---- events of the parts ---- */

static unsigned capacity(void *owner)
{
    const struct supervise *supervise = owner;
    return admission_machines(supervise->admission);
}

static bool write_capacity(void *owner, struct buf *out)
{
    const struct supervise *supervise = owner;
    return admission_write_capacity(supervise->admission, out);
}

static void on_message(void *owner, struct slice text)
{
    struct supervise *supervise = owner;
    struct run_message message;
    struct failure why = { 0 };
    if (run_message_read(text, &message, &why)) {
        log_error("cannot read a dequeued message", "reason", why.text, NULL);
        if (message.run[0])
            runner_refuse(&supervise->shared, &message, why.text);
        return;
    }
    if (supervise->phase != SUPERVISE_WORKING)
        runner_refuse(&supervise->shared, &message, "the supervise role is shutting down");
    else
        admission_take(supervise->admission, &message);
}

static void on_reach(void *owner, bool reached, const char *why)
{
    const struct supervise *supervise = owner;
    if (reached)
        log_info("the gateway responds", "url", supervise->options->url, NULL);
    else if (supervise->phase == SUPERVISE_WORKING)
        log_warn("request to the gateway failed; retrying", "url", supervise->options->url,
                 "reason", why ? why : "", NULL);
}

static const struct dequeuing_events dequeuing_events = { capacity, write_capacity,
                                                          on_message, on_reach };

static void on_notices_open(void *owner)
{
    struct supervise *supervise = owner;
    size_t at = 0;
    for (struct runner *runner; (runner = table_next(&supervise->shared.runners, &at));)
        if (runner->has_run)
            gateway_notices_follow(supervise->notices, runner->message.run);
}

static void on_notice(void *owner, struct slice run)
{
    struct supervise *supervise = owner;
    workload_notify(supervise->workload, run);
}

static const struct gateway_notices_events notices_events = { on_notices_open, on_notice };

static struct supervise *supervise_of(const struct runner *runner)
{
    return runner->shared->owner;
}

static void on_run(struct runner *runner)
{
    struct supervise *supervise = supervise_of(runner);
    if (supervise->notices)
        gateway_notices_follow(supervise->notices, runner->message.run);
}

static void on_changed(void *owner)
{
    struct supervise *supervise = owner;
    left_runs_note(&supervise->left);
}

static void on_done(struct runner *runner)
{
    look(supervise_of(runner));
}

static void on_gone(struct runner *runner)
{
    struct supervise *supervise = supervise_of(runner);
    workload_forget(supervise->workload, runner);
    if (supervise->notices && runner->has_run)
        gateway_notices_leave(supervise->notices, runner->message.run);
}

/* ---- ending ---- */

static void on_closed(void *owner)
{
    struct supervise *supervise = owner;
    struct supervise_events events = supervise->events;
    struct failure none = { 0 };
    if (supervise->dequeuing) /* else the list is still the previous role's */
        left_runs_finish(&supervise->left);
    dequeuing_destroy(supervise->dequeuing);
    admission_destroy(supervise->admission);
    building_destroy(supervise->building);
    version_sweep_destroy(supervise->sweep);
    children_destroy(supervise->shared.processes);
    version_store_destroy(supervise->shared.versions);
    table_finish(&supervise->shared.runners);
    tenants_close(supervise->shared.tenants);
    site_close(supervise->shared.site);
    trust_destroy(supervise->trust);
    free(supervise->cgroup);
    loop_destroy(supervise->loop);
    free(supervise);
    log_info("stopped", NULL);
    events.on_stopped(events.owner, &none);
}

static void on_notices_closed(void *owner)
{
    struct supervise *supervise = owner;
    gateway_client_close(supervise->shared.gateway_client, on_closed, supervise);
}

static void on_workload_closed(void *owner)
{
    struct supervise *supervise = owner;
    if (supervise->notices)
        gateway_notices_close(supervise->notices, on_notices_closed);
    else
        on_closed(supervise);
}

static void kill_runners(struct supervise *supervise)
{
    size_t at = 0;
    if (supervise->killed)
        return;
    supervise->killed = true;
    if (supervise->shared.runners.count)
        log_warn("runs did not finish in time; killing their processes", "count",
                 log_number((int64_t)supervise->shared.runners.count), NULL);
    for (struct runner *runner; (runner = table_next(&supervise->shared.runners, &at));)
        runner_kill(runner);
}

static void close_parts(struct supervise *supervise)
{
    supervise->phase = SUPERVISE_CLOSING;
    if (supervise->workload)
        workload_close(supervise->workload, on_workload_closed, supervise);
    else
        on_closed(supervise);
}

static void on_drain(struct timer *timer)
{
    struct supervise *supervise = container_of(timer, struct supervise, timer);
    bool quiet =
        !supervise->shared.runners.count && dequeuing_is_idle(supervise->dequeuing) &&
        building_is_idle(supervise->building) &&
        version_store_is_idle(supervise->shared.versions) &&
        version_sweep_is_idle(supervise->sweep) && site_is_idle(supervise->shared.site);
    if (quiet) {
        close_parts(supervise);
        return;
    }
    if (loop_now_ms(supervise->loop) >= supervise->drain_until)
        kill_runners(supervise);
    loop_set_timer(supervise->loop, timer, supervise->drain_kind, DRAIN_LOOK_MS);
}

void supervise_drain(struct supervise *supervise)
{
    size_t at = 0;
    if (supervise->phase == SUPERVISE_DRAINING)
        kill_runners(supervise);
    if (supervise->phase == SUPERVISE_WAITING) {
        timers_clear(loop_timers(supervise->loop), &supervise->timer);
        close_parts(supervise);
    }
    if (supervise->phase != SUPERVISE_WORKING)
        return;
    log_info("draining", "runs", log_number((int64_t)supervise->shared.runners.count),
             NULL);
    supervise->phase = SUPERVISE_DRAINING;
    supervise->shared.draining = true;
    dequeuing_stop(supervise->dequeuing);
    building_stop(supervise->building);
    version_store_stop(supervise->shared.versions);
    version_sweep_stop(supervise->sweep);
    site_stop(supervise->shared.site);
    admission_give_back(supervise->admission, "the supervise role is shutting down");
    workload_end_kept(supervise->workload);
    for (struct runner *runner; (runner = table_next(&supervise->shared.runners, &at));)
        runner_ask_to_end(runner);
    supervise->drain_until = loop_now_ms(supervise->loop) + supervise->options->drain_ms;
    loop_set_timer(supervise->loop, &supervise->timer, supervise->drain_kind, 0);
}

/* ---- starting ---- */

static void find_room(struct supervise *supervise)
{
    const struct supervise_options *options = supervise->options;
    uint64_t memory = options->memory ? (uint64_t)options->memory : host_memory() / 4 * 3;
    double cores = (double)host_cores();
    if (*options->cores)
        scan_number(slice_of(options->cores), &cores);
    struct places_options capacity = {
        .cpu = (uint64_t)(cores * 1000),
        .memory = memory / MIB,
        .runs = options->runs,
        .processes_max =
            options->waiting ? options->waiting : (unsigned)(memory / WAITING_BYTES),
        .strict = options->strict,
    };
    places_init(&supervise->places, &capacity);
    log_info("capacity for runs", "cpu_thousandths", log_number((int64_t)capacity.cpu),
             "memory_mib", log_number((int64_t)capacity.memory), "processes",
             log_number(capacity.processes_max), NULL);
}

static enum err find_groups(struct supervise *supervise, struct failure *why)
{
    const char *wanted = supervise->options->cgroup;
    bool is_auto = strcmp(wanted, "auto") == 0;
    enum err refused = OK;
    if (strcmp(wanted, "off") == 0)
        return OK;
    if (is_auto)
        refused = host_cgroup(&supervise->cgroup, why);
    else
        supervise->cgroup = mem_text(slice_of(wanted));
    if (!refused)
        refused = cgroup_prepare(supervise->cgroup, why);
    if (!refused || !is_auto)
        return refused;
    free(supervise->cgroup);
    supervise->cgroup = NULL;
    log_warn("no control groups: the memory of runs is not limited", "reason", why->text,
             NULL);
    return OK;
}

static void name_instance(struct supervise *supervise)
{
    char name[NAME_MAX_LEN] = "";
    if (*supervise->options->instance)
        snprintf(name, sizeof(name), "%s", supervise->options->instance);
    else if (gethostname(name, sizeof(name) - 1) || !*name)
        snprintf(name, sizeof(name), "supervisor");
    for (char *c = name; *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            *c = '-';
    memcpy(supervise->instance, name, sizeof(name));
}

/* Sets up the users under which runs execute.
 *
 * Each organization gets its own uid while the range lasts, even without tenants
 * (--execute-tenants). */
static enum err find_tenants(struct supervise *supervise, struct failure *why)
{
    const struct supervise_options *options = supervise->options;
    struct runner_shared *shared = &supervise->shared;
    bool others = *options->runner_user;
    struct user_range users;
    enum err refused = OK;
    if (options->tenants)
        refused = supervise_check_apart(shared->site, supervise->cgroup, why);
    if (!refused && others)
        refused = user_resolve(options->runner_user, &users, why);
    if (refused)
        return refused;
    return tenants_open(site_path(shared->site), others ? &users : NULL, options->tenants,
                        &shared->tenants, why);
}

static enum err share(struct supervise *supervise, struct failure *why)
{
    const struct supervise_options *options = supervise->options;
    struct runner_shared *shared = &supervise->shared;
    *shared = (struct runner_shared){ .loop = supervise->loop,
                                      .places = &supervise->places,
                                      .instance = supervise->instance,
                                      .gateway = options->url,
                                      .cgroup = supervise->cgroup,
                                      .outer = options->environment,
                                      .strict = options->strict,
                                      .warm = options->warm > 0,
                                      .owner = supervise,
                                      .on_run = on_run,
                                      .on_changed = on_changed,
                                      .on_done = on_done,
                                      .on_room = look,
                                      .on_gone = on_gone };
    runner_shared_init(shared);
    left_runs_init(&supervise->left, shared);
    enum err refused = site_open(supervise->loop, options->folder, &shared->site, why);
    if (!refused && *options->runner_user)
        refused = site_check_way(shared->site, why);
    if (!refused)
        refused = find_tenants(supervise, why);
    if (refused)
        return refused;
    shared->processes = children_create(supervise->loop, NULL);
    version_folder_set_unfinished_aside(site_versions(shared->site));
    shared->versions = version_store_create(supervise->loop, site_versions(shared->site),
                                            options->programs);
    return OK;
}

static bool is_used(void *owner, struct slice deployment)
{
    const struct supervise *supervise = owner;
    size_t at = 0;
    for (struct runner *runner; (runner = table_next(&supervise->shared.runners, &at));)
        if (slice_is(deployment, runner->message.deployment))
            return true;
    return false;
}

static void begin_sweeping(struct supervise *supervise)
{
    struct version_sweep_options sweep = { .loop = supervise->loop,
                                           .gateway_client =
                                               supervise->shared.gateway_client,
                                           .site = supervise->shared.site,
                                           .is_used = is_used,
                                           .owner = supervise };
    supervise->sweep = version_sweep_create(&sweep);
}

static void begin_making_versions(struct supervise *supervise)
{
    const struct supervise_options *options = supervise->options;
    const struct runner_shared *shared = &supervise->shared;
    supervise->jobs = (struct version_shared){ .loop = supervise->loop,
                                               .gateway_client = shared->gateway_client,
                                               .processes = shared->processes,
                                               .site = shared->site,
                                               .tenants = shared->tenants,
                                               .sweep = supervise->sweep,
                                               .programs = options->programs,
                                               .outer = options->environment,
                                               .cgroup = shared->cgroup,
                                               .settings = options->versions };
    version_shared_init(&supervise->jobs);
    supervise->building = building_create(&supervise->jobs, supervise->instance);
    version_store_use(shared->versions, &supervise->jobs);
}

static enum err begin_work(struct supervise *supervise, const char *token,
                           struct failure *why)
{
    const struct supervise_options *options = supervise->options;
    struct runner_shared *shared = &supervise->shared;
    struct gateway_client_options gateway_client = { .url = &supervise->url,
                                                     .trust = supervise->trust,
                                                     .token = token,
                                                     .instance = supervise->instance };
    struct workload_options workload = { .shared = shared,
                                         .kept_max = options->warm,
                                         .keep_ms = KEEP_MS,
                                         .poll_ms = POLL_MS,
                                         .figures = options->figures };
    enum err refused = OK;
    if (!supervise->workload) /* an earlier attempt may have got this far */
        refused = workload_create(supervise->loop, &workload, &supervise->workload, why);
    if (!refused)
        refused = gateway_client_create(supervise->loop, &gateway_client,
                                        &shared->gateway_client, why);
    if (refused)
        return refused;
    shared->port = workload_port(supervise->workload);
    struct gateway_notices_options notices = { .url = &supervise->url,
                                               .trust = supervise->trust,
                                               .credential = gateway_client_credential(
                                                   shared->gateway_client) };
    supervise->phase = SUPERVISE_WORKING;
    supervise->admission = admission_create(shared, supervise->workload, look, supervise);
    supervise->notices =
        gateway_notices_create(supervise->loop, &notices, &notices_events, supervise);
    supervise->dequeuing = dequeuing_create(supervise->loop, shared->gateway_client,
                                            &dequeuing_events, supervise);
    begin_sweeping(supervise);
    begin_making_versions(supervise);
    site_remove_left(shared->site);
    left_runs_report(&supervise->left);
    log_info("supervising", "url", options->url, "folder", options->folder, "instance",
             supervise->instance, "user",
             *options->runner_user ? options->runner_user : "its own", NULL);
    return OK;
}

/* ---- the worker token ---- */

/* Reads the first line of the file. Returns false if there is none yet. */
static bool read_token(const char *path, char token[TOKEN_MAX])
{
    FILE *file = fopen(path, "re");
    bool got = file && fgets(token, TOKEN_MAX, file);
    if (file)
        fclose(file);
    if (got)
        token[strcspn(token, "\r\n")] = '\0';
    return got && *token;
}

static void on_token(struct timer *timer)
{
    struct supervise *supervise = container_of(timer, struct supervise, timer);
    struct failure why = { 0 };
    char token[TOKEN_MAX] = "";
    bool got = read_token(supervise->options->token_file, token);
    if (!got && !supervise->waiting_logged)
        log_info("waiting for the worker token", "path", supervise->options->token_file,
                 NULL);
    supervise->waiting_logged = true;
    if (got && begin_work(supervise, token, &why))
        log_error("cannot start executing yet; retrying", "reason", why.text, NULL);
    explicit_bzero(token, sizeof(token));
    if (supervise->phase == SUPERVISE_WAITING)
        loop_set_timer(supervise->loop, timer, supervise->token_kind, TOKEN_LOOK_MS);
}

static enum err prepare(struct supervise *supervise, struct failure *why)
{
    const struct supervise_options *options = supervise->options;
    enum err refused = supervise_check(options, why);
    if (!refused)
        refused = url_read(slice_of(options->url), &supervise->url, why);
    if (!refused && (supervise->url.secure || *options->ca_file))
        refused = trust_create(*options->ca_file ? options->ca_file : NULL,
                               &supervise->trust, why);
    if (!refused)
        refused = find_groups(supervise, why);
    return refused ? refused : share(supervise, why);
}

enum err supervise_start(struct uv_loop_s *uv, const struct supervise_options *options,
                         const struct supervise_events *events, struct supervise **out,
                         struct failure *why)
{
    struct supervise *supervise = mem_new(struct supervise);
    *supervise = (struct supervise){ .options = options,
                                     .events = *events,
                                     .loop = loop_create(uv) };
    supervise->token_kind = timers_kind(loop_timers(supervise->loop), on_token);
    supervise->drain_kind = timers_kind(loop_timers(supervise->loop), on_drain);
    name_instance(supervise);
    enum err refused = prepare(supervise, why);
    if (!refused && *options->token)
        refused = begin_work(supervise, options->token, why);
    if (refused) {
        children_destroy(supervise->shared.processes);
        version_store_destroy(supervise->shared.versions);
        tenants_close(supervise->shared.tenants);
        site_close(supervise->shared.site);
        trust_destroy(supervise->trust);
        free(supervise->cgroup);
        loop_destroy(supervise->loop);
        free(supervise);
        return refused;
    }
    find_room(supervise);
    if (supervise->phase == SUPERVISE_WAITING)
        loop_set_timer(supervise->loop, &supervise->timer, supervise->token_kind, 0);
    *out = supervise;
    return OK;
}
