/* bulk.c - the routes of bulk actions: create, list, retrieve, abort. */
#include "api/bulk/bulk.h"

#include "api/request/paging.h"
#include "api/request/route.h"
#include "base/mem.h"

enum {
    NO_BODY = 4096,
    CREATE_BODY = 64 * 1024,
    CANCEL_SMALL = 1024,
    PAGE_DEFAULT = 25,
};

static struct bulk_queue *queue_of(const struct api_call *call)
{
    return bulks_of(api_bulks(call->api), call->env);
}

static void reply_id(struct api_call *call, int status, const char *id)
{
    struct buf body = { 0 };
    buf_print(&body, "{\"id\":\"%s\"}", id);
    api_reply_json(call, status, buf_slice(&body));
    buf_finish(&body);
}

/* ---- create ---- */

struct bulk_creation {
    struct api_call *call;
    struct bulk_action *action;
    struct claim claim; /* for the request id; this struct owns its key */
    struct change change;
    struct document_write write;
};

static void on_written(struct document_write *write, enum err status)
{
    struct bulk_creation *create = container_of(write, struct bulk_creation, write);
    struct api_call *call = create->call;
    if (status) {
        bulk_queue_give_up(queue_of(call));
        bulk_action_destroy(create->action);
        if (create->claim.taken)
            reply_id(call, 202, create->claim.owner);
        else
            api_reply_error(call, status);
    } else {
        create->action->version = 1;
        bulk_queue_add(queue_of(call), create->action);
        reply_id(call, 202, create->action->id);
    }
    bytes_unref(create->claim.key);
    free(create);
}

/* Makes a repeated request return the action that the first one created. */
static void claim_request(struct bulk_creation *create)
{
    const struct bulk_action *action = create->action;
    create->claim = (struct claim){
        .kind = CLAIM_REQUEST,
        .env = create->call->env->number,
        .key = api_request_claim(create->call, SLICE(CLAIM_NO_TASK "bulk")),
        .expires_at = action->created_at + API_REQUEST_KEPT_MS,
    };
    snprintf(create->claim.owner, sizeof(create->claim.owner), "%s", action->id);
    if (create->claim.key)
        create->write.claim = &create->claim;
}

static enum err read_text(struct api_call *call, const json_t *body, const char *member,
                          struct bytes **text)
{
    const json_t *value = json_object_get(body, member);
    struct slice given = { json_string_value(value), json_string_length(value) };
    if (!value || json_is_null(value))
        return OK;
    if (!given.ptr || text_utf16_length(given) > BULK_NAME_MAX)
        return explain(&call->why, ERR_INVALID,
                       "%s: must be a string of at most %d characters", member,
                       BULK_NAME_MAX);
    *text = bytes_create(given);
    return OK;
}

static enum err read_action(struct api_call *call, const json_t *body,
                            struct bulk_action *action)
{
    const char *type = json_string_value(json_object_get(body, "action"));
    struct engine *engine = api_engine(call->api);
    int64_t now = loop_wall_ms(engine_loop(engine));

    if (!type || (strcmp(type, "cancel") && strcmp(type, "replay")))
        return explain(&call->why, ERR_INVALID, "action: must be cancel or replay");
    action->type = strcmp(type, "cancel") ? BULK_REPLAY : BULK_CANCEL;
    action->created_at = now;
    engine_make_id(engine, "bulk", now, action->id);
    enum err refused = read_text(call, body, "name", &action->name);
    refused = refused ? refused : read_text(call, body, "targetRegion", &action->region);
    if (!refused && action->region && action->type == BULK_CANCEL)
        refused = explain(&call->why, ERR_INVALID, "targetRegion: only a replay has one");
    return refused ? refused
                   : bulk_selection_read(body, call->vocabulary, now, action, &call->why);
}

static enum err create_action(struct api_call *call)
{
    struct bulk_action *action;
    json_t *body;
    if (api_read_json(call, &body))
        return ERR_INVALID;
    action = bulk_action_create();
    enum err refused = read_action(call, body, action);
    json_decref(body);
    /* A cancel reduces storage in the end, so a short one is accepted over quota. */
    if (!refused && (action->type == BULK_REPLAY || call->x->body.len > CANCEL_SMALL))
        refused = engine_check_quota(call->env, call->x->body.len, &call->why);
    if (!refused)
        refused = bulk_queue_reserve(queue_of(call), &call->why);
    if (refused) {
        bulk_action_destroy(action);
        return refused;
    }
    struct bulk_creation *create = mem_new(struct bulk_creation);
    create->call = call;
    create->action = action;
    call->busy = true;
    create->change = (struct change){
        .kind = CHANGE_DOCUMENT,
        .env = call->env->number,
        .document = { .kind = DOC_BULK,
                      .env = call->env->number,
                      .name = bytes_create(slice_of(action->id)),
                      .body = bulk_write(action, &action->progress) },
    };
    claim_request(create);
    documents_write_begin(api_engine(call->api), &create->change, 1, &create->write,
                          on_written);
    return OK;
}

/* ---- list, retrieve ---- */

static const struct bulk_action *at(const struct ranking *all, uint64_t place)
{
    struct ranked *found = ranking_at(all, place);
    return found ? container_of(found, const struct bulk_action, place) : NULL;
}

static enum err read_page(struct api_call *call, uint64_t *limit, struct slice *after,
                          struct slice *before)
{
    *after = slice_trim(api_query(call, "page[after]"));
    *before = slice_trim(api_query(call, "page[before]"));
    if (paging_read_size(call, PAGE_SIZE_MAX, limit))
        return ERR_INVALID;
    if ((after->len && !text_is_id(*after, "bulk")) ||
        (before->len && !text_is_id(*before, "bulk")))
        return explain(&call->why, ERR_INVALID,
                       "page: must be a cursor of an earlier page");
    return OK;
}

