/* waiting_text.c - why a run waits, as a sentence for the user. */
#include "core/fleet/dev_sessions.h"
#include "core/fleet/waiting.h"
#include "core/model/wait_list.h"

static int64_t wall_of(const struct tracked *run)
{
    return loop_wall_ms(run->env->loop);
}

static void add_time(struct buf *out, int64_t unix_ms)
{
    char text[TIME_TEXT_LEN + 1];
    text_from_time(unix_ms, text);
    buf_add_text(out, text);
}

const char *waiting_name(enum waiting_reason reason)
{
    static const char *const names[WAITING_REASONS] = {
        [WAITING_FOR_NOTHING] = "",
        [WAITING_NO_WORKER] = "no_worker",
        [WAITING_VERSION] = "version",
        [WAITING_STORAGE_QUOTA] = "storage_quota",
        [WAITING_QUEUE_PAUSED] = "queue_paused",
        [WAITING_QUEUE_LIMIT] = "queue_limit",
        [WAITING_CONCURRENCY_KEY] = "concurrency_key",
        [WAITING_QUEUE_TOTAL] = "queue_total",
        [WAITING_LIMIT_PAUSED] = "limit_paused",
        [WAITING_LIMIT] = "limit",
        [WAITING_GATE_PAUSED] = "gate_paused",
        [WAITING_GATE] = "gate",
        [WAITING_ENVIRONMENT_LIMIT] = "environment_limit",
        [WAITING_RATE] = "rate",
        [WAITING_ROOM] = "room",
        [WAITING_DELAY] = "delay",
        [WAITING_RETRY] = "retry",
        [WAITING_WAITPOINT] = "waitpoint",
    };
    return names[reason];
}

/* In dev, no session has the task right now; one may return after a start. */
static void explain_no_worker(const struct waiting *waiting, struct buf *out)
{
    int64_t ago = SESSION_LOST_MS - waiting->returns_ms;
    if (waiting->returns_ms)
        buf_print(out,
                  "The gateway started %lld s ago. Workers with this task reconnect within "
                  "%lld s at the latest",
                  (long long)(ago / 1000), (long long)((waiting->returns_ms + 999) / 1000));
    else
        buf_add_text(out, "No connected worker has this task; start one with trigger dev");
}

static void explain_worker(const struct tracked *run, const struct waiting *waiting,
                           struct buf *out)
{
    if (waiting->is_served)
        buf_add_text(
            out,
            "All workers are busy; it starts when one is free, or when you start another");
    else if (waiting->gone_ms)
        buf_print(out,
                  "The worker with this task disconnected %lld s ago; start trigger dev "
                  "again, unless it reconnects by itself",
                  (long long)(waiting->gone_ms / 1000));
    else if (run->env->is_dev)
        explain_no_worker(waiting, out);
    else if (waiting->is_plain && run->env->fleet->seated)
        buf_add_text(out, "Its version was registered by a worker, not deployed, and no "
                          "such worker requests runs; start it, or deploy the version");
    else
        buf_add_text(out, "No worker requests runs of this environment; start one, or look "
                          "for the reason in its log");
}

static void explain_room(const struct tracked *run, struct buf *out)
{
    enum machine machine = run->run.machine;
    buf_print(out,
              "The supervise roles have no free capacity for a %s (%g cores, %g GB); it "
              "starts when other runs end, or with more capacity (supervise-cpu, "
              "supervise-memory, supervise-waiting, another machine)",
              machine_name(machine), machine_cpu(machine), machine_memory_gb(machine));
}

/* Nothing but its ttl or the right deployment releases the run, so the text names the
 * id. */
static void explain_deployment(struct slice external, const struct waiting *waiting,
                               struct buf *out)
{
    bool is_deployed = waiting->verdict == VERSION_LACKS_TASK;
    buf_print(out,
              is_deployed
                  ? "The version that is deployed with the external id %.*s does not have "
                    "its task; deploy one that has it with the same id, or cancel the run"
                  : "No version is deployed with the external id %.*s, which its "
                    "trigger names; deploy one with that id, or cancel the run",
              SLICE_ARG(external));
}

