/* firing.c - fires a due schedule: triggers its run.
 *
 *   due ─► the latest nominal time so far ─► run with its payload ─► one commit with
 *          the schedule's document ─► fired_at
 *
 * The commit requires the document version that is in memory. So if a nominal time is
 * fired twice, the second attempt fails, even if the outcome of the first one is
 * unknown.
 *
 * A schedule that does not fire is logged once, until it fires again. The cause mostly
 * affects the whole environment, so the first one is logged, and the others of the same
 * minute are only counted. */
#include "api/schedules/schedule_state.h"
#include "base/json/members.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/fleet/fleet.h"
#include "core/fleet/worker_versions.h"

enum { UPCOMING = 10, MINUTE_MS = 60 * 1000 };

struct firing {
    struct schedules *all;
    struct schedule *schedule;
    int64_t first, nominal; /* the first nominal time that has passed; the one that fires */
    struct trigger item;
    struct trigger_op op;
    struct document document;
};

/* Returns the latest nominal time until now. first has passed. Nominal times are whole
 * minutes apart, so the search stops at half a minute. */
static int64_t latest_until(const struct schedule *schedule, int64_t first, int64_t now)
{
    int64_t second = cron_next(&schedule->cron, schedule->zone, first);
    int64_t low = first - 1, high = now; /* the first time after low has passed */
    if (!second || second > now)
        return first;
    while (high - low > MINUTE_MS / 2) {
        int64_t middle = low + (high - low) / 2;
        int64_t next = cron_next(&schedule->cron, schedule->zone, middle);
        if (next && next <= now)
            low = middle;
        else
            high = middle;
    }
    return cron_next(&schedule->cron, schedule->zone, low);
}

/* ---- the payload ---- */

/* Returns the payload as SuperJSON, so that the task gets Dates. */
static struct bytes *make_payload(const struct schedule *schedule, int64_t nominal)
{
    const struct schedule_facts *facts = &schedule->facts;
    struct buf out = { 0 }, dates = { 0 };
    int64_t at = nominal;

    buf_print(&out, "{\"json\":{\"type\":\"%s\",\"timestamp\":",
              facts->is_declarative ? "DECLARATIVE" : "IMPERATIVE");
    buf_add_json_time(&out, nominal);
    buf_add_text(&dates, "\"timestamp\":[\"Date\"]");
    members_add_time(&out, "lastTimestamp", facts->fired_at);
    if (facts->fired_at)
        buf_add_text(&dates, ",\"lastTimestamp\":[\"Date\"]");
    members_add_text(&out, "timezone", bytes_slice(facts->timezone));
    buf_print(&out, ",\"scheduleId\":\"%s\"", schedule->id);
    members_add_text(&out, "externalId", bytes_slice(facts->external_id));
    buf_add_text(&out, ",\"upcoming\":[");
    for (int i = 0; i < UPCOMING; i++) {
        if (!(at = cron_next(&schedule->cron, schedule->zone, at)))
            break;
        if (i)
            buf_add_char(&out, ',');
        buf_add_json_time(&out, at);
        buf_print(&dates, ",\"upcoming.%d\":[\"Date\"]", i);
    }
    buf_add_text(&out, "]},\"meta\":{\"values\":{");
    buf_add(&out, buf_slice(&dates));
    buf_add_text(&out, "}}}");
    struct bytes *payload = buf_to_bytes(&out);
    buf_finish(&out);
    buf_finish(&dates);
    return payload;
}

/* ---- the log ---- */

static void log_failure(const struct schedule *schedule, const char *reason)
{
    struct schedules *all = schedule->all;
    struct env_schedules *place = schedules_in(all, schedule->env);
    if (place->quiet.place) {
        place->suppressed++;
        return;
    }
    log_warn("schedule did not fire", "environment", schedule->env->id, "schedule",
             schedule->id, "reason", reason, NULL);
    loop_set_timer(engine_loop(all->engine), &place->quiet, all->quiet_kind, MINUTE_MS);
}

void schedules_log_suppressed(struct env_schedules *place)
{
    if (place->suppressed)
        log_warn("more schedules did not fire for the same reason", "environment",
                 place->env->id, "count", log_number(place->suppressed), NULL);
    place->suppressed = 0;
}

/* ---- the run ---- */

static void log_fired(const struct firing *firing)
{
    const struct schedule *schedule = firing->schedule;
    if (firing->nominal != firing->first)
        log_decision("schedule skipped", schedule->env->id, NULL,
                     "only the latest of several due times fires", "schedule", schedule->id,
                     "first_ms", log_number(firing->first), NULL);
    log_decision("schedule fired", schedule->env->id, firing->item.id, "its time has come",
                 "schedule", schedule->id, "nominal_ms", log_number(firing->nominal), NULL);
}

static void on_fired(struct trigger_op *op, enum err status)
{
    struct firing *firing = container_of(op, struct firing, op);
    struct schedules *all = firing->all;
    struct schedule *schedule = firing->schedule;

    if (!status) {
        schedule->facts.fired_at = firing->nominal;
        schedule->version++;
        metric_add(M_SCHEDULED_RUNS, 1);
        log_fired(firing);
    } else if (!schedule->failing) {
        log_failure(schedule, op->why.code ? op->why.text : errors[status].text);
    }
    schedule->failing = status != OK;
    trigger_op_finish(op);
    document_finish(&firing->document);
    free(firing);
    all->firing--;
    schedule_release(all, schedule);
}

static void fill_in(struct firing *firing)
{
    const struct schedule *schedule = firing->schedule;
    struct run *run = &firing->item.run;
    struct run_rare *rare = run_rare_edit(run);
    struct schedule_facts facts = schedule->facts; /* borrowed */

    run->task = bytes_ref(facts.task);
    run->payload = make_payload(schedule, firing->nominal);
    rare->payload_type = bytes_create_shared(SLICE("application/super+json"));
    rare->schedule = bytes_create(slice_of(schedule->id));
    trigger_default_to_task(
        &firing->item, workers_task(schedule->env->fleet->workers, bytes_slice(facts.task)),
        false);
    facts.fired_at = firing->nominal;
    firing->document = (struct document){ .kind = DOC_SCHEDULE,
                                          .env = schedule->env->number,
                                          .version = schedule->version,
                                          .name = bytes_create(slice_of(schedule->id)),
                                          .body = schedule_facts_write(&facts) };
}

void schedule_fire(struct timer *due)
{
    struct schedule *schedule = container_of(due, struct schedule, due);
    struct schedules *all = schedule->all;
    int64_t now = loop_wall_ms(engine_loop(all->engine)),
            first = schedule_next(schedule, 0);

    if (schedule->busy)
        return; /* schedule_release makes it due again after its commit */
    if (!first || first > now) {
        schedule->failing = false; /* the clock was set back after a failure */
        schedule_release(all, schedule);
        return;
    }
    struct firing *firing = mem_new(struct firing);
    firing->all = all;
    firing->schedule = schedule;
    firing->first = first;
    firing->nominal = latest_until(schedule, first, now);
    fill_in(firing);
    firing->op = (struct trigger_op){
        .items = &firing->item, .count = 1, .batch = &firing->document, .done = on_fired
    };
    schedule->busy = true;
    all->firing++;
    enum err refused = trigger_begin(all->engine, schedule->env, &firing->op);
    if (refused)
        on_fired(&firing->op, refused);
}
