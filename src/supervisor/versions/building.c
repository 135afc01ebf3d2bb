/* building.c - one job at a time, and the calls about it.
 *
 *   ASKING    builds/dequeue is held by the gateway
 *   LOADING   the archive is on its way into a file
 *   MAKING    version_build works
 *   TELLING   the rest of the log, then complete, until the gateway answers
 *   ENDING    what is on its way for a job that is over comes back
 *
 * Two calls at most are on their way: that of the state, and a heartbeat. */
#include "supervisor/versions/building.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/work.h"
#include "supervisor/versions/build_output.h"
#include "supervisor/versions/host.h"
#include "supervisor/versions/version_build.h"
#include "supervisor/versions/version_folder.h"

enum {
    HOLD_MS = 5 * 60 * 1000, /* longer than any gateway holds a dequeue */
    PAUSE_MS = 250,          /* behind the first failure; then twice as long */
    PAUSE_MAX_MS = 5 * 1000,
    EMPTY_MS = 500, /* between empty answers that were not held */
    BEAT_MS = 2 * 1000,
    TELL_MS = 5 * 60 * 1000, /* so long a result is told to a gateway that is away */
    JOB_MAX = 4 << 20,       /* bytes */
    MIB = 1 << 20,
};

enum building_state {
    BUILDING_IDLE,
    BUILDING_ASKING,
    BUILDING_LOADING,
    BUILDING_MAKING,
    BUILDING_TELLING,
    BUILDING_ENDING
};

struct building {
    struct building_options options;
    struct version_build_options build_options;
    enum building_state state;
    bool stopped;
    struct timer timer, beat;
    uint32_t time_kind, beat_kind;
    int64_t pause_ms, asked_ms, told_until_ms;

    struct upward_call call; /* of the state */
    bool calls;
    struct upward_call heartbeat;
    bool beats;
    struct bytes *piece; /* of the log, that the gateway does not have yet */

    struct build_job job;
    bool lost; /* the job is not ours any more */
    bool mute; /* the rest of the log is not wanted, or cannot be told */
    char *archive, *scratch, *scratch_name; /* paths, and the name of the folder */
    int file;                               /* the archive, while it is loaded; -1: none */
    struct build_output output;
    struct version_build *build;
    struct bytes *result; /* the body of complete */
    bool made;            /* it is there, as a folder */
    struct work removal;  /* of an invalid version */
    bool removes;
};

static void look_in(struct building *building, int64_t ms)
{
    loop_set_timer(building->options.loop, &building->timer, building->time_kind, ms);
}

static int64_t next_pause(struct building *building)
{
    int64_t pause = building->pause_ms;
    building->pause_ms = 2 * pause < PAUSE_MAX_MS ? 2 * pause : PAUSE_MAX_MS;
    return pause;
}

/* False: the call was refused here, and done does not come. */
static bool begin_call(struct building *building, struct upward_call *call)
{
    struct failure why = { 0 };
    if (upward_begin(building->options.upward, call, &why) == OK)
        return true;
    log_warn("a call of the builder cannot be made", "reason", why.text, NULL);
    return false;
}

/* ---- the end of a job ---- */

static void forget_job(struct building *building)
{
    timers_clear(loop_timers(building->options.loop), &building->beat);
    if (building->file >= 0)
        close(building->file);
    building->file = -1;
    if (building->archive)
        unlink(building->archive);
    if (building->scratch)
        site_remove_scratch(building->options.site, building->scratch_name);
    free(building->archive);
    free(building->scratch);
    free(building->scratch_name);
    building->archive = building->scratch = building->scratch_name = NULL;
    bytes_clear(&building->piece);
    bytes_clear(&building->result);
    build_output_finish(&building->output);
    build_job_finish(&building->job);
    building->lost = building->mute = building->made = false;
}

static void maybe_end(struct building *building)
{
    if (building->calls || building->beats || building->removes)
        return;
    forget_job(building);
    building->state = BUILDING_IDLE;
    if (building->stopped)
        return;
    version_sweep_soon(building->options.sweep);
    look_in(building, next_pause(building));
}

static void end_job(struct building *building)
{
    building->state = BUILDING_ENDING;
    timers_clear(loop_timers(building->options.loop), &building->timer);
    timers_clear(loop_timers(building->options.loop), &building->beat);
    if (building->beats)
        fetch_cancel(&building->heartbeat.fetch);
    maybe_end(building);
}

static void remove_version(struct work *work)
{
    struct building *building = container_of(work, struct building, removal);
    version_folder_set_aside(site_versions(building->options.site),
                             building->job.deployment);
}

static void on_removed(struct work *work)
{
    struct building *building = container_of(work, struct building, removal);
    building->removes = false;
    end_job(building);
}

