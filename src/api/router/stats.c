/* stats.c - shows the samples of an environment (core/counters/stats.h), for plots. */
#include <inttypes.h>

#include "api/request/route.h"
#include "api/runs/run_counts.h"
#include "base/text.h"
#include "core/live/sampling.h"

enum { NO_BODY = 4096 };

/* Reads since: a time, Unix ms, or a duration back from now. */
static enum err read_since(struct api_call *call, int64_t now_ms, int64_t *since)
{
    struct slice text = api_query(call, "since");
    uint64_t unix_ms;
    int64_t duration;
    *since = 0;
    if (!text.len)
        return OK;
    if (!text_to_u64(text, &unix_ms) && unix_ms <= (uint64_t)text_time_max_ms)
        *since = (int64_t)unix_ms;
    else if (!text_to_duration_ms(text, &duration))
        *since = now_ms - duration;
    else if (text_to_time(text, since))
        return explain(&call->why, ERR_INVALID,
                       "since: must be a time such as 2026-01-31T12:00:00Z, milliseconds "
                       "since 1970, or a duration such as 1h");
    return OK;
}

static void add_ms(struct buf *out, uint32_t us)
{
    buf_print(out, "%" PRIu32 ".%03" PRIu32, us / 1000, us % 1000);
}

/* Adds two members: how many runs are queued, and for how long the oldest one, at a time. */
static void add_queue(struct buf *out, uint32_t queued, int64_t since_ms, int64_t at_ms)
{
    buf_print(out, "\"queued\":%" PRIu32 ",\"oldestQueuedMs\":", queued);
    if (since_ms)
        buf_print(out, "%" PRId64, at_ms > since_ms ? at_ms - since_ms : 0);
    else
        buf_add_text(out, "null");
}

static void add_sample(struct buf *out, const struct stats_sample *sample,
                       enum vocabulary vocabulary)
{
    uint64_t counts[RUN_STATUS_COUNT] = { 0 };
    int64_t end = sample->at + STATS_INTERVAL_MS;
    for (int i = 0; i < FIGURES_ENDS; i++)
        counts[RUN_CANCELED + i] = sample->ends[i];
    buf_add_text(out, "{\"at\":");
    buf_add_json_time(out, sample->at);
    buf_print(out, ",\"triggers\":%" PRIu32 ",\"ends\":", sample->triggers);
    run_counts_add(vocabulary, counts, out);
    buf_add_char(out, ',');
    add_queue(out, sample->queued, sample->queued_since, end);
    buf_add_text(out, ",\"deliveryMs\":");
    if (sample->deliveries) {
        buf_add_text(out, "{\"p50\":");
        add_ms(out, sample->p50_us);
        buf_add_text(out, ",\"p99\":");
        add_ms(out, sample->p99_us);
        buf_add_char(out, '}');
    } else {
        buf_add_text(out, "null");
    }
    buf_add_char(out, '}');
}

/* Adds how many runs wait and execute at this moment, which is known even right after a
 * start. */
static void add_now(struct buf *out, const struct environment *env, int64_t now_ms)
{
    buf_add_text(out, ",\"now\":{");
    add_queue(out, env->queues.waiting, sampling_queued_since(env), now_ms);
    buf_print(out,
              ",\"pendingVersion\":%" PRIu32 ",\"executing\":%" PRIu32
              ",\"concurrencyLimit\":%" PRIu32 "}",
              env->unfinished_by_status[RUN_PENDING_VERSION], env->queues.running,
              env->queues.limit);
}

/* Adds the queue as it was before the first sample that is shown; null: unknown. */
static void add_before(struct buf *out, const struct stats *stats, size_t first,
                       int64_t from_ms)
{
    buf_add_text(out, ",\"before\":");
    if (!first) {
        buf_add_text(out, "null");
        return;
    }
    const struct stats_sample *last = stats_at(stats, first - 1);
    buf_add_char(out, '{');
    add_queue(out, last->queued, last->queued_since, from_ms);
    buf_add_char(out, '}');
}

