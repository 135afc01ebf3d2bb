/* environment_metrics.c - collects gauges of environments, and prints them for /metrics. */
#include "api/ops/environment_metrics.h"

#include <inttypes.h>

#include "base/metrics.h"
#include "core/fleet/dev_sessions.h"
#include "core/fleet/waiting.h"

enum { LOOKED_AT_ONCE = 8, LABEL_MAX = PROJECT_REF_MAX + 32 };

/* ---- collecting ---- */

static void note_older(int64_t *oldest, int64_t since)
{
    if (since && (!*oldest || since < *oldest))
        *oldest = since;
}

static void look_at(const struct environment *env, struct environment_gauges *gauges)
{
    struct session *session = NULL;
    gauges->environments++;
    gauges->number = env->figures->number;
    for (int status = 0; status < RUN_CANCELED; status++)
        gauges->by_status[status] += env->unfinished_by_status[status];
    note_older(&gauges->oldest, waiting_oldest(env));
    gauges->seated += env->fleet->seated;
    gauges->unserved += waiting_unserved(env);
    while (env->is_dev && (session = dev_sessions_next(env, session)))
        gauges->sessions++;
}

bool environment_metrics_look(struct environment_metrics *seen, struct timeslice *timeslice)
{
    const struct engine *engine = api_engine(seen->api);
    while (!seen->all && timeslice_left_every(timeslice, LOOKED_AT_ONCE)) {
        const struct environment *env = engine_next_environment(engine, &seen->at);
        if (!env) {
            seen->all = true;
            break;
        }
        size_t place = figures_place(engine_figures(engine), env->figures);
        const struct account *account =
            accounts_by_number(api_accounts(seen->api), env->number);
        look_at(env, &seen->groups[place]);
        note_older(&seen->oldest[account->type], waiting_oldest(env));
        seen->unserved += waiting_is_unserved(env);
    }
    return seen->all;
}

/* ---- labels ---- */

/* Writes a label like "proj_…/prod". When a project is deleted, another may get its ref
 * while runs of the first are still ending: the first one's labels then have the
 * environment's number too. */
static void write_label(const struct environment_metrics *seen, size_t place,
                        char label[LABEL_MAX])
{
    const struct figures_table *figures = engine_figures(api_engine(seen->api));
    if (place == FIGURES_MAX) {
        snprintf(label, LABEL_MAX, "other");
        return;
    }
    uint32_t number = figures->first[place].number;
    const struct account *account = accounts_by_number(api_accounts(seen->api), number);
    char suffix[16] = "";
    if (account->project->deleted_at)
        snprintf(suffix, sizeof(suffix), "#%" PRIu32, number);
    snprintf(label, LABEL_MAX, "%s/%s%s", account->project->ref,
             environment_path_slug(account->type), suffix);
}

static const struct figures *figures_at(const struct environment_metrics *seen,
                                        size_t place)
{
    const struct figures_table *table = engine_figures(api_engine(seen->api));
    return place == FIGURES_MAX ? &table->rest : &table->first[place];
}

/* Returns true if environments were seen at the place, and its figures are still theirs. */
static bool is_used(const struct environment_metrics *seen, size_t place)
{
    return seen->groups[place].environments &&
           seen->groups[place].number == figures_at(seen, place)->number;
}

/* Advances *place to the next place that has environments. Returns false if there is none.
 * labels: replaced by the place's label, as it stands in braces. */
static bool next_place(const struct environment_metrics *seen, size_t *place,
                       struct buf *labels)
{
    char label[LABEL_MAX];
    while (*place <= FIGURES_MAX && !is_used(seen, *place))
        ++*place;
    if (*place > FIGURES_MAX)
        return false;
    write_label(seen, *place, label);
    buf_clear(labels);
    metrics_print_label(labels, "environment", label);
    return true;
}

/* ---- parts ---- */

typedef void sample_fn(const struct environment_metrics *seen, size_t place,
                       const char *name, const char *labels, struct buf *out);

/* The words of the API, except that each status has a separate one. */
static const char *const status_labels[RUN_STATUS_COUNT] = {
    [RUN_DELAYED] = "DELAYED",
    [RUN_PENDING_VERSION] = "PENDING_VERSION",
    [RUN_QUEUED] = "QUEUED",
    [RUN_DEQUEUED] = "DEQUEUED",
    [RUN_EXECUTING] = "EXECUTING",
    [RUN_RETRYING] = "REATTEMPTING",
    [RUN_WAITING] = "WAITING",
    [RUN_CANCELED] = "CANCELED",
    [RUN_COMPLETED] = "COMPLETED",
    [RUN_FAILED] = "FAILED",
    [RUN_INTERRUPTED] = "INTERRUPTED",
    [RUN_CRASHED] = "CRASHED",
    [RUN_SYSTEM_FAILURE] = "SYSTEM_FAILURE",
    [RUN_EXPIRED] = "EXPIRED",
    [RUN_TIMED_OUT] = "TIMED_OUT",
};

static void add_sample(struct buf *out, const char *name, const char *labels, int64_t value)
{
    buf_print(out, "%s{%s} %" PRId64 "\n", name, labels, value);
}

static void add_status(struct buf *out, const char *name, const char *labels,
                       enum run_status status, int64_t value)
{
    buf_print(out, "%s{%s,status=\"%s\"} %" PRId64 "\n", name, labels,
              status_labels[status], value);
}