/* What was built is no version: nobody will ask for it. */
static void drop_version(struct building *building)
{
    building->removes = true;
    building->removal.run = remove_version;
    building->removal.done = on_removed;
    work_begin(loop_uv(building->options.loop), &building->removal, WORK_VERSIONS);
}

/* ---- heartbeats ---- */

static void tell(struct building *building);

static bool is_at_work(const struct building *building)
{
    return building->state == BUILDING_LOADING || building->state == BUILDING_MAKING;
}

static void give_up(struct building *building, const char *why)
{
    log_info("a build is given up", "deployment", building->job.deployment, "reason", why,
             NULL);
    building->lost = true;
    if (building->state == BUILDING_LOADING && building->calls)
        fetch_cancel(&building->call.fetch);
    if (building->state == BUILDING_MAKING)
        version_build_cancel(building->build);
}

static void on_beaten(struct upward_call *call)
{
    struct building *building = container_of(call, struct building, heartbeat);
    bool refused = call->status == 409 || call->status == 404;
    building->beats = false;
    if (call->status == 200)
        bytes_clear(&building->piece);
    if (refused && is_at_work(building) && !building->lost)
        give_up(building, "it is not in our hands any more");
    if (building->state == BUILDING_ENDING) {
        maybe_end(building);
    } else if (building->state == BUILDING_TELLING) {
        building->mute = call->status != 200;
        tell(building);
    }
}

static void beat(struct building *building)
{
    struct buf body = { 0 }, path = { 0 };
    bool builds =
        building->state != BUILDING_LOADING &&
        (!building->build || version_build_step(building->build) == VERSION_BUILD_BUILDING);
    if (!building->piece)
        building->piece = build_output_take(&building->output);
    buf_add_char(&body, '{');
    members_add_number(&body, "attempt", building->job.attempt);
    members_add_text(&body, "step", builds ? SLICE("BUILDING") : SLICE("INSTALLING"));
    members_add_text(&body, "log", bytes_slice(building->piece));
    buf_add_char(&body, '}');
    buf_print(&path, "/builds/%s/heartbeat", building->job.deployment);
    buf_add_char(&path, '\0');
    struct bytes *content = buf_to_bytes(&body);
    building->heartbeat = (struct upward_call){
        .fetch = { .method = "POST", .body = content }, .path = path.ptr, .done = on_beaten
    };
    building->beats = begin_call(building, &building->heartbeat);
    bytes_unref(content);
    buf_finish(&body);
    buf_finish(&path);
}

static void on_beat(struct timer *timer)
{
    struct building *building = container_of(timer, struct building, beat);
    if (!is_at_work(building))
        return;
    loop_set_timer(building->options.loop, timer, building->beat_kind, BEAT_MS);
    if (!building->beats)
        beat(building);
}

/* ---- the result ---- */

static void on_told(struct upward_call *call)
{
    struct building *building = container_of(call, struct building, call);
    bool again = upward_is_worth_another(call) && !building->stopped &&
                 loop_now_ms(building->options.loop) < building->told_until_ms;
    building->calls = false;
    if (again) {
        look_in(building, next_pause(building));
        return;
    }
    struct bytes *status = call->status == 200 && scan_is_json(call->answer)
                               ? members_text(call->answer, "status")
                               : NULL;
    bool deployed = status && slice_is(bytes_slice(status), "DEPLOYED");
    bytes_unref(status);
    log_info("a build has ended", "deployment", building->job.deployment, "version",
             building->job.version, "deployed", deployed ? "yes" : "no", NULL);
    if (!deployed && call->status && building->made)
        drop_version(building);
    else
        end_job(building);
}

static void complete(struct building *building)
{
    struct buf path = { 0 };
    buf_print(&path, "/builds/%s/complete", building->job.deployment);
    buf_add_char(&path, '\0');
    building->call =
        (struct upward_call){ .fetch = { .method = "POST", .body = building->result },
                              .path = path.ptr,
                              .done = on_told };
    building->calls = begin_call(building, &building->call);
    buf_finish(&path);
    if (!building->calls)
        end_job(building);
}

/* The rest of the log comes first: nobody takes it afterwards. */
static void tell(struct building *building)
{
    if (building->beats)
        return; /* on_beaten goes on */
    if (!building->piece && !building->mute)
        building->piece = build_output_take(&building->output);
    if (building->piece && !building->mute)
        beat(building);
    if (!building->beats)
        complete(building);
}

static void write_error(struct building *building, const char *name, const char *message,
                        struct slice lines)
{
    struct buf body = { 0 };
    buf_add_char(&body, '{');
    members_add_bool(&body, "ok", false);
    members_add_number(&body, "attempt", building->job.attempt);
    members_add_name(&body, "error");
    buf_add_char(&body, '{');
    members_add_text(&body, "name", slice_of(name));
    members_add_text(&body, "message", slice_of(message));
    if (lines.len)
        members_add_text(&body, "stderr", lines);
    buf_add_text(&body, "}}");
    building->result = buf_to_bytes(&body);
    buf_finish(&body);
}

