/* schedule_body.c - reads schedules from JSON, checks them, and writes them as JSON. */
#include "api/schedules/schedule_body.h"

#include "api/triggers/trigger_options.h"
#include "base/json/members.h"
#include "base/json/scan.h"
#include "core/fleet/fleet.h"
#include "core/fleet/worker_versions.h"

enum { KEY_BYTES_MAX = 1024, WINDOW_HOURS_MAX = 24 };

/* ---- reading ---- */

static enum err schedule_body_refuse(struct api_call *call, const char *member,
                                     const char *message)
{
    api_reply_details(call, "Invalid request body", "issues", member, message);
    return ERR_INVALID;
}

struct schedule_member {
    const char *name;
    bool required;
    size_t max; /* bytes */
    const char *too_long;
};

static enum err read_member(struct api_call *call, struct slice body,
                            const struct schedule_member *member, struct bytes **out)
{
    struct slice value = scan_member(body, member->name);
    struct buf text = { 0 };
    if (!value.ptr)
        return member->required ? schedule_body_refuse(call, member->name, "Required") : OK;
    bool is_text = scan_string(value, &text);
    bool fits = text.len <= member->max;
    if (is_text && fits)
        *out = bytes_create(buf_slice(&text));
    buf_finish(&text);
    if (!is_text)
        return schedule_body_refuse(call, member->name, "Expected string");
    return fits ? OK : schedule_body_refuse(call, member->name, member->too_long);
}

enum err schedule_body_read(struct api_call *call, bool with_key,
                            struct schedule_facts *requested)
{
    struct schedule_facts read = { 0 };
    const struct {
        struct schedule_member member;
        struct bytes **place;
    } members[] = {
        { { "task", true, TRIGGER_TASK_MAX, "Must have at most 512 bytes" }, &read.task },
        { { "cron", true, 65536, "" }, &read.cron },
        { { "deduplicationKey", true, KEY_BYTES_MAX, "Must have at most 1024 bytes" },
          &read.key },
        { { "externalId", false, KEY_BYTES_MAX, "Must have at most 1024 bytes" },
          &read.external_id },
        { { "timezone", false, 65536, "" }, &read.timezone },
        { { "window", false, 65536, "" }, &read.window },
    };
    struct slice body;
    enum err err = api_read_object(call, &body);
    if (err) {
        api_reply_error(call, err);
        return err;
    }
    for (size_t i = 0; !err && i < sizeof(members) / sizeof(members[0]); i++)
        if (with_key || members[i].place != &read.key)
            err = read_member(call, body, &members[i].member, members[i].place);
    if (err) {
        schedule_facts_finish(&read);
        return err;
    }
    if (!read.timezone)
        read.timezone = bytes_create_shared(SLICE("UTC"));
    if (read.key && !read.key->len)
        bytes_clear(&read.key);
    *requested = read;
    return OK;
}

/* ---- rules ---- */

bool schedule_window_is_valid(struct slice window)
{
    uint64_t number;
    if (!window.ptr)
        return true;
    if (window.len < 2 || (window.ptr[0] == '0' && window.len > 2))
        return false;
    char unit = window.ptr[window.len - 1];
    if (text_to_u64((struct slice){ window.ptr, window.len - 1 }, &number))
        return false;
    switch (unit) {
    case 'm': return number <= WINDOW_HOURS_MAX * 60;
    case 'h': return number <= WINDOW_HOURS_MAX;
    case '%': return number <= 100;
    default: return false;
    }
}

enum err schedule_body_find_zone(struct api_call *call, struct slice name,
                                 const struct zone **zone, struct failure *why)
{
    struct buf url = { 0 };
    *zone = schedules_zone(api_schedules(call->api), name);
    if (*zone)
        return OK;
    api_base_url(call, &url);
    explain(why, ERR_RULE,
            "Invalid IANA timezone: '%.*s'. View the list of valid timezones at "
            "%.*s/api/v1/timezones",
            SLICE_ARG(text_clip(name)), SLICE_ARG(text_clip(buf_slice(&url))));
    buf_finish(&url);
    return ERR_RULE;
}

/* Finds the task in any environment of the project, the caller's own first. */
static const struct worker_task *find_task(struct api_call *call, struct slice name)
{
    struct engine *engine = api_engine(call->api);
    struct accounts *accounts = api_accounts(call->api);
    const struct worker_task *task = workers_task(call->env->fleet->workers, name);
    for (struct account *a = NULL; !task && (a = accounts_next(accounts, a));) {
        struct environment *env = engine_environment(engine, a->number);
        if (env && a->project == call->account->project)
            task = workers_task(env->fleet->workers, name);
    }
    return task;
}