static void explain_queue(const struct tracked *run, struct buf *out)
{
    const struct slice queue = bytes_slice(run->run.queue);
    buf_print(out,
              run->env->is_dev
                  ? "The run was triggered for the queue %.*s, which no version declares; "
                    "declare "
                    "it in the code that trigger dev executes, or cancel the run"
                  : "The run was triggered for the queue %.*s, which no version declares; "
                    "register or promote one that declares it, or cancel the run",
              SLICE_ARG(queue));
}

static void explain_version(const struct tracked *run, const struct waiting *waiting,
                            struct buf *out)
{
    const struct slice task = bytes_slice(run->run.task);
    const struct slice version = bytes_slice(run->run.worker_version);
    const struct slice external = bytes_slice(run_rare(&run->run)->external_deployment);
    bool is_dev = run->env->is_dev;
    if (waiting->verdict == VERSION_UNDECIDED)
        explain_no_worker(waiting, out);
    else if (waiting->verdict == VERSION_IS_THERE)
        buf_add_text(out, "A version exists now; the run starts when its turn comes");
    else if (waiting->verdict == VERSION_LACKS_QUEUE)
        explain_queue(run, out);
    else if (external.ptr && !version.ptr)
        explain_deployment(external, waiting, out);
    else if (version.ptr && waiting->verdict == VERSION_NONE)
        buf_print(out,
                  "Version %.*s, which it is locked to, was not found; %s it, or cancel "
                  "the run and trigger it without the lock",
                  SLICE_ARG(version), is_dev ? "start" : "deploy");
    else if (version.ptr)
        buf_print(out,
                  "Version %.*s, which it is locked to, has no task %.*s; cancel the run "
                  "and trigger it with another version",
                  SLICE_ARG(version), SLICE_ARG(task));
    else if (is_dev)
        buf_print(out,
                  "No connected worker has the task %.*s; start one from code that has it",
                  SLICE_ARG(task));
    else if (waiting->verdict == VERSION_NONE)
        buf_print(out,
                  "No version is registered in this environment; register one that has the "
                  "task %.*s",
                  SLICE_ARG(task));
    else
        buf_print(
            out,
            "The current version has no task %.*s; register or promote one that has it",
            SLICE_ARG(task));
}

static void explain_quota(const struct quota *project, struct buf *out)
{
    buf_print(out,
              "The project stores %zu of %zu bytes; raise storage-quota, or remove data; "
              "it starts once retention has removed finished runs",
              project->used, project->limit);
}

/* The token that reads the sentence may not be allowed to see the other run. */
static void add_executing(const struct waiting *waiting, bool is_gate, struct buf *out)
{
    bool is_one = waiting->running == 1;
    const char *verb =
        is_gate ? (is_one ? "holds it" : "hold it") : (is_one ? "executes" : "execute");
    if (waiting->reserved)
        buf_print(out,
                  ", %u %s, and %u is reserved for a run that was passed over %d times",
                  waiting->running, verb, waiting->reserved, RESERVE_PASSES);
    else
        buf_print(out, ", and %u %s", waiting->running, verb);
}

static void add_of_queue(const struct tracked *run, const struct waiting *waiting,
                         struct buf *out)
{
    const struct slice key = bytes_slice(run_rare(&run->run)->concurrency_key);
    if (waiting->reason == WAITING_QUEUE_TOTAL)
        buf_add_text(out, " in total (combinedConcurrencyLimit)");
    else if (waiting->reason == WAITING_CONCURRENCY_KEY)
        buf_print(out, " for the concurrencyKey %.*s", SLICE_ARG(text_clip(key)));
}

