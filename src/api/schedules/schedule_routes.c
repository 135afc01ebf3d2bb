/* schedule_routes.c - the routes of schedules, and the list of time zones.
 *
 *   body ─► request ─► command: find, check, decide ─► commit ─► the schedule as it is now
 *
 * A schedule is looked up in the caller's environment, by its id or its deduplication
 * key. */
#include "api/request/paging.h"
#include "api/request/route.h"
#include "api/schedules/schedule_body.h"
#include "base/mem.h"

enum {
    NO_BODY = 4096,
    SCHEDULE_BODY = 65536,
    PER_PAGE = 20,
};

static const char no_schedule[] = "Schedule not found";

struct schedule_call {
    struct api_call *call;
    struct schedule_command command;
    struct schedule_facts requested;
    bool active;                   /* what activate or deactivate sets */
    enum schedule_next_shown next; /* in the reply */
};

static struct schedule_call *call_of(struct schedule_command *command)
{
    return container_of(command, struct schedule_call, command);
}

static int64_t now_of(const struct schedule_command *command)
{
    const struct schedule_call *op =
        container_of(command, const struct schedule_call, command);
    return loop_wall_ms(engine_loop(api_engine(op->call->api)));
}

/* ---- finding ---- */

static struct schedule *find_in(const struct api_call *call, struct slice name)
{
    struct schedules *all = api_schedules(call->api);
    if (slice_starts(name, "sched_"))
        return schedules_by_id(all, call->env, name);
    return schedules_by_key(all, call->env, name);
}

static struct schedule *find_named(struct schedule_command *command)
{
    const struct api_call *call = call_of(command)->call;
    return find_in(call, call->params[0]);
}

/* Finds a schedule by the key of the request. A key is unique within its environment. */
static struct schedule *find_by_key(struct schedule_command *command)
{
    struct slice key = bytes_slice(call_of(command)->requested.key);
    return key.ptr ? schedules_by_key(command->all, command->env, key) : NULL;
}

/* ---- deciding ---- */

static enum decision schedule_call_refuse(struct schedule_command *command, enum err code,
                                          const char *text)
{
    explain(&command->why, code, "%s", text);
    return DECISION_REFUSE;
}

/* Applies the request. If cron and time zone stay the same, a time that was due before
 * stays due. */
static void apply_request(struct schedule_command *command, struct schedule_facts *next)
{
    const struct schedule_facts *requested = &call_of(command)->requested;
    schedule_facts_set_times(next, requested->cron, requested->timezone, now_of(command));
    bytes_set(&next->window, requested->window);
    bytes_set(&next->external_id, requested->external_id);
}

/* A project has this many times the limit of an environment. The number of its preview
 * branches does not matter; together, these have a part of that. */
enum { PROJECT_SHARES = 4 };

static enum err refuse_more(struct schedule_command *command, size_t count, int64_t max,
                            const char *where)
{
    return explain(
        &command->why, ERR_RULE,
        "You have created %zu/%lld schedules%s so you'll need to increase your limits or "
        "delete some schedules.",
        count, (long long)max, where);
}

static enum err check_count(struct schedule_command *command)
{
    const struct environment *env = command->env;
    int64_t max = api_options(call_of(command)->call->api)->schedules_max;
    size_t count = schedules_count(command->all, env);
    if ((int64_t)count >= max)
        return refuse_more(command, count, max, "");
    max *= PROJECT_SHARES;
    count = schedules_count_branches(command->all, env);
    if (environment_is_branch(env) && (int64_t)count >= max / BRANCHES_PART)
        return refuse_more(command, count, max / BRANCHES_PART,
                           " in the preview branches of this project");
    count = schedules_count_project(command->all, env);
    return (int64_t)count < max ? OK : refuse_more(command, count, max, " in this project");
}

