/* building.c - dequeues one deployment at a time, sends heartbeats, and reports the result.
 *
 *   ASKING    builds/dequeue is held by the gateway
 *   WORKING   the job (version_job.h) builds the version
 *   TELLING   the rest of the log, then complete, until the gateway responds
 *   ENDING    a heartbeat is in flight, or an unwanted version is set aside
 *
 * At most two calls are in flight: that of the state or of the job, and a heartbeat. */
#include "supervisor/versions/building.h"

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/versions/host.h"

enum {
    HOLD_MS = 5 * 60 * 1000, /* longer than any gateway holds a dequeue */
    PAUSE_MS = 250,          /* after the first failure; doubles with each further one */
    PAUSE_MAX_MS = 5 * 1000,
    EMPTY_MS = 500, /* pause after an empty response that was not held this long */
    BEAT_MS = 2 * 1000,
    REPORT_MS = 5 * 60 * 1000, /* retries of a result while the gateway is unreachable */
    JOB_MAX = 4 << 20,         /* bytes */
};

enum building_state {
    BUILDING_IDLE,
    BUILDING_ASKING,
    BUILDING_WORKING,
    BUILDING_REPORTING,
    BUILDING_ENDING
};

struct building {
    struct loop *loop;
    struct gateway_client *gateway_client;
    const char *instance;
    enum building_state state;
    bool stopped;
    struct timer timer, beat;
    uint32_t time_kind, beat_kind;
    int64_t pause_ms, asked_ms, report_until_ms;

    struct gateway_call call; /* of the state */
    bool calls;
    struct gateway_call heartbeat;
    bool beats;
    struct bytes *piece; /* of the log, not yet acknowledged by the gateway */

    struct version_job job; /* canceled: the deployment is no longer ours */
    bool log_stopped;       /* the rest of the log is unwanted or cannot be sent */
    struct bytes *result;   /* the body of complete */
    bool made;              /* the version is complete, as a folder */
};

static void look_in(struct building *building, int64_t ms)
{
    loop_set_timer(building->loop, &building->timer, building->time_kind, ms);
}

static int64_t next_pause(struct building *building)
{
    int64_t pause = building->pause_ms;
    building->pause_ms = 2 * pause < PAUSE_MAX_MS ? 2 * pause : PAUSE_MAX_MS;
    return pause;
}

/* Returns false if the call was rejected here; then done is never called. */
static bool begin_call(struct building *building, struct gateway_call *call)
{
    struct failure why = { 0 };
    if (gateway_call_begin(building->gateway_client, call, &why) == OK)
        return true;
    log_warn("cannot send a request of the builder", "reason", why.text, NULL);
    return false;
}

/* ---- ending a job ---- */

static void forget_job(struct building *building)
{
    timers_clear(loop_timers(building->loop), &building->beat);
    bytes_clear(&building->piece);
    bytes_clear(&building->result);
    version_job_finish(&building->job);
    building->log_stopped = building->made = false;
}

static void maybe_end(struct building *building)
{
    if (building->calls || building->beats || building->job.state == VERSION_JOB_DROPPING)
        return;
    forget_job(building);
    building->state = BUILDING_IDLE;
    if (!building->stopped)
        look_in(building, next_pause(building));
}

static void end_job(struct building *building)
{
    building->state = BUILDING_ENDING;
    timers_clear(loop_timers(building->loop), &building->timer);
    timers_clear(loop_timers(building->loop), &building->beat);
    if (building->beats)
        fetch_cancel(&building->heartbeat.fetch);
    maybe_end(building);
}

/* ---- heartbeats ---- */

static void report(struct building *building);

static void give_up(struct building *building, const char *why)
{
    log_info("build aborted", "deployment", building->job.order.deployment, "reason", why,
             NULL);
    version_job_cancel(&building->job);
}

static bool may_report_later(const struct building *building,
                             const struct gateway_call *call)
{
    return gateway_call_may_retry(call) && !building->stopped &&
           loop_now_ms(building->loop) < building->report_until_ms;
}

