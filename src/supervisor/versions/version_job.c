/* version_job.c - downloads the archive, and has version_build build the version. */
#include "supervisor/versions/version_job.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "supervisor/versions/host.h"
#include "supervisor/versions/version_folder.h"

/* ---- shared by all jobs ---- */

static enum err find_program(void *owner, struct slice runtime, char **program,
                             struct failure *why)
{
    const struct version_shared *shared = owner;
    return host_program(shared->programs, runtime, program, why);
}

static void on_child(void *owner, pid_t pid, bool begins)
{
    const struct version_shared *shared = owner;
    if (begins)
        site_add_child(shared->site, pid);
    else
        site_drop_child(shared->site, pid);
}

void version_shared_init(struct version_shared *shared)
{
    shared->build = (struct version_build_options){
        .loop = shared->loop,
        .processes = shared->processes,
        .versions = site_versions(shared->site),
        .architecture = host_architecture(),
        .libc = host_libc(),
        .image = shared->settings.image,
        .no_scripts = shared->settings.no_scripts,
        .passed = shared->settings.passed,
        .limits = &shared->settings.limits,
        .outer = shared->outer,
        .cgroup = shared->cgroup,
        .memory = host_memory() / 4 * 3,
        .apart = tenants_are_apart(shared->tenants),
        .find_program = find_program,
        .on_child = on_child,
        .owner = shared,
    };
}

/* ---- ending ---- */

static void close_file(struct version_job *job)
{
    if (job->file >= 0)
        close(job->file);
    job->file = -1;
}

static void fail_job(struct version_job *job, const char *message)
{
    struct version_outcome outcome = { .canceled = job->canceled,
                                       .error = "BuildError",
                                       .message = message };
    job->source->done(job->owner, &outcome);
}

static void on_made(void *owner, const struct version_outcome *outcome)
{
    struct version_job *job = owner;
    job->build = NULL;
    job->source->done(job->owner, outcome);
}

void version_job_finish(struct version_job *job)
{
    close_file(job);
    if (job->archive)
        unlink(job->archive);
    if (job->scratch)
        site_remove_scratch(job->shared->site, job->scratch_name);
    free(job->archive);
    free(job->scratch);
    job->archive = job->scratch = NULL;
    bytes_clear(&job->index);
    build_output_finish(&job->output);
    build_job_finish(&job->order);
    job->canceled = false;
    job->state = VERSION_JOB_IDLE;
    version_sweep_soon(job->shared->sweep);
}

/* ---- making ---- */

static void make_version(struct version_job *job)
{
    const struct version_shared *shared = job->shared;
    struct process_user user;
    struct failure why = { 0 };
    snprintf(job->scratch_name, sizeof(job->scratch_name), "%s%s", job->source->scratch,
             job->order.deployment);
    if (tenants_find(shared->tenants, slice_of(job->order.organization), &user, &why) ||
        site_make_scratch(shared->site, job->scratch_name, user, &job->scratch, &why)) {
        fail_job(job, why.text);
        return;
    }
    struct version_build_task task = { .job = &job->order,
                                       .archive = job->archive,
                                       .scratch = job->scratch,
                                       .user = user,
                                       .output = &job->output,
                                       .index = bytes_slice(job->index) };
    job->state = VERSION_JOB_MAKING;
    job->build = version_build_begin(&shared->build, &task, on_made, job);
}

static void set_aside(struct work *work)
{
    const struct version_job *job = container_of(work, struct version_job, work);
    version_folder_set_aside(site_versions(job->shared->site), job->order.deployment);
}

static void begin_setting_aside(struct version_job *job, enum version_job_state state,
                                void (*done)(struct work *work))
{
    job->state = state;
    job->work.run = set_aside;
    job->work.done = done;
    work_begin(loop_uv(job->shared->loop), &job->work, WORK_VERSIONS);
}

static void on_cleared(struct work *work)
{
    struct version_job *job = container_of(work, struct version_job, work);
    if (job->canceled)
        fail_job(job, "canceled");
    else
        make_version(job);
}

static void on_dropped(struct work *work)
{
    struct version_job *job = container_of(work, struct version_job, work);
    job->state = VERSION_JOB_IDLE;
    job->source->dropped(job->owner);
}