static enum decision decide_create(struct schedule_command *command,
                                   const struct schedule *now, struct schedule_facts *next)
{
    struct schedule_call *op = call_of(command);
    if (schedule_body_check(op->call, &op->requested, &command->why) ||
        (!now && check_count(command)))
        return DECISION_REFUSE;
    apply_request(command, next);
    if (!now) {
        bytes_set(&next->task, op->requested.task);
        bytes_set(&next->key, op->requested.key);
        next->is_active = true;
        next->created_at = now_of(command);
    }
    return DECISION_COMMIT;
}

static enum decision decide_update(struct schedule_command *command,
                                   const struct schedule *now, struct schedule_facts *next)
{
    struct schedule_call *op = call_of(command);
    if (!now)
        return schedule_call_refuse(command, ERR_NOT_FOUND, no_schedule);
    if (now->facts.is_declarative)
        return schedule_call_refuse(command, ERR_RULE,
                                    "Cannot update a declarative schedule");
    if (schedule_body_check(op->call, &op->requested, &command->why))
        return DECISION_REFUSE;
    apply_request(command, next);
    return DECISION_COMMIT;
}

static enum decision decide_switch(struct schedule_command *command,
                                   const struct schedule *now, struct schedule_facts *next)
{
    bool active = call_of(command)->active;
    if (!now)
        return schedule_call_refuse(command, ERR_NOT_FOUND, no_schedule);
    if (now->facts.is_active == active)
        return DECISION_NOTHING;
    next->is_active = active;
    if (active)
        next->since = now_of(command);
    return DECISION_COMMIT;
}

static enum decision decide_remove(struct schedule_command *command,
                                   const struct schedule *now, struct schedule_facts *next)
{
    (void)next;
    if (!now)
        return schedule_call_refuse(command, ERR_NOT_FOUND, no_schedule);
    if (now->facts.is_declarative)
        return schedule_call_refuse(command, ERR_RULE,
                                    "Cannot delete a declarative schedule");
    command->removes = true;
    return DECISION_COMMIT;
}

/* ---- answering ---- */

static void on_done(struct schedule_command *command, enum err status)
{
    struct schedule_call *op = call_of(command);
    struct api_call *call = op->call;
    struct buf body = { 0 };

    if (status) {
        call->why = command->why;
        api_reply_error(call, status);
    } else {
        if (command->removes)
            buf_print(&body, "{\"id\":\"%s\"}", command->schedule->id);
        else
            schedule_body_write(call, command->schedule, op->next, &body);
        api_reply_json(call, 200, buf_slice(&body));
    }
    buf_finish(&body);
    schedule_facts_finish(&op->requested);
    free(op);
}

static void schedule_call_begin(struct schedule_call *op, schedule_find_fn *find,
                                schedule_decide_fn *decide)
{
    struct api_call *call = op->call;
    call->busy = true;
    schedule_command_begin(api_schedules(call->api), call->env, &op->command, find, decide,
                           on_done);
}

static struct schedule_call *op_create(struct api_call *call, enum schedule_next_shown next)
{
    struct schedule_call *op = mem_new(struct schedule_call);
    op->call = call;
    op->next = next;
    return op;
}

/* Begins a command with a body. If the body is invalid, the call has got its response. */
static enum err begin_with_request(struct api_call *call, bool with_key,
                                   schedule_find_fn *find, schedule_decide_fn *decide)
{
    struct schedule_facts requested;
    enum err over = engine_check_quota(call->env, call->x->body.len, &call->why);
    if (over)
        return over;
    if (schedule_body_read(call, with_key, &requested))
        return OK;
    struct schedule_call *op = op_create(call, NEXT_ALWAYS);
    op->requested = requested;
    schedule_call_begin(op, find, decide);
    return OK;
}

static enum err create(struct api_call *call)
{
    return begin_with_request(call, true, find_by_key, decide_create);
}

static enum err update(struct api_call *call)
{
    return begin_with_request(call, false, find_named, decide_update);
}

