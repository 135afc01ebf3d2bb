/* request.c - reads a request: query, body, encoding, scopes, the gateway's address. */
#include "api/request/call.h"
#include "api/request/route.h"
#include "api/request/unread.h"
#include "base/json/json_tree.h"
#include "base/json/scan.h"
#include "base/mem.h"

enum { ENVELOPE_DEPTH_MAX = 64, MEMBERS_MAX = 1000 };

/* Decodes into call->text, which must not move: its memory is reserved before the first
 * text. A tag in a query may have a zero byte; a segment of a path may not. */
static enum err decode(struct api_call *call, struct slice raw, bool plus,
                       struct slice *out)
{
    static const char zero[] = "%00";
    char *begin = call->text.ptr + call->text.len, *at = begin;
    for (const char *found; plus && (found = memmem(raw.ptr, raw.len, zero, 3)); at++) {
        size_t before = (size_t)(found - raw.ptr), len;
        if (text_percent_decode((struct slice){ raw.ptr, before }, plus, at, &len))
            return ERR_INVALID;
        at += len;
        *at = '\0';
        raw = slice_from(raw, before + 3);
    }
    size_t len;
    if (text_percent_decode(raw, plus, at, &len))
        return ERR_INVALID;
    *out = (struct slice){ begin, (size_t)(at - begin) + len };
    call->text.len += out->len;
    return OK;
}

static size_t count_parameters(struct slice query)
{
    size_t count = query.len ? 1 : 0;
    for (size_t i = 0; i < query.len && count < API_QUERY_MAX; i++)
        count += query.ptr[i] == '&';
    return count;
}

enum err api_read_target(struct api_call *call)
{
    struct slice query = call->x->query, pair;
    buf_reserve(&call->text, call->x->path.len + query.len + 1);
    for (size_t i = 0; i < call->param_count; i++)
        if (decode(call, call->params[i], false, &call->params[i]))
            return explain(&call->why, ERR_INVALID,
                           "The path has a segment that is not percent-encoded UTF-8");
    if (call->route->auth & ENDS_ATTEMPT)
        return OK; /* its query is ignored, whatever it contains */
    call->query = mem_new_array(struct query_pair, count_parameters(query));
    while (slice_split(&query, '&', &pair)) {
        struct slice name, value = pair;
        if (!pair.len)
            continue;
        slice_split(&value, '=', &name);
        if (!value.ptr)
            value = SLICE("");
        if (call->query_count == API_QUERY_MAX)
            return explain(&call->why, ERR_INVALID, "More than %d query parameters",
                           API_QUERY_MAX);
        struct query_pair *one = &call->query[call->query_count];
        if (decode(call, name, true, &one->name) || decode(call, value, true, &one->value))
            return explain(&call->why, ERR_INVALID,
                           "The query has a part that is not percent-encoded UTF-8");
        call->query_count++;
    }
    return OK;
}

/* Returns true for a weight of Accept-Encoding that means no: "q=0", "q=0.000". */
static bool is_zero(struct slice weight)
{
    for (size_t i = 2; i < weight.len; i++)
        if (weight.ptr[i] != '0' && weight.ptr[i] != '.')
            return false;
    return weight.len > 2;
}

bool api_accepts_gzip(const struct api_call *call)
{
    struct slice rest = http_header(call->x, "accept-encoding"), one, name;
    while (rest.ptr && slice_split(&rest, ',', &one)) {
        slice_split(&one, ';', &name);
        if (slice_is(slice_trim(name), "gzip"))
            return !is_zero(slice_trim(one));
    }
    return false;
}

struct slice api_request_id(const struct api_call *call)
{
    struct slice id = http_header(call->x, API_REQUEST_KEY);
    if (call->made_key[0])
        return slice_of(call->made_key);
    return id.len ? id : (struct slice){ 0 };
}

struct bytes *api_request_claim(const struct api_call *call, struct slice kind)
{
    const struct identity *who = call->identity;
    struct slice id = api_request_id(call);
    struct buf space = { 0 };
    if (!id.ptr)
        return NULL;
    buf_add(&space, kind);
    if (who->kind == CREDENTIAL_PUBLIC_TOKEN) {
        buf_add(&space, SLICE(CLAIM_NO_TASK));
        buf_add(&space, (struct slice){ (const char *)who->hash, sizeof(who->hash) });
    }
    struct bytes *key = idempotency_claim_key(buf_slice(&space), id);
    buf_finish(&space);
    return key;
}

bool api_claim_for_user(const struct api_call *call, const char *kind, const char *inside,
                        struct claim *claim)
{
    struct buf space = { 0 };
    int64_t now_ms = loop_wall_ms(engine_loop(api_engine(call->api)));
    buf_add_text(&space, CLAIM_NO_TASK);
    buf_print(&space, "%s\n%s\n%s", kind, call->identity->user->id, inside);
    *claim = (struct claim){
        .kind = CLAIM_REQUEST,
        .env = ENV_INSTALLATION,
        .key = api_request_claim(call, buf_slice(&space)),
        .expires_at = now_ms + API_REQUEST_KEPT_MS,
    };
    buf_finish(&space);
    return claim->key;
}