static void add_runs(const struct environment_metrics *seen, size_t place, const char *name,
                     const char *labels, struct buf *out)
{
    for (int status = 0; status < RUN_CANCELED; status++)
        add_status(out, name, labels, (enum run_status)status,
                   seen->groups[place].by_status[status]);
}

static void add_triggers(const struct environment_metrics *seen, size_t place,
                         const char *name, const char *labels, struct buf *out)
{
    add_sample(out, name, labels, figures_at(seen, place)->triggers);
}

static void add_ends(const struct environment_metrics *seen, size_t place, const char *name,
                     const char *labels, struct buf *out)
{
    const struct figures *figures = figures_at(seen, place);
    for (int i = 0; i < FIGURES_ENDS; i++)
        add_status(out, name, labels, (enum run_status)(RUN_CANCELED + i),
                   figures->ends[i]);
}

static int64_t age_of(const struct environment_metrics *seen, int64_t since)
{
    int64_t now = loop_wall_ms(engine_loop(api_engine(seen->api)));
    return since && since < now ? now - since : 0;
}

static void add_seconds(struct buf *out, const char *name, const char *labels, int64_t ms)
{
    buf_print(out, "%s{%s} %" PRId64 ".%03d\n", name, labels, ms / 1000, (int)(ms % 1000));
}

static void add_oldest(const struct environment_metrics *seen, size_t place,
                       const char *name, const char *labels, struct buf *out)
{
    add_seconds(out, name, labels, age_of(seen, seen->groups[place].oldest));
}

static void add_unserved(const struct environment_metrics *seen, size_t place,
                         const char *name, const char *labels, struct buf *out)
{
    const struct environment_gauges *gauges = &seen->groups[place];
    buf_print(out,
              "%s{%s,reason=\"%s\"} %" PRId64 "\n"
              "%s{%s,reason=\"%s\"} %" PRId64 "\n",
              name, labels, waiting_name(WAITING_NO_WORKER), gauges->unserved, name, labels,
              waiting_name(WAITING_VERSION), gauges->by_status[RUN_PENDING_VERSION]);
}

static void add_seated(const struct environment_metrics *seen, size_t place,
                       const char *name, const char *labels, struct buf *out)
{
    add_sample(out, name, labels, seen->groups[place].seated);
}

static void add_sessions(const struct environment_metrics *seen, size_t place,
                         const char *name, const char *labels, struct buf *out)
{
    add_sample(out, name, labels, seen->groups[place].sessions);
}

static void add_waits(const struct environment_metrics *seen, size_t place,
                      const char *name, const char *labels, struct buf *out)
{
    buckets_print(&figures_at(seen, place)->queue_waits, &bounds_of_queues, name, labels,
                  out);
}

/* clang-format off */
static const struct {
    const char *name, *type, *help;
    sample_fn *add;
} parts[] = {
    { "runcast_environment_runs", "gauge",
      "Runs that have not ended, by environment and status", add_runs },
    { "runcast_environment_triggers_total", "counter",
      "Runs created since the start, by environment", add_triggers },
    { "runcast_environment_finished_runs_total", "counter",
      "Runs that have ended since the start, by environment and status", add_ends },
    { "runcast_environment_oldest_queued_seconds", "gauge",
      "Time in the queue of the run that has been queued for longest, by environment", add_oldest },
    { "runcast_environment_unserved_runs", "gauge",
      "Runs that no worker can take: queued without a worker for them, or waiting for a version with their task", add_unserved },
    { "runcast_environment_waiting_workers", "gauge",
      "Dequeues that are held because no run is ready, by environment", add_seated },
    { "runcast_environment_sessions", "gauge",
      "CLIs connected in the last minute, executing or not, by environment",
      add_sessions },
    { "runcast_environment_queue_wait_seconds", "histogram",
      "Time that a run was in its queue until a worker got it, by environment", add_waits },
};
/* clang-format on */

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* Prints the gauges that cover all environments. */
static void print_sums(const struct environment_metrics *seen, struct buf *out)
{
    static const char oldest[] = "runcast_oldest_queued_seconds";
    int64_t seated = 0, sessions = 0;
    for (size_t place = 0; place <= FIGURES_MAX; place++) {
        seated += seen->groups[place].seated;
        sessions += seen->groups[place].sessions;
    }
    metrics_print_gauge(out, "runcast_waiting_workers",
                        "Dequeues that are held because no run is ready", seated);
    metrics_print_gauge(out, "runcast_sessions",
                        "CLIs connected in the last minute, executing or not", sessions);
    metrics_print_gauge(out, "runcast_unserved_environments",
                        "Environments that have queued runs and no worker", seen->unserved);
    metrics_print_head(
        out, oldest, "gauge",
        "Time in the queue of the run that has been queued for longest, by type "
        "of environment");
    for (int type = 0; type < ENVIRONMENT_TYPES; type++) {
        char label[32];
        snprintf(label, sizeof(label), "type=\"%s\"",
                 environment_path_slug((enum environment_type)type));
        add_seconds(out, oldest, label, age_of(seen, seen->oldest[type]));
    }
}

bool environment_metrics_print(const struct environment_metrics *seen, size_t part,
                               struct buf *out)
{
    if (part > PARTS)
        return false;
    if (part == PARTS) {
        print_sums(seen, out);
        return true;
    }
    struct buf labels = { 0 };
    metrics_print_head(out, parts[part].name, parts[part].type, parts[part].help);
    for (size_t place = 0; next_place(seen, &place, &labels); place++) {
        buf_add_char(&labels, '\0');
        parts[part].add(seen, place, parts[part].name, labels.ptr, out);
    }
    buf_finish(&labels);
    return true;
}