static enum err switch_to(struct api_call *call, bool active)
{
    struct schedule_call *op = op_create(call, NEXT_IF_ACTIVE);
    op->active = active;
    schedule_call_begin(op, find_named, decide_switch);
    return OK;
}

static enum err activate(struct api_call *call)
{
    return switch_to(call, true);
}

static enum err deactivate(struct api_call *call)
{
    return switch_to(call, false);
}

static enum err remove_one(struct api_call *call)
{
    schedule_call_begin(op_create(call, NEXT_ALWAYS), find_named, decide_remove);
    return OK;
}

static enum err retrieve(struct api_call *call)
{
    struct schedule *schedule = find_in(call, call->params[0]);
    struct buf body = { 0 };
    if (!schedule || !schedule->version)
        return explain(&call->why, ERR_NOT_FOUND, no_schedule);
    schedule_body_write(call, schedule, NEXT_IF_ACTIVE, &body);
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    return OK;
}

/* ---- the list ---- */

/* One page. Its schedules are chosen at once but written in time slices: the next time of a
 * rare schedule may be years away, and finding it takes a long time. */
struct schedule_page {
    struct api_call *call;
    struct numbered_page which;
    uint64_t total; /* number of schedules of the environment */
    char ids[PAGE_SIZE_MAX][ID_MAX];
    size_t count, at;
    struct buf body;
    struct deferred deferred;
};

static void choose(struct schedule_page *page)
{
    const struct api_call *call = page->call;
    struct schedules *all = api_schedules(call->api);
    uint64_t from = paging_first(&page->which);
    for (struct schedule *s = NULL; (s = schedules_next(all, call->env, s));) {
        if (!s->version)
            continue;
        if (page->total >= from && page->count < page->which.size)
            memcpy(page->ids[page->count++], s->id, ID_MAX);
        page->total++;
    }
}

/* Writes the next schedule. Omits it if it was removed meanwhile. */
static void write_one(struct schedule_page *page)
{
    struct api_call *call = page->call;
    struct schedule *schedule = schedules_by_id(api_schedules(call->api), call->env,
                                                slice_of(page->ids[page->at++]));
    if (!schedule)
        return;
    if (page->body.ptr[page->body.len - 1] != '[')
        buf_add_char(&page->body, ',');
    schedule_body_write(call, schedule, NEXT_ALWAYS, &page->body);
}

static void write_some(struct deferred *deferred)
{
    struct schedule_page *page = container_of(deferred, struct schedule_page, deferred);
    struct loop *loop = engine_loop(api_engine(page->call->api));
    struct timeslice timeslice = loop_timeslice(loop);
    while (page->at < page->count && timeslice_left(&timeslice))
        write_one(page);
    if (page->at < page->count) {
        loop_defer(loop, deferred);
        return;
    }
    buf_add_text(&page->body, "],");
    paging_add(&page->body, &page->which, page->total);
    buf_add_char(&page->body, '}');
    api_reply_json(page->call, 200, buf_slice(&page->body));
    buf_finish(&page->body);
    free(page);
}

static enum err list(struct api_call *call)
{
    struct numbered_page which = { .number = 1, .size = PER_PAGE };
    const char *wrong = paging_read(call, &which);
    if (wrong) {
        api_reply_details(call, "Invalid request parameters", "issues", wrong,
                          "Must be an integer of 1 or more");
        return OK;
    }
    struct schedule_page *page = mem_new(struct schedule_page);
    page->call = call;
    page->which = which;
    page->deferred.fn = write_some;
    list_init(&page->deferred.link);
    choose(page);
    buf_add_text(&page->body, "{\"data\":[");
    call->busy = true;
    loop_defer(engine_loop(api_engine(call->api)), &page->deferred);
    return OK;
}