static void on_beaten(struct gateway_call *call)
{
    struct building *building = container_of(call, struct building, heartbeat);
    bool refused = call->status == 409 || call->status == 404;
    building->beats = false;
    if (call->status == 200)
        bytes_clear(&building->piece);
    if (refused && building->state == BUILDING_WORKING && !building->job.canceled)
        give_up(building, "it is no longer assigned to this builder");
    if (building->state == BUILDING_ENDING) {
        maybe_end(building);
    } else if (building->state == BUILDING_REPORTING && may_report_later(building, call)) {
        look_in(building, next_pause(building));
    } else if (building->state == BUILDING_REPORTING) {
        building->log_stopped = call->status != 200;
        report(building);
    }
}

static void beat(struct building *building)
{
    struct buf body = { 0 }, path = { 0 };
    bool builds =
        building->state == BUILDING_REPORTING || version_job_is_building(&building->job);
    if (!building->piece)
        building->piece = build_output_take(&building->job.output);
    buf_add_char(&body, '{');
    members_add_number(&body, "attempt", building->job.order.attempt);
    members_add_text(&body, "step", builds ? SLICE("BUILDING") : SLICE("INSTALLING"));
    members_add_text(&body, "log", bytes_slice(building->piece));
    buf_add_char(&body, '}');
    buf_print(&path, "/builds/%s/heartbeat", building->job.order.deployment);
    buf_add_char(&path, '\0');
    struct bytes *content = buf_to_bytes(&body);
    building->heartbeat = (struct gateway_call){
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
    if (building->state != BUILDING_WORKING)
        return;
    loop_set_timer(building->loop, timer, building->beat_kind, BEAT_MS);
    if (!building->beats)
        beat(building);
}

/* ---- the result ---- */

static void on_reported(struct gateway_call *call)
{
    struct building *building = container_of(call, struct building, call);
    building->calls = false;
    if (may_report_later(building, call)) {
        look_in(building, next_pause(building));
        return;
    }
    struct bytes *status = call->status == 200 && scan_is_json(call->answer)
                               ? members_text(call->answer, "status")
                               : NULL;
    bool deployed = status && slice_is(bytes_slice(status), "DEPLOYED");
    bytes_unref(status);
    log_info("build ended", "deployment", building->job.order.deployment, "version",
             building->job.order.version, "deployed", deployed ? "yes" : "no", NULL);
    if (!deployed && call->status && building->made)
        version_job_drop(&building->job);
    else
        end_job(building);
}

static void complete(struct building *building)
{
    struct buf path = { 0 };
    buf_print(&path, "/builds/%s/complete", building->job.order.deployment);
    buf_add_char(&path, '\0');
    building->call =
        (struct gateway_call){ .fetch = { .method = "POST", .body = building->result },
                               .path = path.ptr,
                               .done = on_reported };
    building->calls = begin_call(building, &building->call);
    buf_finish(&path);
    if (!building->calls)
        end_job(building);
}

/* Sends the rest of the log, then complete.
 *
 * The gateway does not accept log text after complete. */
static void report(struct building *building)
{
    if (building->beats)
        return; /* on_beaten continues */
    if (!building->piece && !building->log_stopped)
        building->piece = build_output_take(&building->job.output);
    if (building->piece && !building->log_stopped)
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
    members_add_number(&body, "attempt", building->job.order.attempt);
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
    members_add_number(&body, "attempt", building->job.order.attempt);
    members_add_text(&body, "index", outcome->index);
    members_add_text(&body, "sha256", slice_of(building->job.order.archive_hash));
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

static void begin_report(struct building *building)
{
    building->state = BUILDING_REPORTING;
    building->report_until_ms = loop_now_ms(building->loop) + REPORT_MS;
    timers_clear(loop_timers(building->loop), &building->beat);
    report(building);
}

/* ---- the job ---- */

static void on_made(void *owner, const struct version_outcome *outcome)
{
    struct building *building = owner;
    building->made = outcome->ok;
    if (building->job.canceled) {
        /* A complete version is dropped, because the gateway does not have it. */
        building->state = BUILDING_ENDING;
        if (outcome->ok)
            version_job_drop(&building->job);
        else
            end_job(building);
        return;
    }
    if (outcome->ok)
        write_success(building, outcome);
    else
        write_error(building, outcome->error, outcome->message, outcome->errors);
    begin_report(building);
}

static void on_dropped(void *owner)
{
    end_job(owner);
}

static int64_t pause_job(void *owner)
{
    return next_pause(owner);
}

static const struct version_source built_source = {
    .scratch = "build-",
    .unwritable = "cannot write the archive on the builder's machine",
    .not_sent = "cannot request the archive",
    .full = "cannot write the archive: the disk is full",
    .away = "cannot read the archive",
    .gone = "cannot read the archive",
    .refused = "cannot read the archive",
    .pause = pause_job,
    .done = on_made,
    .dropped = on_dropped,
};

/* ---- dequeuing ---- */

static void take_job(struct building *building, struct slice text)
{
    struct failure why = { 0 };
    struct build_job *order = &building->job.order;
    enum err refused = build_job_read(text, order, &why);
    building->heartbeat = (struct gateway_call){ 0 };
    if (refused) {
        log_error("cannot read a build job", "reason", why.text, NULL);
        if (order->deployment[0]) {
            write_error(building, "BuildError", why.text, (struct slice){ 0 });
            begin_report(building);
        } else {
            end_job(building);
        }
        return;
    }
    log_info("building", "deployment", order->deployment, "version", order->version, NULL);
    building->state = BUILDING_WORKING;
    loop_set_timer(building->loop, &building->beat, building->beat_kind, BEAT_MS);
    version_job_begin(&building->job);
    if (building->stopped)
        version_job_cancel(&building->job);
}

static void on_dequeued(struct gateway_call *call)
{
    struct building *building = container_of(call, struct building, call);
    struct slice answer = call->answer, job = { 0 };
    building->calls = false;
    building->state = BUILDING_IDLE;
    bool right =
        call->status == 200 && scan_is_json(answer) && scan_type(answer) == SCAN_ARRAY;
    bool was_held = loop_now_ms(building->loop) - building->asked_ms >= EMPTY_MS;
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
    members_add_text(&body, "instance", slice_of(building->instance));
    members_add_text(&body, "architecture", slice_of(host_architecture()));
    members_add_text(&body, "libc", slice_of(host_libc()));
    buf_add_char(&body, '}');
    struct bytes *content = buf_to_bytes(&body);
    buf_finish(&body);
    building->asked_ms = loop_now_ms(building->loop);
    building->call = (struct gateway_call){ .fetch = { .method = "POST",
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
    if (building->state == BUILDING_IDLE)
        ask(building);
    else if (building->state == BUILDING_REPORTING)
        report(building);
}

/* ---- interface ---- */

struct building *building_create(const struct version_shared *shared, const char *instance)
{
    if (!shared->settings.builds)
        return NULL;
    struct building *building = mem_new(struct building);
    *building = (struct building){ .loop = shared->loop,
                                   .gateway_client = shared->gateway_client,
                                   .instance = instance,
                                   .pause_ms = PAUSE_MS };
    building->time_kind = timers_kind(loop_timers(building->loop), on_time);
    building->beat_kind = timers_kind(loop_timers(building->loop), on_beat);
    version_job_init(&building->job, shared, &built_source, building);
    look_in(building, 0);
    return building;
}

void building_stop(struct building *building)
{
    if (!building || building->stopped)
        return;
    building->stopped = true;
    bool waits = building->timer.place != 0;
    timers_clear(loop_timers(building->loop), &building->timer);
    if (building->state == BUILDING_ASKING)
        fetch_cancel(&building->call.fetch);
    else if (building->state == BUILDING_WORKING)
        give_up(building, "the supervise role is shutting down");
    if (waits && building->state != BUILDING_IDLE)
        end_job(building); /* it was waiting to retry */
}

bool building_is_idle(const struct building *building)
{
    return !building || building->state == BUILDING_IDLE;
}

void building_destroy(struct building *building)
{
    free(building);
}