static void add_task(struct buf *out, const struct task_figures *task,
                     const struct task_slot *sum)
{
    uint64_t timed = (uint64_t)sum->completed + sum->failed;
    buf_add_text(out, "{\"task\":");
    buf_add_json(out, bytes_slice(task->task));
    buf_add_text(out, ",\"from\":");
    buf_add_json_time(out, sum->at);
    buf_print(out,
              ",\"triggers\":%" PRIu32 ",\"completed\":%" PRIu32 ",\"failed\":%" PRIu32
              ",\"canceled\":%" PRIu32 ",\"expired\":%" PRIu32 ",\"durationMs\":",
              sum->triggers, sum->completed, sum->failed, sum->canceled, sum->expired);
    if (timed)
        buf_print(out, "{\"p50\":%" PRIu32 ",\"p95\":%" PRIu32 "}",
                  octaves_percentile(sum->durations, timed, 50),
                  octaves_percentile(sum->durations, timed, 95));
    else
        buf_add_text(out, "null");
    buf_add_text(out, ",\"lastFailure\":");
    if (task->failure.at) {
        buf_print(out, "{\"runId\":\"%s\",\"at\":", task->failure.run);
        buf_add_json_time(out, task->failure.at);
        buf_add_char(out, '}');
    } else {
        buf_add_text(out, "null");
    }
    buf_add_char(out, '}');
}

/* Adds the figures of each task in the quarters of an hour from this time on. */
static void add_tasks(struct buf *out, const struct task_table *table, int64_t from_ms)
{
    struct task_slot sum;
    bool any = false;
    buf_add_text(out, ",\"tasks\":[");
    for (size_t i = 0; i < table->count; i++) {
        if (!task_figures_sum(&table->tasks[i], from_ms, &sum))
            continue;
        if (any)
            buf_add_char(out, ',');
        any = true;
        add_task(out, &table->tasks[i], &sum);
    }
    buf_print(out, "],\"tasksAreCut\":%s", table->is_cut ? "true" : "false");
}

static enum err show_stats(struct api_call *call)
{
    const struct run_filter all = { .is_test = -1 };
    struct environment *env = call->env;
    int64_t now = loop_wall_ms(env->loop), since;
    struct buf out = { 0 };
    if (!api_identity_may_list(call->identity, &all))
        return ERR_FORBIDDEN;
    if (read_since(call, now, &since))
        return ERR_INVALID;
    sampling_pass(env);
    const struct stats *stats = &env->stats;
    int64_t kept = stats->open.at - STATS_KEPT_MS;
    int64_t from = stats->from > kept ? stats->from : kept;
    if (from < since)
        from = since;
    buf_print(&out, "{\"intervalMs\":%d,\"from\":", STATS_INTERVAL_MS);
    buf_add_json_time(&out, from);
    buf_add_text(&out, ",\"to\":");
    buf_add_json_time(&out, stats->open.at);
    add_now(&out, env, now);
    add_tasks(&out, &env->tasks, from);
    /* The first sample began before the environment was seen. */
    size_t first = stats_find(stats, from - STATS_INTERVAL_MS + 1);
    add_before(&out, stats, first, from);
    buf_add_text(&out, ",\"samples\":[");
    for (size_t i = first; i < stats->count; i++) {
        if (i > first)
            buf_add_char(&out, ',');
        add_sample(&out, stats_at(stats, i), call->vocabulary);
    }
    buf_add_text(&out, "]}");
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/environments/stats",
      .auth = AUTH_KEY | AUTH_PUBLIC, .body_limit = NO_BODY, .handle = show_stats,
      .id = "environment_stats_v1",
      .summary = "The current queue, activity of the last six hours, and its tasks",
      .query = "since?: string",
      .reply = "EnvironmentStats" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "EnvironmentStats",
      "{intervalMs: integer, from: datetime, to: datetime, now: StatsNow,"
      " before: StatsQueue|null, tasks: StatsTask[], tasksAreCut: boolean, samples: "
      "StatsSample[]}" },
    { "StatsNow",
      "{queued: integer, oldestQueuedMs: integer|null,"
      " pendingVersion: integer, executing: integer, concurrencyLimit: integer}" },
    { "StatsQueue", "{queued: integer, oldestQueuedMs: integer|null}" },
    { "StatsTask", "{task: string, from: datetime, triggers: integer, completed: integer,"
                   " failed: integer, canceled: integer, expired: integer,"
                   " durationMs: StatsDurations|null, lastFailure: StatsFailure|null}" },
    { "StatsDurations", "{p50: integer, p95: integer}" },
    { "StatsFailure", "{runId: string, at: datetime}" },
    { "StatsSample", "{at: datetime, triggers: integer, ends: RunCounts, queued: integer,"
                     " oldestQueuedMs: integer|null, deliveryMs: StatsDelivery|null}" },
    { "StatsDelivery", "{p50: number, p99: number}" },
    { 0 },
};

const struct area stats_area = {
    .tag = "environments", .is_for_users = true, .routes = routes, .schemas = schemas
};