struct slice api_query(const struct api_call *call, const char *name)
{
    for (size_t i = 0; i < call->query_count; i++)
        if (slice_is(call->query[i].name, name))
            return call->query[i].value;
    return (struct slice){ 0 };
}

static const char no_object[] = "Validation error: the body must be a JSON object";
static const char many_members[] = "Validation error: the body has more than %d members";

enum err api_read_json(struct api_call *call, json_t **body)
{
    struct slice text = slice_trim(call->x->body);
    if (!text.len)
        return explain(&call->why, ERR_INVALID, "Request body is empty");
    if (!scan_is_json(text))
        return explain(&call->why, ERR_INVALID, "Invalid JSON");
    if (scan_deeper_than(text, ENVELOPE_DEPTH_MAX))
        return explain(&call->why, ERR_INVALID, "Invalid JSON: nested deeper than %d",
                       ENVELOPE_DEPTH_MAX);
    if (scan_type(text) != SCAN_OBJECT)
        return explain(&call->why, ERR_INVALID, no_object);
    if (scan_has_more_members(text, MEMBERS_MAX))
        return explain(&call->why, ERR_INVALID, many_members, MEMBERS_MAX);
    *body = json_tree_read(text, TREE_ONE_OF_EACH, &call->why);
    if (!*body)
        return ERR_INVALID;
    unread_report_body(call, text);
    return OK;
}

enum err api_read_object(struct api_call *call, struct slice *body)
{
    struct slice text = slice_trim(call->x->body);
    if (!text.len)
        return explain(&call->why, ERR_INVALID, "Request body is empty");
    if (!scan_is_json(text))
        return explain(&call->why, ERR_INVALID, "Invalid JSON");
    if (scan_type(text) != SCAN_OBJECT)
        return explain(&call->why, ERR_INVALID, no_object);
    if (!scan_has_at_most(text, MEMBERS_MAX))
        return explain(&call->why, ERR_INVALID, many_members, MEMBERS_MAX);
    if (scan_has_duplicate(text))
        return explain(&call->why, ERR_INVALID,
                       "Validation error: the body names a member twice");
    unread_report_body(call, text);
    *body = text;
    return OK;
}

enum err api_check_scope(struct api_call *call, const char *action, const char *type,
                         struct slice id)
{
    return identity_may(call->identity, action, type, id) ? OK : ERR_FORBIDDEN;
}

bool api_identity_may_run(const struct identity *who, const char *action,
                          const struct run *run)
{
    if (identity_may(who, action, "runs", slice_of(run->id)) ||
        identity_may(who, action, "tasks", bytes_slice(run->task)))
        return true;
    if (strcmp(action, "read"))
        return false;
    for (uint32_t i = 0; run->tags && i < run->tags->count; i++)
        if (identity_may(who, action, "tags", bytes_slice(run->tags->names[i])))
            return true;
    return run->batch && identity_may(who, action, "batch", bytes_slice(run->batch));
}

enum err api_check_run_scope(struct api_call *call, const char *action,
                             const struct run *run)
{
    return api_identity_may_run(call->identity, action, run) ? OK : ERR_FORBIDDEN;
}

static struct slice public_url(const struct api *api)
{
    struct slice url = slice_of(api_options(api)->public_url);
    while (url.len && url.ptr[url.len - 1] == '/')
        url.len--;
    return url;
}

struct slice api_path_prefix(const struct api *api)
{
    struct slice url = public_url(api);
    const char *host = url.len ? memmem(url.ptr, url.len, "//", 2) : NULL;
    struct slice rest =
        host ? slice_from(url, (size_t)(host + 2 - url.ptr)) : (struct slice){ 0 };
    const char *path = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    return path ? slice_from(rest, (size_t)(path - rest.ptr)) : (struct slice){ 0 };
}

void api_base_url(const struct api_call *call, struct buf *out)
{
    struct slice url = public_url(call->api);
    if (url.len) {
        buf_add(out, url);
        return;
    }
    buf_add_text(out, call->x->secure ? "https://" : "http://");
    buf_add(out, http_header(call->x, "host"));
}

bool api_identity_may_follow(const struct identity *identity, const struct filter *filter)
{
    struct slice type = { 0 };
    if (identity_may(identity, "read", "runs", type))
        return true;
    struct slice name = bytes_slice(filter->name);
    if (filter->kind == TOPIC_BATCH)
        return identity_may(identity, "read", "batch", name);
    if (filter->kind == TOPIC_RUN)
        return identity_may(identity, "read", "runs", name);
    const struct query *query = filter->query;
    for (size_t i = 0; query && i < query->filter.tag_count; i++)
        if (identity_may(identity, "read", "tags", query->filter.tags[i]))
            return true;
    return filter->kind == TOPIC_TAG && identity_may(identity, "read", "tags", name);
}

bool api_identity_may_list(const struct identity *identity, const struct run_filter *filter)
{
    struct slice whole = { 0 };
    if (identity_may(identity, "read", "runs", whole) ||
        identity_may(identity, "read", "tasks", whole))
        return true;
    for (size_t i = 0; i < filter->task_count; i++)
        if (!identity_may(identity, "read", "tasks", filter->tasks[i]))
            return false;
    return filter->task_count > 0;
}

enum err api_drop_body(struct api_call *call, struct slice piece)
{
    (void)call;
    (void)piece;
    return OK;
}
