/* runner.c - starts the process of a run, follows it, and reports its end.
 *
 * A report is retried with growing pauses while the gateway is unreachable. After TRIES_MAX
 * attempts it is abandoned: the gateway notices by itself, because heartbeats are
 * missing. */
#include "supervisor/runners/runner.h"

#include <openssl/crypto.h>
#include <signal.h>

#include "base/json/members.h"
#include "base/json/scan.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "os/process/cgroup.h"
#include "os/process/tail.h"
#include "supervisor/runners/runner_environment.h"
#include "supervisor/versions/version_folder.h"

enum {
    OUTPUT_MAX = 64 * 1024,
    OPEN_FILES = 16384,
    PROCESSES = 8192, /* per user, which may have many runners */
    /* When memory runs out: after builds, before the supervise role and the gateway. */
    OOM_SCORE = 500,
    CONTROLLER_BYTES = 128 << 20,
    MIB = 1 << 20,
    PAUSE_MS = 500,
    PAUSE_MAX_MS = 10 * 1000,
    TRIES_MAX = 20, /* about three minutes */
    DRAIN_TRIES_MAX = 4,
    CPU_WEIGHT = 100, /* per core */
    START_MS =
        /* Longer than a lease: by then the gateway has given the run to another runner. */
    90 * 1000,
    LEAVE_MS = 30 * 1000, /* from the last response to the exit of the process */
    ID_RANDOM = 8,
};

static void report(struct runner *runner);

static struct slice runner_key(const void *value)
{
    return slice_of(((const struct runner *)value)->id);
}

void runner_shared_init(struct runner_shared *shared)
{
    table_init(&shared->runners, runner_key);
}

struct runner *runner_find(const struct runner_shared *shared, struct slice id)
{
    return table_find(&shared->runners, id);
}

bool runner_token_is(const struct runner *runner, struct slice token)
{
    return token.len == RUNNER_TOKEN_LEN &&
           CRYPTO_memcmp(token.ptr, runner->token, RUNNER_TOKEN_LEN) == 0;
}

/* ---- ending ---- */

static void destroy(struct runner *runner)
{
    struct runner_shared *shared = runner->shared;
    struct failure why;
    table_remove(&shared->runners, slice_of(runner->id));
    shared->on_changed(shared->owner);
    shared->on_gone(runner);
    timers_clear(loop_timers(shared->loop), &runner->timer);
    timers_clear(loop_timers(shared->loop), &runner->handed);
    if (runner->cgroup && cgroup_remove(runner->cgroup, &why))
        log_warn("cannot remove a control group", "reason", why.text, NULL);
    if (runner->has_scratch)
        site_remove_scratch(shared->site, runner->id);
    if (runner->output)
        tail_finish(runner->output);
    free(runner->output);
    free(runner->cgroup);
    free(runner->reason);
    run_message_finish(&runner->message);
    explicit_bzero(runner->token, sizeof(runner->token));
    free(runner);
}

static void leave_place(struct runner *runner)
{
    if (runner->place.state == PLACE_NONE)
        return;
    place_leave(runner->shared->places, &runner->place);
    runner->shared->on_done(runner);
}

/* ---- reports ---- */

static void on_time(struct timer *timer)
{
    report(container_of(timer, struct runner, timer));
}

