/* firing.c - a due schedule and its run.
 *
 *   due ─► the latest nominal time that has come ─► run with its payload ─► one commit with
 *          the schedule's document ─► fired_at
 *
 * The commit needs the version of the document that memory has. So of two attempts to fire
 * one nominal time the second loses, also when nobody could tell how the first one ended.
 *
 * One that does not fire is a line of the log, until it fires again. What keeps one from it
 * mostly keeps all of its environment: they are one line, and a count when the minute is over. */
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
    int64_t first, nominal; /* of the times that have come; the one that fires */
    struct trigger item;
    struct trigger_op op;
    struct document document;
};

/* first has come. Nominal times are whole minutes apart, so halving ends at the latest. */
static int64_t latest_until(const struct schedule *schedule, int64_t first, int64_t now)
{
    int64_t second = cron_next(&schedule->cron, schedule->zone, first);
    int64_t low = first - 1, high = now; /* the next one behind low has come */
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

/* As SuperJSON: the task sees Dates. */
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

static void tell_failure(const struct schedule *schedule, const char *reason)
{
    struct schedules *all = schedule->all;
    struct env_schedules *place = schedules_in(all, schedule->env);
    if (place->quiet.place) {
        place->untold++;
        return;
    }
    log_warn("schedule did not fire", "environment", schedule->env->id, "schedule",
             schedule->id, "reason", reason, NULL);
    loop_set_timer(engine_loop(all->engine), &place->quiet, all->quiet_kind, MINUTE_MS);
}

void schedules_tell_untold(struct env_schedules *place)
{
    if (place->untold)
        log_warn("schedules did not fire like the one before", "environment",
                 place->env->id, "count", log_number(place->untold), NULL);
    place->untold = 0;
}

/* ---- the run ---- */

static void tell_fired(const struct firing *firing)
{
    const struct schedule *schedule = firing->schedule;
    if (firing->nominal != firing->first)
        log_decision("schedule skipped", schedule->env->id, NULL,
                     "of the times that have come only the latest fires", "schedule",
                     schedule->id, "first_ms", log_number(firing->first), NULL);
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
        tell_fired(firing);
    } else if (!schedule->failing) {
        tell_failure(schedule, op->why.code ? op->why.text : errors[status].text);
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
        return; /* it is due again when its commit is through */
    if (!first || first > now) {
        schedule->failing = false; /* the clock was set back since it failed */
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