static void explain_queue_limit(const struct tracked *run, const struct waiting *waiting,
                                struct buf *out)
{
    bool has_begun = run->run.execution == EXECUTION_WITH_WAITPOINTS;
    buf_print(out, "The queue %.*s allows %u", SLICE_ARG(bytes_slice(run->run.queue)),
              waiting->limit);
    add_of_queue(run, waiting, out);
    if (!waiting->limit) {
        buf_add_text(out, "; declare a higher value");
        return;
    }
    add_executing(waiting, false, out);
    buf_print(out, "; the run %s when one ends or waits%s",
              has_begun ? "continues" : "starts",
              waiting->reason == WAITING_QUEUE_TOTAL ? "" : ", or when you raise it");
}

static void explain_singleton(const struct tracked *run, struct buf *out)
{
    bool has_begun = run->run.execution == EXECUTION_WITH_WAITPOINTS;
    bool has_key = run_rare(&run->run)->concurrency_key != NULL;
    buf_print(out,
              "The singleton queue %.*s executes one run %s at a time; the run %s when "
              "that one ends or waits",
              SLICE_ARG(bytes_slice(run->run.queue)),
              has_key ? "of its concurrencyKey" : "without a concurrencyKey",
              has_begun ? "continues" : "starts");
}

static void explain_limit(const struct tracked *run, const struct waiting *waiting,
                          struct buf *out)
{
    const struct slice queue = bytes_slice(run->run.queue);
    bool has_begun = run->run.execution == EXECUTION_WITH_WAITPOINTS;
    const char *starts = has_begun ? "continues" : "starts";
    if (waiting->reason == WAITING_ENVIRONMENT_LIMIT)
        buf_print(out,
                  "The environment has reached its concurrency limit, %u; the run %s when "
                  "another one ends, or after a restart with a higher %s",
                  waiting->limit, starts,
                  run->env->is_dev ? "dev-concurrency or env-concurrency"
                                   : "env-concurrency");
    else if (waiting->reason == WAITING_QUEUE_TOTAL)
        explain_queue_limit(run, waiting, out);
    else if (!waiting->limit)
        buf_print(out, "The limit of the queue %.*s is 0; set a higher one",
                  SLICE_ARG(queue));
    else if (waiting->is_singleton && !waiting->reserved)
        explain_singleton(run, out);
    else
        explain_queue_limit(run, waiting, out);
}

static void explain_named_limit(const struct tracked *run, const struct waiting *waiting,
                                struct buf *out)
{
    bool has_begun = run->run.execution == EXECUTION_WITH_WAITPOINTS;
    bool is_gate = waiting->reason == WAITING_GATE;
    buf_print(out, "The %s %.*s allows %u", is_gate ? "gate" : "concurrency limit",
              SLICE_ARG(text_clip(waiting->limit_name)), waiting->limit);
    if (waiting->is_limit_total)
        buf_add_text(out, " in total");
    else if (waiting->limit_key.len)
        buf_print(out, " for the concurrencyKey %.*s",
                  SLICE_ARG(text_clip(waiting->limit_key)));
    else if (!is_gate)
        buf_add_text(out, " without a concurrencyKey");
    if (waiting->limit) {
        add_executing(waiting, is_gate, out);
        buf_print(out, "; the run %s when one ends or waits, or when you",
                  has_begun ? "continues" : "starts");
    } else
        buf_add_text(out, ";");
    buf_print(out, " raise %s", is_gate ? "that queue's limit" : "it");
}

static void explain_rate(const struct tracked *run, const struct waiting *waiting,
                         struct buf *out)
{
    const struct rate_figures *bucket = &waiting->rate;
    int64_t left_ms = waiting->until - wall_of(run);
    char period[48];
    text_from_seconds(bucket->rate.period_ms / 1000, period);
    buf_print(out, "The %s %.*s starts %u run%s per %s",
              bucket->place.is_limit ? "concurrency limit" : "queue",
              SLICE_ARG(bucket->place.name), bucket->rate.starts,
              bucket->rate.starts == 1 ? "" : "s", period);
    if (bucket->place.key.len)
        buf_print(out, " for the concurrencyKey %.*s",
                  SLICE_ARG(text_clip(bucket->place.key)));
    else if (bucket->place.key.ptr)
        buf_add_text(out, " without a concurrencyKey");
    buf_print(out, "; the next one in %lld s",
              (long long)(left_ms > 0 ? (left_ms + 999) / 1000 : 0));
}