void version_job_drop(struct version_job *job)
{
    begin_setting_aside(job, VERSION_JOB_DROPPING, on_dropped);
}

/* ---- the downloads ---- */

static void download(struct version_job *job);

static const char *reason_of(const struct version_job *job)
{
    const struct version_source *source = job->source;
    if (job->call.fetch.error == ERR_STORE_FULL)
        return source->full;
    if (!job->call.status)
        return source->away;
    return job->call.status == 404 ? source->gone : source->refused;
}

static void on_time(struct timer *timer)
{
    download(container_of(timer, struct version_job, timer));
}

static void download_later(struct version_job *job, int64_t ms)
{
    struct loop *loop = job->shared->loop;
    loop_set_timer(loop, &job->timer, timers_kind(loop_timers(loop), on_time), ms);
}

static void on_downloaded(struct gateway_call *call)
{
    struct version_job *job = container_of(call, struct version_job, call);
    bool may_repeat = !job->canceled && gateway_call_may_retry(call) &&
                      call->fetch.error != ERR_STORE_FULL;
    int64_t pause_ms = may_repeat ? job->source->pause(job->owner) : -1;
    job->calls = false;
    close_file(job);
    if (pause_ms >= 0) {
        download_later(job, pause_ms);
    } else if (job->canceled || call->status != 200) {
        fail_job(job, reason_of(job));
    } else if (job->state == VERSION_JOB_INDEX) {
        job->index = bytes_create(call->answer);
        begin_setting_aside(job, VERSION_JOB_CLEARING, on_cleared);
    } else if (job->source->is_indexed) {
        job->state = VERSION_JOB_INDEX;
        download(job);
    } else {
        make_version(job);
    }
}

/* Logs the reason, which the message leaves out. */
static void fail_request(struct version_job *job, const struct failure *why)
{
    const char *message = job->source->not_sent;
    if (message)
        log_warn("cannot send a request of the builder", "reason", why->text, NULL);
    fail_job(job, message ? message : why->text);
}

static void download(struct version_job *job)
{
    struct buf path = { 0 };
    struct failure why = { 0 };
    bool is_archive = job->state == VERSION_JOB_ARCHIVE;
    if (is_archive)
        job->file =
            open(job->archive, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (is_archive && job->file < 0) {
        fail_job(job, job->source->unwritable);
        return;
    }
    buf_print(&path, "/deployments/%s/%s", job->order.deployment,
              is_archive ? "archive" : "index");
    buf_add_char(&path, '\0');
    job->call = (struct gateway_call){
        .fetch = { .download = { .used = is_archive, .fd = job->file },
                   .answer_max =
                       is_archive ? (uint64_t)job->order.archive_bytes : INDEX_BYTES_MAX },
        .path = path.ptr,
        .done = on_downloaded,
    };
    job->calls = gateway_call_begin(job->shared->gateway_client, &job->call, &why) == OK;
    buf_finish(&path);
    if (!job->calls)
        fail_request(job, &why);
}

/* ---- interface ---- */

void version_job_init(struct version_job *job, const struct version_shared *shared,
                      const struct version_source *source, void *owner)
{
    *job = (struct version_job){
        .shared = shared, .source = source, .owner = owner, .file = -1
    };
}

void version_job_begin(struct version_job *job)
{
    struct buf path = { 0 };
    build_output_init(&job->output);
    buf_print(&path, "%s/%s.tar.gz.new", site_versions(job->shared->site),
              job->order.deployment);
    job->archive = mem_text(buf_slice(&path));
    buf_finish(&path);
    job->state = VERSION_JOB_ARCHIVE;
    download_later(job, 0);
}

void version_job_cancel(struct version_job *job)
{
    bool waits = job->timer.place != 0;
    if (job->canceled)
        return;
    job->canceled = true;
    timers_clear(loop_timers(job->shared->loop), &job->timer);
    if (job->calls)
        fetch_cancel(&job->call.fetch);
    else if (job->build)
        version_build_cancel(job->build);
    else if (waits)
        fail_job(job, "canceled");
}

bool version_job_is_building(const struct version_job *job)
{
    return job->build && version_build_step(job->build) == VERSION_BUILD_BUILDING;
}