/* Lists one page. Places count from the oldest, pages from the newest: shows the places
 * first > … >= last. */
static enum err list_actions(struct api_call *call)
{
    const struct ranking *all = bulk_queue_all(queue_of(call));
    uint64_t limit = PAGE_DEFAULT, count = ranking_count(all), first = count, last;
    struct slice after, before;
    struct buf body = { 0 };

    if (read_page(call, &limit, &after, &before))
        return ERR_INVALID;
    if (before.len) {
        last = ranking_place(all, before);
        last += last < count && slice_is(before, at(all, last)->id);
        first = count - last > limit ? last + limit : count;
    } else {
        first = after.len ? ranking_place(all, after) : count;
        last = first > limit ? first - limit : 0;
    }
    buf_add_text(&body, "{\"data\":[");
    for (uint64_t place = first; place > last; place--) {
        if (place < first)
            buf_add_char(&body, ',');
        bulk_show(at(all, place - 1), &body);
    }
    buf_add_text(&body, "],\"pagination\":{");
    if (first > last && last > 0)
        buf_print(&body, "\"next\":\"%s\"%s", at(all, last)->id, first < count ? "," : "");
    if (first > last && first < count)
        buf_print(&body, "\"previous\":\"%s\"", at(all, first - 1)->id);
    buf_add_text(&body, "}}");
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    return OK;
}

static enum err find_action(struct api_call *call, struct bulk_action **action)
{
    *action = bulk_queue_find(queue_of(call), call->params[0]);
    return *action ? OK : explain(&call->why, ERR_NOT_FOUND, "Bulk action not found");
}

static enum err retrieve(struct api_call *call)
{
    struct bulk_action *action;
    struct buf body = { 0 };
    if (find_action(call, &action))
        return ERR_NOT_FOUND;
    bulk_show(action, &body);
    api_reply_json(call, 200, buf_slice(&body));
    buf_finish(&body);
    return OK;
}

/* ---- abort ---- */

struct abort_call {
    struct bulk_abort abort;
    struct api_call *call;
};

static const char too_late[] = "The bulk action has completed already";

static void on_ended(struct bulk_abort *abort, const struct bulk_action *action)
{
    struct abort_call *op = container_of(abort, struct abort_call, abort);
    struct api_call *call = op->call;
    free(op);
    if (!action)
        api_reply_error(call, ERR_DRAINING);
    else if (action->progress.status == BULK_ABORTED)
        reply_id(call, 200, action->id);
    else
        api_reply_refusal(call, 409, too_late);
}

static enum err abort_action(struct api_call *call)
{
    struct bulk_action *action;
    if (find_action(call, &action))
        return ERR_NOT_FOUND;
    if (action->progress.status == BULK_COMPLETED)
        return explain(&call->why, ERR_CONFLICT, too_late);
    if (action->progress.status == BULK_ABORTED) {
        reply_id(call, 200, action->id);
        return OK;
    }
    struct abort_call *op = mem_new(struct abort_call);
    op->call = call;
    op->abort.done = on_ended;
    call->busy = true;
    bulk_queue_abort(queue_of(call), action, &op->abort);
    return OK;
}

#define ACTIONS "/api/v1/bulk-actions"

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_POST_, .path = ACTIONS,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = CREATE_BODY, .handle = create_action,
      .claims = true, .id = "create_bulk_action_v1", .summary = "Cancel or replay many runs",
      .body = "CreateBulkAction",
      .status = 202,
      .reply = "{id: string}",
      .also = "507" },
    { .method = HTTP_GET_, .path = ACTIONS,
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = list_actions,
      .id = "list_bulk_actions_v1", .summary = "List bulk actions",
      .query = "page[size]?: integer(1..100), page[after]?: string, page[before]?: string",
      .reply = "{data: BulkAction[], pagination: CursorPage}" },
    { .method = HTTP_GET_, .path = ACTIONS "/{id}",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = retrieve,
      .id = "retrieve_bulk_action_v1", .summary = "Retrieve a bulk action",
      .reply = "BulkAction" },
    { .method = HTTP_POST_, .path = ACTIONS "/{id}/abort",
      .auth = AUTH_KEY | AUTH_FOR_USER, .body_limit = NO_BODY, .handle = abort_action,
      .id = "abort_bulk_action_v1", .summary = "Abort a bulk action",
      .reply = "{id: string}",
      .also = "409" },
    { 0 },
};
/* clang-format on */

static const struct schema schemas[] = {
    { "CreateBulkAction",
      "{action: 'cancel'|'replay', filter?: BulkFilter, runIds?: string[],"
      " name?: string(0..255), targetRegion?: string(0..255), ...}" },
    { "BulkFilter",
      "{status?: Strings, taskIdentifier?: Strings, version?: Strings, tag?: Strings,"
      " from?: datetime|number, to?: datetime|number, period?: string, schedule?: string,"
      " bulkAction?: string, isTest?: boolean, rootOnly?: boolean, batch?: string,"
      " machine?: Strings, region?: Strings, queue?: BulkQueue|BulkQueue[], ...}" },
    { "BulkQueue", "{type: 'task'|'custom', name: string, ...}" },
    { "Strings", "string|string[]" },
    { "BulkAction", "{id: string, name?: string, type: 'CANCEL'|'REPLAY',"
                    " status: 'PENDING'|'COMPLETED'|'ABORTED',"
                    " counts: {total: integer, success: integer, failure: integer},"
                    " createdAt: datetime, completedAt?: datetime}" },
    { "CursorPage", "{next?: string, previous?: string}" },
    { 0 },
};

const struct area bulk_area = {
    .tag = "runs", .is_for_users = true, .routes = routes, .schemas = schemas
};