static void write_success(struct building *building, const struct version_outcome *outcome)
{
    struct buf body = { 0 };
    struct bytes *runtime = members_text(outcome->index, "runtimeVersion");
    buf_add_char(&body, '{');
    members_add_bool(&body, "ok", true);
    members_add_number(&body, "attempt", building->job.attempt);
    members_add_text(&body, "index", outcome->index);
    members_add_text(&body, "sha256", slice_of(building->job.archive_hash));
    members_add_text(&body, "architecture", slice_of(host_architecture()));
    members_add_text(&body, "libc", slice_of(host_libc()));
    members_add_number(&body, "bytes", (int64_t)outcome->bytes);
    if (runtime)
        members_add_text(&body, "runtimeVersion", bytes_slice(runtime));
    buf_add_char(&body, '}');
    building->result = buf_to_bytes(&body);
    bytes_unref(runtime);
    buf_finish(&body);
}

static void begin_telling(struct building *building)
{
    building->state = BUILDING_TELLING;
    building->told_until_ms = loop_now_ms(building->options.loop) + TELL_MS;
    timers_clear(loop_timers(building->options.loop), &building->beat);
    tell(building);
}

static void fail_job(struct building *building, const char *message)
{
    write_error(building, "BuildError", message, (struct slice){ 0 });
    begin_telling(building);
}

/* ---- making ---- */

static void on_built(void *owner, const struct version_outcome *outcome)
{
    struct building *building = owner;
    building->build = NULL;
    if (building->lost || building->stopped) {
        /* A version may be there already: the gateway does not have it. */
        building->state = BUILDING_ENDING;
        if (outcome->ok)
            drop_version(building);
        else
            end_job(building);
        return;
    }
    building->made = outcome->ok;
    if (outcome->ok)
        write_success(building, outcome);
    else
        write_error(building, outcome->error, outcome->message, outcome->errors);
    begin_telling(building);
}

static enum err find_program(void *owner, struct slice runtime, char **program,
                             struct failure *why)
{
    const struct building *building = owner;
    return host_program(building->options.programs, runtime, program, why);
}

static void on_child(void *owner, pid_t pid, bool begins)
{
    struct building *building = owner;
    if (begins)
        site_add_child(building->options.site, pid);
    else
        site_drop_child(building->options.site, pid);
}

static void make(struct building *building)
{
    const struct building_options *options = &building->options;
    struct process_user user;
    struct failure why = { 0 };
    struct buf name = { 0 };
    buf_print(&name, "build-%s", building->job.deployment);
    building->scratch_name = mem_text(buf_slice(&name));
    buf_finish(&name);
    if (tenants_find(options->tenants, slice_of(building->job.organization), &user, &why) ||
        site_make_scratch(options->site, building->scratch_name, user, &building->scratch,
                          &why)) {
        fail_job(building, why.text);
        return;
    }
    struct version_build_task task = { .job = &building->job,
                                       .archive = building->archive,
                                       .scratch = building->scratch,
                                       .user = user,
                                       .output = &building->output };
    building->state = BUILDING_MAKING;
    building->build =
        version_build_begin(&building->build_options, &task, on_built, building);
}

/* ---- the archive ---- */

static void on_loaded(struct upward_call *call)
{
    struct building *building = container_of(call, struct building, call);
    building->calls = false;
    close(building->file);
    building->file = -1;
    if (building->lost || building->stopped) {
        end_job(building);
    } else if (call->status == 200) {
        make(building);
    } else if (upward_is_worth_another(call) && call->fetch.error != ERR_STORE_FULL) {
        look_in(building, next_pause(building));
    } else {
        fail_job(building, call->fetch.error == ERR_STORE_FULL
                               ? "the disk is full: the archive cannot be written"
                               : "the archive cannot be read");
    }
}