/* Lists the time zones. Only the exact text "true" excludes UTC. */
static enum err list_timezones(struct api_call *call)
{
    struct slice excludes = api_query(call, "excludeUtc");
    bool without_utc = slice_is(excludes, "true");
    struct slice listed = bytes_slice(api_timezones(call->api));
    struct buf body = { 0 };

    if (excludes.len && !without_utc && !slice_is(excludes, "false"))
        ignored_add_parameter(&call->ignored, SLICE("excludeUtc"));
    buf_add_text(&body, "{\"timezones\":[");
    if (!without_utc)
        buf_add_text(&body, listed.len ? "\"UTC\"," : "\"UTC\"");
    buf_add(&body, listed);
    buf_add_text(&body, "]}");
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    return OK;
}

#define ONE "/api/v1/schedules/{id}"
/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/api/v1/schedules",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = list,
      .id = "list_schedules_v1", .summary = "List schedules",
      .query = "page?: integer, perPage?: integer",
      .reply = "{data: ScheduleObject[], pagination: {currentPage: integer, totalPages: "
          "integer, count: integer}}" },
    { .method = HTTP_POST_, .path = "/api/v1/schedules",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SCHEDULE_BODY, .handle = create,
      .id = "create_schedule_v1", .summary = "Create a schedule",
      .body = "{task: string, cron: string, deduplicationKey: string, externalId?: string, "
          "timezone?: string, window?: string, ...}",
      .reply = "ScheduleObject",
      .also = "422 507" },
    { .method = HTTP_POST_, .path = "/api/v1/schedules/preview",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SCHEDULE_BODY, .handle = schedule_preview,
      .id = "preview_schedule_v1", .summary = "Show when a cron expression fires next",
      .body = "{cron: string, timezone?: string, count?: integer(1..10), ...}",
      .reply = "{description: string, timezone: string, next: datetime[]}",
      .also = "422" },
    { .method = HTTP_GET_, .path = ONE,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = retrieve,
      .id = "get_schedule_v1", .summary = "Retrieve a schedule",
      .reply = "ScheduleObject" },
    { .method = HTTP_PUT_, .path = ONE,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = SCHEDULE_BODY, .handle = update,
      .id = "update_schedule_v1", .summary = "Update a schedule",
      .body = "{task: string, cron: string, externalId?: string, timezone?: string, "
          "window?: string, ...}",
      .reply = "ScheduleObject",
      .also = "422 507" },
    { .method = HTTP_DELETE_, .path = ONE,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = remove_one,
      .id = "delete_schedule_v1", .summary = "Delete a schedule",
      .reply = "{id: string}",
      .also = "422" },
    { .method = HTTP_POST_, .path = ONE "/activate",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = activate,
      .id = "activate_schedule_v1", .summary = "Activate a schedule",
      .reply = "ScheduleObject",
      .also = "422" },
    { .method = HTTP_POST_, .path = ONE "/deactivate",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = deactivate,
      .id = "deactivate_schedule_v1", .summary = "Deactivate a schedule",
      .reply = "ScheduleObject",
      .also = "422" },
    { .method = HTTP_GET_, .path = "/api/v1/timezones",
      .handle = list_timezones,
      .id = "get_timezones_v1", .summary = "List the time zones that schedules may name",
      .query = "excludeUtc?: string",
      .reply = "GetTimezonesResult" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "ScheduleObject",
      "{id: string, type: 'IMPERATIVE'|'DECLARATIVE', task: string, active:"
      " boolean, deduplicationKey?: string|null, externalId?: string|null,"
      " generator: {type: 'CRON', expression: string, description: string},"
      " timezone: string, window?: string, nextRun?: datetime|null,"
      " nextRunEffectiveAt?: datetime|null, environments: {id: string, type:"
      " string, slug?: string, branchName?: string|null, userName?: string}[]}" },
    { "GetTimezonesResult", "{timezones: string[]}" },
    { 0 },
};

const struct area schedules_area = {
    .tag = "schedules", .is_for_users = true, .routes = routes, .schemas = schemas
};