enum err schedule_body_check(struct api_call *call, const struct schedule_facts *requested,
                             struct failure *why)
{
    struct cron cron;
    const struct zone *zone;
    struct slice name = bytes_slice(requested->task);
    if (cron_read_new(bytes_slice(requested->cron), &cron, why))
        return why->code = ERR_RULE;
    if (schedule_body_find_zone(call, bytes_slice(requested->timezone), &zone, why))
        return ERR_RULE;
    if (!schedule_window_is_valid(bytes_slice(requested->window)))
        return explain(why, ERR_RULE,
                       "Invalid window: '%.*s' is neither a time of at most 24 hours like "
                       "30m or 2h nor a share of at most 100%% like 50%%",
                       SLICE_ARG(text_clip(bytes_slice(requested->window))));
    const struct worker_task *task = find_task(call, name);
    if (!task)
        return explain(why, ERR_RULE, "Task with identifier %.*s not found in project.",
                       SLICE_ARG(text_clip(name)));
    if (!task->is_scheduled)
        return explain(why, ERR_RULE, "Task with identifier %.*s is not a scheduled task.",
                       SLICE_ARG(text_clip(name)));
    return OK;
}

/* ---- writing ---- */

static void add_generator(struct buf *out, const struct schedule *schedule)
{
    struct buf words = { 0 };
    cron_describe(&schedule->cron, &words);
    buf_add_text(out, ",\"generator\":{\"type\":\"CRON\"");
    members_add_text(out, "expression", bytes_slice(schedule->facts.cron));
    members_add_text(out, "description", buf_slice(&words));
    buf_add_char(out, '}');
    buf_finish(&words);
}

static void add_next(struct buf *out, int64_t next)
{
    static const char *const names[] = { "nextRun", "nextRunEffectiveAt" };
    for (size_t i = 0; i < 2; i++) {
        members_add_name(out, names[i]);
        if (next)
            buf_add_json_time(out, next);
        else
            buf_add_text(out, "null");
    }
}

static void add_environment(const struct api_call *call, struct buf *out)
{
    const struct account *account = call->account;
    const struct user *user =
        accounts_first_user(api_accounts(call->api), account->project->organization);
    buf_print(out, ",\"environments\":[{\"id\":\"%s\",\"type\":\"%s\",\"slug\":\"%s\"",
              account->id, environment_type_name(account->type),
              environment_slug(account->type));
    if (account->type == ENVIRONMENT_DEV && user && user->name && user->name[0])
        members_add_text(out, "userName", slice_of(user->name));
    members_add_text(out, "branchName", slice_of(account->branch));
    buf_add_text(out, "}]");
}

void schedule_body_write(const struct api_call *call, struct schedule *schedule,
                         enum schedule_next_shown shown, struct buf *out)
{
    const struct schedule_facts *facts = &schedule->facts;
    int64_t now = loop_wall_ms(engine_loop(api_engine(call->api)));
    bool has_next = facts->is_active || shown == NEXT_ALWAYS;

    buf_print(out, "{\"id\":\"%s\",\"type\":\"%s\"", schedule->id,
              facts->is_declarative ? "DECLARATIVE" : "IMPERATIVE");
    members_add_text(out, "task", bytes_slice(facts->task));
    members_add_bool(out, "active", facts->is_active);
    members_add_text(out, "deduplicationKey", bytes_slice(facts->key));
    members_add_text(out, "externalId", bytes_slice(facts->external_id));
    add_generator(out, schedule);
    members_add_text(out, "timezone", bytes_slice(facts->timezone));
    members_add_text(out, "window", bytes_slice(facts->window));
    add_next(out, has_next ? schedule_next(schedule, now) : 0);
    add_environment(call, out);
    buf_add_char(out, '}');
}

void schedule_body_brief(const struct api_call *call, struct slice id, struct buf *out)
{
    const struct schedule *schedule =
        id.ptr ? schedules_by_id(api_schedules(call->api), call->env, id) : NULL;
    if (!schedule || !schedule->version)
        return;
    buf_print(out, "{\"id\":\"%s\"", schedule->id);
    members_add_text(out, "externalId", bytes_slice(schedule->facts.external_id));
    members_add_text(out, "deduplicationKey", bytes_slice(schedule->facts.key));
    add_generator(out, schedule);
    buf_add_char(out, '}');
}