static void load(struct building *building)
{
    struct buf path = { 0 };
    building->file =
        open(building->archive, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (building->file < 0) {
        fail_job(building, "the archive cannot be written on the builder's machine");
        return;
    }
    buf_print(&path, "/deployments/%s/archive", building->job.deployment);
    buf_add_char(&path, '\0');
    building->call = (struct upward_call){
        .fetch = { .download = { .used = true, .fd = building->file },
                   .answer_max = (uint64_t)building->job.archive_bytes },
        .path = path.ptr,
        .done = on_loaded,
    };
    building->calls = begin_call(building, &building->call);
    buf_finish(&path);
    if (!building->calls)
        fail_job(building, "the archive cannot be asked for");
}

/* ---- asking ---- */

static void take_job(struct building *building, struct slice text)
{
    struct failure why = { 0 };
    struct buf path = { 0 };
    enum err refused = build_job_read(text, &building->job, &why);
    build_output_init(&building->output);
    building->heartbeat = (struct upward_call){ 0 };
    if (refused) {
        log_error("a build that was handed out cannot be read", "reason", why.text, NULL);
        if (building->job.deployment[0])
            fail_job(building, why.text);
        else
            end_job(building);
        return;
    }
    log_info("building", "deployment", building->job.deployment, "version",
             building->job.version, NULL);
    buf_print(&path, "%s/%s.tar.gz.new", site_versions(building->options.site),
              building->job.deployment);
    building->archive = mem_text(buf_slice(&path));
    buf_finish(&path);
    building->state = BUILDING_LOADING;
    loop_set_timer(building->options.loop, &building->beat, building->beat_kind, BEAT_MS);
    load(building);
}

static void on_dequeued(struct upward_call *call)
{
    struct building *building = container_of(call, struct building, call);
    struct slice answer = call->answer, job = { 0 };
    building->calls = false;
    building->state = BUILDING_IDLE;
    bool right =
        call->status == 200 && scan_is_json(answer) && scan_type(answer) == SCAN_ARRAY;
    bool was_held = loop_now_ms(building->options.loop) - building->asked_ms >= EMPTY_MS;
    if (right) {
        struct scan_members all = scan_members(answer);
        building->pause_ms = PAUSE_MS;
        if (scan_next_element(&all, &job) && scan_type(job) == SCAN_OBJECT) {
            take_job(building, job);
            return;
        }
    }
    if (!building->stopped)
        look_in(building, !right ? next_pause(building) : was_held ? 0 : EMPTY_MS);
}

static void ask(struct building *building)
{
    struct buf body = { 0 };
    buf_add_char(&body, '{');
    members_add_text(&body, "instance", slice_of(building->options.instance));
    members_add_text(&body, "architecture", slice_of(host_architecture()));
    members_add_text(&body, "libc", slice_of(host_libc()));
    buf_add_char(&body, '}');
    struct bytes *content = buf_to_bytes(&body);
    buf_finish(&body);
    building->asked_ms = loop_now_ms(building->options.loop);
    building->call = (struct upward_call){ .fetch = { .method = "POST",
                                                      .body = content,
                                                      .answer_max = JOB_MAX,
                                                      .first_byte_ms = HOLD_MS,
                                                      .total_ms = HOLD_MS },
                                           .path = "/builds/dequeue",
                                           .done = on_dequeued };
    building->state = BUILDING_ASKING;
    building->calls = begin_call(building, &building->call);
    bytes_unref(content);
    if (!building->calls) {
        building->state = BUILDING_IDLE;
        look_in(building, next_pause(building));
    }
}

static void on_time(struct timer *timer)
{
    struct building *building = container_of(timer, struct building, timer);
    switch (building->state) {
    case BUILDING_IDLE: ask(building); break;
    case BUILDING_LOADING: load(building); break;
    case BUILDING_TELLING: complete(building); break;
    default: break;
    }
}

/* ---- all of it ---- */

struct building *building_create(const struct building_options *options)
{
    if (!options->settings.on)
        return NULL;
    struct building *building = mem_new(struct building);
    building->options = *options;
    building->file = -1;
    building->pause_ms = PAUSE_MS;
    building->time_kind = timers_kind(loop_timers(options->loop), on_time);
    building->beat_kind = timers_kind(loop_timers(options->loop), on_beat);
    building->build_options = (struct version_build_options){
        .loop = options->loop,
        .processes = options->processes,
        .versions = site_versions(options->site),
        .architecture = host_architecture(),
        .libc = host_libc(),
        .image = options->settings.image,
        .no_scripts = options->settings.no_scripts,
        .passed = options->settings.passed,
        .limits = &building->options.settings.limits,
        .outer = options->outer,
        .cgroup = options->cgroup,
        .memory = host_memory() / 4 * 3,
        .apart = tenants_are_apart(options->tenants),
        .find_program = find_program,
        .on_child = on_child,
        .owner = building,
    };
    look_in(building, 0);
    return building;
}

void building_stop(struct building *building)
{
    if (!building || building->stopped)
        return;
    building->stopped = true;
    bool waits = building->timer.place != 0;
    timers_clear(loop_timers(building->options.loop), &building->timer);
    if (building->state == BUILDING_ASKING)
        fetch_cancel(&building->call.fetch);
    else if (is_at_work(building))
        give_up(building, "the supervise role is ending");
    if (waits && building->state != BUILDING_IDLE)
        end_job(building); /* it waited to try again */
}

bool building_is_idle(const struct building *building)
{
    return !building || building->state == BUILDING_IDLE;
}

void building_destroy(struct building *building)
{
    free(building);
}