static void try_again(struct runner *runner)
{
    struct runner_shared *shared = runner->shared;
    unsigned most = shared->draining ? DRAIN_TRIES_MAX : TRIES_MAX;
    int64_t pause = (int64_t)PAUSE_MS << (runner->tries < 8 ? runner->tries : 8);
    if (++runner->tries >= most) {
        log_warn("cannot report the end of a run", "run", runner->message.run, "reason",
                 runner->call.status ? "rejected by the gateway"
                                     : "the gateway is unreachable",
                 NULL);
        shared->unreported |= shared->draining;
        destroy(runner);
        return;
    }
    loop_set_timer(shared->loop, &runner->timer,
                   timers_kind(loop_timers(shared->loop), on_time),
                   pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
}

static void ask(struct runner *runner, const char *method, const char *snapshot,
                const char *what, struct buf *body, gateway_call_done_fn *done)
{
    struct failure why = { 0 };
    struct buf path = { 0 };
    struct bytes *content = body ? buf_to_bytes(body) : NULL;
    buf_print(&path, "/runs/%s/snapshots/%s%s", runner->message.run, snapshot, what);
    buf_add_char(&path, '\0');
    runner->call = (struct gateway_call){ .fetch = { .method = method, .body = content },
                                          .path = path.ptr,
                                          .runner = slice_of(runner->id),
                                          .done = done };
    enum err refused =
        gateway_call_begin(runner->shared->gateway_client, &runner->call, &why);
    bytes_unref(content);
    buf_finish(&path);
    if (refused)
        try_again(runner);
}

static void on_reported(struct gateway_call *call)
{
    struct runner *runner = container_of(call, struct runner, call);
    if (gateway_call_may_retry(call)) {
        try_again(runner);
        return;
    }
    if (call->status != 200)
        log_warn("the gateway rejected the end of a run", "run", runner->message.run,
                 "status", log_number(call->status), NULL);
    destroy(runner);
}

static const char *reason_of(const struct runner *runner)
{
    return runner->reason ? runner->reason : runner->end.why;
}

static void release(struct runner *runner)
{
    struct buf body = { 0 };
    runner_end_release(&body, reason_of(runner));
    ask(runner, "POST", runner->message.snapshot, "/release", &body, on_reported);
    buf_finish(&body);
}

static void complete(struct runner *runner, const struct runner_newest *newest)
{
    struct buf body = { 0 };
    bool canceled = newest->verdict == RUNNER_VERDICT_CANCELED;
    const char *code =
        canceled ? "TASK_RUN_CANCELLED" : runner_end_code(&runner->facts, &runner->end);
    struct slice trace = runner->output ? tail_text(runner->output) : (struct slice){ 0 };
    runner_end_completion(&body, runner->message.run, code, reason_of(runner), trace);
    ask(runner, "POST", newest->snapshot, "/attempts/complete", &body, on_reported);
    buf_finish(&body);
}

static void on_looked(struct gateway_call *call)
{
    struct runner *runner = container_of(call, struct runner, call);
    if (gateway_call_may_retry(call)) {
        try_again(runner);
        return;
    }
    struct runner_newest newest = runner_end_decide(&runner->facts, call->answer);
    if (call->status != 200 || newest.verdict == RUNNER_VERDICT_NOTHING)
        destroy(runner);
    else
        complete(runner, &newest);
}

/* Requires that the process has exited and every call it made has its response. */
static void report(struct runner *runner)
{
    runner->reports = true;
    switch (runner->has_run ? runner_end_of(&runner->facts) : RUNNER_END_NOTHING) {
    case RUNNER_END_NOTHING: destroy(runner); break;
    case RUNNER_END_RELEASE: release(runner); break;
    case RUNNER_END_LOOK: ask(runner, "GET", "latest", "", NULL, on_looked); break;
    }
}

static void maybe_report(struct runner *runner)
{
    if (!runner->runs && !runner->awaits_version && !runner->calls && !runner->reports)
        report(runner);
}

void runner_begin_call(struct runner *runner)
{
    runner->calls++;
}

void runner_end_call(struct runner *runner)
{
    runner->calls--;
    maybe_report(runner);
}

/* ---- the process ---- */

static void on_output(struct process *process, enum process_pipe pipe, struct slice text)
{
    struct runner *runner = container_of(process, struct runner, process);
    (void)pipe;
    tail_add(runner->output, text);
}

static void on_ended(struct process *process, const struct process_end *end)
{
    struct runner *runner = container_of(process, struct runner, process);
    runner->end = *end;
    runner->runs = false;
    site_drop_child(runner->shared->site, runner->pid);
    enum runner_cause cause = runner_end_cause(&runner->facts, runner->has_run, end);
    runner->shared->figures.exits[cause]++;
    runner->shared->figures.runners--;
    if (cause == RUNNER_CAUSE_DONE)
        log_debug("runner ended", "runner", runner->id, "how", end->why, NULL);
    else
        log_info("runner ended before its run", "runner", runner->id, "how", end->why,
                 NULL);
    leave_place(runner);
    maybe_report(runner);
}

static const struct process_events events = { on_output, on_ended };

/* Kills a controller that neither starts nor exits: it would keep its place forever. */
static void on_late(struct timer *timer)
{
    struct runner *runner = container_of(timer, struct runner, handed);
    if (!runner->runs || runner->idle || runner->facts.open)
        return;
    log_warn("controller made no progress; killed", "runner", runner->id, "run",
             runner->message.run, NULL);
    process_kill(&runner->process, SIGKILL);
}

static void set_report_deadline(struct runner *runner, int64_t ms)
{
    struct loop *loop = runner->shared->loop;
    loop_set_timer(loop, &runner->handed, timers_kind(loop_timers(loop), on_late), ms);
}

/* Creates the control group.
 *
 * Isolated organizations execute nothing without one; others do, with a warning. */
static enum err make_group(struct runner *runner, struct failure *why)
{
    const struct runner_shared *shared = runner->shared;
    const struct run_message *message = &runner->message;
    char path[CGROUP_PATH_MAX];
    double weight = message->cores * CPU_WEIGHT;
    struct cgroup_limits limits = {
        .memory = (uint64_t)(message->gigabytes * 1024) * MIB + CONTROLLER_BYTES,
        .cpu_weight = weight < 1       ? 1
                      : weight > 10000 ? 10000
                                       : (unsigned)weight,
        .cpu_thousandth = shared->strict ? (unsigned)(message->cores * 1000) : 0,
    };
    if (!shared->cgroup)
        return OK;
    enum err refused = cgroup_make(shared->cgroup, runner->id, &limits, path, why);
    if (!refused)
        runner->cgroup = mem_text(slice_of(path));
    else if (!tenants_are_apart(shared->tenants)) {
        log_warn("cannot put a runner into a control group", "reason", why->text, NULL);
        refused = OK;
    }
    return refused;
}

static enum err spawn(struct runner *runner, struct failure *why)
{
    struct runner_shared *shared = runner->shared;
    const struct ready_version *version = runner->request.version;
    bool apart = tenants_are_apart(shared->tenants);
    struct process_user user;
    struct child_environment environment = { 0 };
    char *scratch;
    enum err refused =
        tenants_find(shared->tenants, slice_of(runner->message.organization), &user, why);
    if (!refused && user.uid)
        refused = version_folder_give(version->directory, user, why);
    if (!refused)
        refused = make_group(runner, why);
    if (!refused)
        refused = site_make_scratch(shared->site, runner->id, user, &scratch, why);
    if (refused)
        return refused;
    runner->has_scratch = true;
    struct runner_home home = { .message = &runner->message,
                                .token = runner->token,
                                .runner = runner->id,
                                .instance = shared->instance,
                                .content_hash = version->content_hash,
                                .directory = scratch,
                                .gateway = shared->gateway,
                                .port = shared->port,
                                .now_ms = loop_wall_ms(shared->loop),
                                .warm = shared->warm,
                                .outer = shared->outer };
    runner_environment_fill(&environment, &home);
    const char *arguments[] = { version->program, version->entry, NULL };
    struct process_options options = {
        .program = version->program,
        .arguments = arguments,
        .environment = child_environment_list(&environment),
        .directory = version->directory,
        .user = user,
        .limits = { .open_files = OPEN_FILES, .processes = user.uid ? PROCESSES : 0 },
        .namespaces = apart ? PROCESS_NAMESPACES_ON : PROCESS_NAMESPACES_AUTO,
        .temporary = apart ? scratch : NULL,
        .cgroup = runner->cgroup,
        .oom_score_adj = OOM_SCORE,
    };
    refused = process_spawn(shared->processes, &runner->process, &options, &events, why);
    child_environment_finish(&environment);
    free(scratch);
    return refused;
}

static void give_back(struct runner *runner, const char *reason)
{
    log_warn("run given back", "run", runner->message.run, "version",
             runner->message.version, "reason", reason, NULL);
    runner->reason = mem_text(slice_of(reason));
    leave_place(runner);
    maybe_report(runner);
}

static void on_version(struct version_request *request, enum err status)
{
    struct runner *runner = container_of(request, struct runner, request);
    struct failure why = request->why;
    runner->awaits_version = false;
    if (!status && runner->shared->draining)
        status = explain(&why, ERR_DRAINING, "the supervise role is shutting down");
    if (!status)
        status = spawn(runner, &why);
    if (status) {
        give_back(runner, why.text);
        return;
    }
    runner->runs = true;
    runner->pid = process_pid(&runner->process);
    runner->shared->figures.cold_starts++;
    runner->shared->figures.runners++;
    site_add_child(runner->shared->site, runner->pid);
    set_report_deadline(runner, START_MS);
    log_debug("runner started", "runner", runner->id, "version", runner->message.version,
              NULL);
}

/* ---- beginning ---- */

static void name_runner(struct runner *runner)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char all[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char drawn[ID_RANDOM + 1] = "";
    text_random(drawn, ID_RANDOM, letters);
    text_random(runner->token, RUNNER_TOKEN_LEN, all);
    snprintf(runner->id, sizeof(runner->id), "runner-%s-attempt-%d-%s", runner->message.run,
             (int)runner->message.attempt, drawn);
}

static struct runner *create(struct runner_shared *shared, struct run_message *message)
{
    struct runner *runner = mem_new(struct runner);
    runner->shared = shared;
    runner->message = *message;
    *message = (struct run_message){ 0 };
    runner->has_run = true;
    name_runner(runner);
    table_insert(&shared->runners, runner);
    shared->on_changed(shared->owner);
    return runner;
}

struct runner *runner_begin(struct runner_shared *shared, struct run_message *message,
                            const struct machine_place *place)
{
    struct runner *runner = create(shared, message);
    runner->place = *place;
    runner->output = mem_new(struct tail);
    tail_init(runner->output, OUTPUT_MAX);
    runner->awaits_version = true;
    runner->request.done = on_version;
    shared->on_run(runner);
    version_store_provide(shared->versions, &runner->message, &runner->request);
    return runner;
}

void runner_refuse(struct runner_shared *shared, struct run_message *message,
                   const char *reason)
{
    struct runner *runner = create(shared, message);
    shared->on_run(runner);
    give_back(runner, reason);
}

void runner_report_left(struct runner_shared *shared, struct run_message *message)
{
    int64_t attempt = message->attempt;
    struct runner *runner = create(shared, message);
    runner->facts = (struct runner_facts){ .started = attempt > 0,
                                           .open = attempt > 0,
                                           .attempt = attempt };
    runner->end = (struct process_end){ .cause = PROCESS_SIGNALED, .status = SIGKILL };
    runner->reason = mem_text(SLICE("the supervise role that had the run ended"));
    shared->on_run(runner);
    report(runner);
}

/* ---- responses that the controller gets ---- */

void runner_note_started(struct runner *runner, struct slice answer)
{
    int64_t attempt = 0;
    struct slice run = scan_is_json(answer) && scan_type(answer) == SCAN_OBJECT
                           ? scan_member(answer, "run")
                           : (struct slice){ 0 };
    if (scan_type(run) == SCAN_OBJECT && members_number(run, "attemptNumber", &attempt))
        runner->facts.attempt = attempt;
    runner->facts.started = runner->facts.open = true;
    runner->shared->on_changed(runner->shared->owner);
    timers_clear(loop_timers(runner->shared->loop), &runner->handed);
}

void runner_note_completed(struct runner *runner, struct slice answer)
{
    if (!runner_end_is_final(answer))
        return;
    runner->facts.open = false;
    runner->shared->on_changed(runner->shared->owner);
    set_report_deadline(runner, LEAVE_MS);
}

/* Returns the last of {"snapshots":[…]}; absent if there is none. */
static struct slice newest_of(struct slice answer)
{
    struct slice newest = { 0 }, one;
    if (!scan_is_json(answer) || scan_type(answer) != SCAN_OBJECT)
        return newest;
    struct slice all = scan_member(answer, "snapshots");
    if (scan_type(all) != SCAN_ARRAY)
        return newest;
    for (struct scan_members each = scan_members(all); scan_next_element(&each, &one);)
        newest = one;
    return newest;
}

void runner_note_snapshots(struct runner *runner, struct slice answer)
{
    struct slice newest = newest_of(answer);
    struct slice snapshot = scan_type(newest) == SCAN_OBJECT
                                ? scan_member(newest, "snapshot")
                                : (struct slice){ 0 };
    struct bytes *status = scan_type(snapshot) == SCAN_OBJECT
                               ? members_text(snapshot, "executionStatus")
                               : NULL;
    if (!status)
        return;
    if (slice_is(bytes_slice(status), "EXECUTING_WITH_WAITPOINTS")) {
        place_wait(runner->shared->places, &runner->place);
    } else {
        place_resume(runner->shared->places, &runner->place);
    }
    runner->shared->on_room(runner->shared->owner);
    bytes_unref(status);
}

/* ---- ending it from outside ---- */

void runner_ask_to_end(struct runner *runner)
{
    if (runner->runs)
        process_signal(&runner->process, SIGTERM);
}

void runner_kill(struct runner *runner)
{
    if (!runner->runs)
        return;
    runner->facts.killed = true;
    process_kill(&runner->process, SIGKILL);
}

/* ---- another run for a kept controller ---- */

bool runner_rest(struct runner *runner)
{
    if (!runner->runs ||
        (runner->has_run && (!runner->facts.started || runner->facts.open)))
        return false;
    timers_clear(loop_timers(runner->shared->loop), &runner->handed);
    runner->has_run = false;
    runner->idle = true;
    leave_place(runner);
    return true;
}

void runner_rebind(struct runner *runner, struct run_message *message,
                   const struct machine_place *place)
{
    run_message_finish(&runner->message);
    runner->message = *message;
    *message = (struct run_message){ 0 };
    runner->place = *place;
    runner->facts = (struct runner_facts){ 0 };
    runner->has_run = true;
    runner->idle = false;
    runner->shared->figures.warm_starts++;
    runner->shared->on_changed(runner->shared->owner);
    runner->shared->on_run(runner);
}

void runner_take_back(struct runner *runner, struct run_message *message,
                      struct machine_place *place)
{
    *message = runner->message;
    message->text = bytes_ref(runner->message.text);
    *place = runner->place;
    runner->place.state = PLACE_NONE;
    runner->has_run = false;
    runner_kill(runner);
}
