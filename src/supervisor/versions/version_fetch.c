/* version_fetch.c - two calls and a build.
 *
 *   ARCHIVE   the archive is on its way into a file
 *   INDEX     the index is asked for
 *   CLEARING  what is left of the version here is removed          pool
 *   MAKING    version_build works
 *
 * A gateway that is away is asked again for as long as a lease may last; then whoever waits for
 * the version gives its run back. */
#include "supervisor/versions/version_fetch.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/work.h"
#include "supervisor/versions/build_output.h"
#include "supervisor/versions/host.h"
#include "supervisor/versions/version_build.h"
#include "supervisor/versions/version_folder.h"

enum {
    PAUSE_MS = 1000,
    PATIENCE_MS = 45 * 1000, /* below the shortest lease that is usual */
    MAKE_MS = 8 * 60 * 1000, /* as long as a build has by default */
    ARCHIVE_BYTES = 1 << 30, /* the gateway has judged it already */
};

enum fetch_state { FETCH_IDLE, FETCH_ARCHIVE, FETCH_INDEX, FETCH_CLEARING, FETCH_MAKING };

struct version_fetch {
    struct version_fetch_options options;
    struct version_build_options build_options;
    enum fetch_state state;
    bool stopped;
    struct timer timer;
    uint32_t kind;
    int64_t until_ms; /* monotonic: the gateway is asked again */

    version_fetch_done_fn *done;
    void *owner;
    struct build_job job;
    struct upward_call call;
    bool calls;
    int file;                               /* the archive, while it is loaded; -1: none */
    char *archive, *scratch, *scratch_name; /* paths, and the name of the folder */
    struct bytes *index;
    struct build_output output;
    struct version_build *build;
    struct work clearing;
};

/* ---- the end ---- */

static void close_file(struct version_fetch *fetch)
{
    if (fetch->file >= 0)
        close(fetch->file);
    fetch->file = -1;
}

static void version_fetch_finish(struct version_fetch *fetch, enum err status,
                                 const char *reason)
{
    struct failure why = { 0 };
    if (fetch->stopped && status)
        status = explain(&why, ERR_DRAINING, "the supervise role is ending");
    else if (status)
        explain(&why, status, "%s", reason);
    timers_clear(loop_timers(fetch->options.loop), &fetch->timer);
    close_file(fetch);
    if (fetch->archive)
        unlink(fetch->archive);
    if (fetch->scratch)
        site_remove_scratch(fetch->options.site, fetch->scratch_name);
    free(fetch->archive);
    free(fetch->scratch);
    free(fetch->scratch_name);
    fetch->archive = fetch->scratch = fetch->scratch_name = NULL;
    bytes_clear(&fetch->index);
    build_output_finish(&fetch->output);
    build_job_finish(&fetch->job);
    fetch->state = FETCH_IDLE;
    if (!fetch->stopped)
        version_sweep_soon(fetch->options.sweep);
    fetch->done(fetch->owner, status, &why);
}

/* ---- making ---- */

static void on_made(void *owner, const struct version_outcome *outcome)
{
    struct version_fetch *fetch = owner;
    fetch->build = NULL;
    if (!outcome->ok)
        log_warn("a version cannot be made here", "deployment", fetch->job.deployment,
                 "reason", outcome->message, "output", log_slice(outcome->errors), NULL);
    version_fetch_finish(fetch, outcome->ok ? OK : ERR_RULE, outcome->message);
}

static enum err find_program(void *owner, struct slice runtime, char **program,
                             struct failure *why)
{
    const struct version_fetch *fetch = owner;
    return host_program(fetch->options.programs, runtime, program, why);
}

static void on_child(void *owner, pid_t pid, bool begins)
{
    struct version_fetch *fetch = owner;
    if (begins)
        site_add_child(fetch->options.site, pid);
    else
        site_drop_child(fetch->options.site, pid);
}

static void make(struct version_fetch *fetch)
{
    const struct version_fetch_options *options = &fetch->options;
    struct process_user user;
    struct failure why = { 0 };
    struct buf name = { 0 };
    buf_print(&name, "fetch-%s", fetch->job.deployment);
    fetch->scratch_name = mem_text(buf_slice(&name));
    buf_finish(&name);
    if (tenants_find(options->tenants, slice_of(fetch->job.organization), &user, &why) ||
        site_make_scratch(options->site, fetch->scratch_name, user, &fetch->scratch,
                          &why)) {
        version_fetch_finish(fetch, ERR_RULE, why.text);
        return;
    }
    struct version_build_task task = { .job = &fetch->job,
                                       .archive = fetch->archive,
                                       .scratch = fetch->scratch,
                                       .user = user,
                                       .output = &fetch->output,
                                       .index = bytes_slice(fetch->index) };
    fetch->state = FETCH_MAKING;
    fetch->build = version_build_begin(&fetch->build_options, &task, on_made, fetch);
}

static void clear(struct work *work)
{
    struct version_fetch *fetch = container_of(work, struct version_fetch, clearing);
    version_folder_set_aside(site_versions(fetch->options.site), fetch->job.deployment);
}

static void on_cleared(struct work *work)
{
    struct version_fetch *fetch = container_of(work, struct version_fetch, clearing);
    if (fetch->stopped)
        version_fetch_finish(fetch, ERR_DRAINING, "");
    else
        make(fetch);
}

/* ---- the calls ---- */

static void ask(struct version_fetch *fetch);