static void explain_retry(const struct tracked *run, const struct waiting *waiting,
                          struct buf *out)
{
    if (run->run.status == RUN_RETRYING && !run->run.dequeue_failures)
        buf_print(out, "Attempt %u failed; the next one begins at ", run->run.attempt);
    else
        buf_add_text(out, "The worker that took it did not start it (see its log); it is "
                          "offered again at ");
    add_time(out, waiting->until);
    buf_add_text(out, "; cancel the run to prevent that");
}

/* Names the first pending wait, and the number of the others. */
static void explain_waitpoint(const struct tracked *run, const struct waiting *waiting,
                              struct buf *out)
{
    struct scan_members all = wait_list_of(&run->run);
    struct wait wait, first = { 0 };
    unsigned pending = 0;
    for (int i = 0; i < WAITS_MAX && wait_list_next(&all, &wait); i++)
        if (!wait.completed_at && !pending++)
            first = wait;
    buf_add_text(out, "It waits for ");
    if (first.type == WAIT_TIME) {
        buf_add_text(out, "a time, ");
        add_time(out, first.until);
    } else if (first.type == WAIT_RUN) {
        buf_print(out, "the run %.*s", SLICE_ARG(first.id));
    } else {
        buf_print(out, "the token %.*s", SLICE_ARG(first.id));
    }
    if (pending > 1)
        buf_print(out, " and %u more", pending - 1);
    if (first.type == WAIT_TIME)
        buf_add_text(out, "; it continues by itself");
    else if (first.type == WAIT_RUN)
        buf_add_text(out, "; see what that one waits for");
    else
        buf_print(out, "; complete %s",
                  first.stream.ptr ? "it by a record of its input" : "the token");
    if (first.type == WAIT_TOKEN && waiting->until) {
        buf_add_text(out, ", or it times out at ");
        add_time(out, waiting->until);
    }
}

void waiting_explain(const struct tracked *run, const struct waiting *waiting,
                     struct buf *out)
{
    switch (waiting->reason) {
    case WAITING_NO_WORKER: explain_worker(run, waiting, out); break;
    case WAITING_VERSION: explain_version(run, waiting, out); break;
    case WAITING_STORAGE_QUOTA: explain_quota(waiting->full, out); break;
    case WAITING_QUEUE_PAUSED:
        buf_print(out, "The queue %.*s is paused; resume it",
                  SLICE_ARG(bytes_slice(run->run.queue)));
        break;
    case WAITING_QUEUE_LIMIT:
    case WAITING_CONCURRENCY_KEY:
    case WAITING_QUEUE_TOTAL:
    case WAITING_ENVIRONMENT_LIMIT: explain_limit(run, waiting, out); break;
    case WAITING_LIMIT_PAUSED:
        buf_print(out, "The concurrency limit %.*s is paused; resume it",
                  SLICE_ARG(waiting->limit_name));
        break;
    case WAITING_GATE_PAUSED:
        buf_print(out, "The queue %.*s, a gate of the run, is paused; resume it",
                  SLICE_ARG(text_clip(waiting->limit_name)));
        break;
    case WAITING_LIMIT:
    case WAITING_GATE: explain_named_limit(run, waiting, out); break;
    case WAITING_RATE: explain_rate(run, waiting, out); break;
    case WAITING_ROOM: explain_room(run, out); break;
    case WAITING_DELAY:
        buf_add_text(out, "It is delayed until ");
        add_time(out, waiting->until);
        buf_add_text(out, "; reschedule it for another time");
        break;
    case WAITING_RETRY: explain_retry(run, waiting, out); break;
    case WAITING_WAITPOINT: explain_waitpoint(run, waiting, out); break;
    default: break;
    }
}