/* False: it is asked again. */
static bool is_answered(struct version_fetch *fetch)
{
    const struct upward_call *call = &fetch->call;
    struct loop *loop = fetch->options.loop;
    if (!upward_is_worth_another(call) || call->fetch.error == ERR_STORE_FULL ||
        fetch->stopped || loop_now_ms(loop) >= fetch->until_ms)
        return true;
    loop_set_timer(loop, &fetch->timer, fetch->kind, PAUSE_MS);
    return false;
}

static const char *reason_of(const struct upward_call *call)
{
    if (call->fetch.error == ERR_STORE_FULL)
        return "the disk is full: this version cannot be written here";
    if (!call->status)
        return "this version is not here, and the gateway that has it does not answer";
    return call->status == 404
               ? "this version is not here, and the gateway keeps it no more"
               : "this version is not here, and the gateway refuses it";
}

static void on_answered(struct upward_call *call)
{
    struct version_fetch *fetch = container_of(call, struct version_fetch, call);
    fetch->calls = false;
    close_file(fetch);
    if (!is_answered(fetch))
        return;
    if (fetch->stopped || call->status != 200) {
        version_fetch_finish(fetch, ERR_UNREACHABLE, reason_of(call));
    } else if (fetch->state == FETCH_ARCHIVE) {
        fetch->state = FETCH_INDEX;
        ask(fetch);
    } else {
        fetch->index = bytes_create(call->answer);
        fetch->state = FETCH_CLEARING;
        fetch->clearing.run = clear;
        fetch->clearing.done = on_cleared;
        work_begin(loop_uv(fetch->options.loop), &fetch->clearing, WORK_VERSIONS);
    }
}

static void ask(struct version_fetch *fetch)
{
    struct buf path = { 0 };
    struct failure why = { 0 };
    bool loads = fetch->state == FETCH_ARCHIVE;
    if (loads)
        fetch->file =
            open(fetch->archive, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (loads && fetch->file < 0) {
        version_fetch_finish(fetch, ERR_RULE, "this version cannot be written here");
        return;
    }
    buf_print(&path, "/deployments/%s/%s", fetch->job.deployment,
              loads ? "archive" : "index");
    buf_add_char(&path, '\0');
    fetch->call =
        (struct upward_call){ .fetch = { .download = { .used = loads, .fd = fetch->file },
                                         .answer_max =
                                             loads ? ARCHIVE_BYTES : INDEX_BYTES_MAX },
                              .path = path.ptr,
                              .done = on_answered };
    fetch->calls = upward_begin(fetch->options.upward, &fetch->call, &why) == OK;
    buf_finish(&path);
    if (!fetch->calls)
        version_fetch_finish(fetch, ERR_UNREACHABLE, why.text);
}

static void on_time(struct timer *timer)
{
    ask(container_of(timer, struct version_fetch, timer));
}

/* ---- from outside ---- */

struct version_fetch *version_fetch_create(const struct version_fetch_options *options)
{
    struct version_fetch *fetch = mem_new(struct version_fetch);
    fetch->options = *options;
    fetch->file = -1;
    fetch->kind = timers_kind(loop_timers(options->loop), on_time);
    fetch->build_options = (struct version_build_options){
        .loop = options->loop,
        .processes = options->processes,
        .versions = site_versions(options->site),
        .architecture = host_architecture(),
        .libc = host_libc(),
        .image = options->settings.image,
        .no_scripts = options->settings.no_scripts,
        .passed = options->settings.passed,
        .limits = &fetch->options.settings.limits,
        .outer = options->outer,
        .cgroup = options->cgroup,
        .memory = host_memory() / 4 * 3,
        .apart = tenants_are_apart(options->tenants),
        .find_program = find_program,
        .on_child = on_child,
        .owner = fetch,
    };
    return fetch;
}

void version_fetch_begin(struct version_fetch *fetch, const struct fetched_version *wanted,
                         version_fetch_done_fn *done, void *owner)
{
    struct buf path = { 0 };
    struct build_job *job = &fetch->job;
    *job = (struct build_job){ .deadline_ms = MAKE_MS };
    snprintf(job->deployment, sizeof(job->deployment), "%s", wanted->deployment);
    snprintf(job->version, sizeof(job->version), "%s", wanted->version);
    snprintf(job->organization, sizeof(job->organization), "%s", wanted->organization);
    snprintf(job->archive_hash, sizeof(job->archive_hash), "%s", wanted->archive_hash);
    build_output_init(&fetch->output);
    fetch->done = done;
    fetch->owner = owner;
    fetch->until_ms = loop_now_ms(fetch->options.loop) + PATIENCE_MS;
    buf_print(&path, "%s/%s.tar.gz.new", site_versions(fetch->options.site),
              wanted->deployment);
    fetch->archive = mem_text(buf_slice(&path));
    buf_finish(&path);
    fetch->state = FETCH_ARCHIVE;
    log_info("a version is fetched", "deployment", job->deployment, "version", job->version,
             NULL);
    loop_set_timer(fetch->options.loop, &fetch->timer, fetch->kind, 0);
}

void version_fetch_stop(struct version_fetch *fetch)
{
    if (!fetch || fetch->stopped)
        return;
    fetch->stopped = true;
    if (fetch->calls)
        fetch_cancel(&fetch->call.fetch);
    else if (fetch->build)
        version_build_cancel(fetch->build);
    else if (fetch->timer.place)
        version_fetch_finish(fetch, ERR_DRAINING, "");
}

void version_fetch_destroy(struct version_fetch *fetch)
{
    free(fetch);
}
