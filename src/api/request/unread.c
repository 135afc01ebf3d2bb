/* unread.c - compares a request with the types of its route, member by member. */
#include "api/request/unread.h"

#include <ctype.h>

#include "api/request/parts.h"
#include "api/request/routes.h"
#include "api/request/type.h"
#include "base/json/scan.h"

/* ---- bodies ---- */

/* Members of one body that are checked, in at most 2 ms. Later ones are not reported. */
enum { LOOKED_AT_MAX = 16384 };

/* The call, and the place in its body: names, each followed by a dot. */
struct location {
    struct api_call *call;
    struct buf path;
    unsigned looked_at;
};

static void report(struct location *location, struct slice type, struct slice value);

/* Returns NULL if no area has a type of that name. */
static const char *named_type(const struct api *api, struct slice name)
{
    for (size_t i = 0; i < api->area_count; i++) {
        const struct schema *schema = api->areas[i]->schemas;
        for (; schema && schema->name; schema++)
            if (slice_is(name, schema->name))
                return schema->type;
    }
    return NULL;
}

/* Finds the field that a key spells. is_open: any name is allowed. */
static bool find_field(struct slice object, struct slice key, struct type_field *field,
                       struct slice *type, bool *is_open)
{
    const char *at = object.ptr + 1;
    size_t count = 0;
    *is_open = false;
    for (; type_skip_field(&at, field, type); count++) {
        *is_open |= slice_is(field->name, "*");
        if (scan_key_is(key, field->name))
            return true;
    }
    *is_open |= !count;
    return false;
}

static void report_object(struct location *location, struct slice object,
                          struct slice value)
{
    struct scan_members members = scan_members(value);
    struct slice key, inner, type;
    struct type_field field;
    struct buf *path = &location->path;
    size_t len = path->len;
    bool is_open;
    while (location->looked_at < LOOKED_AT_MAX &&
           scan_next_member(&members, &key, &inner)) {
        location->looked_at++;
        if (find_field(object, key, &field, &type, &is_open)) {
            buf_print(path, "%.*s.", SLICE_ARG(field.name));
            report(location, type, inner);
            path->len = len;
        } else if (!is_open) {
            buf_add_char(path, '\0');
            ignored_add_member(&location->call->ignored, path->ptr, key);
            path->len = len;
        }
    }
}

/* Reports the parts of a value that are not read. type: one of a union's types, without its
 * brackets. */
static void report_primary(struct location *location, struct slice type, struct slice value)
{
    const char *named;
    if (type.ptr[0] == '{')
        report_object(location, type, value);
    else if (isupper((unsigned char)type.ptr[0]) &&
             (named = named_type(location->call->api, type)))
        report(location, slice_of(named), value);
}

/* The same for the elements of a list. The path ends with a dot, which an element's
 * brackets precede. */
static void report_elements(struct location *location, struct slice type,
                            struct slice value)
{
    struct scan_members elements = scan_members(value);
    struct slice element;
    struct buf *path = &location->path;
    size_t len = path->len;
    path->len -= len > 0;
    buf_add_text(path, "[].");
    while (scan_next_element(&elements, &element))
        if (scan_type(element) == SCAN_OBJECT)
            report_primary(location, type, element);
    path->len = len - (len > 0);
    if (len)
        buf_add_char(path, '.');
}

static void report(struct location *location, struct slice type, struct slice value)
{
    const char *at = type.ptr;
    enum scan_type kind = scan_type(value);
    if (kind != SCAN_OBJECT && kind != SCAN_ARRAY)
        return;
    while (at < type.ptr + type.len) {
        struct slice one = type_skip(&at, "|,}");
        bool is_array = one.len > 2 && !memcmp(one.ptr + one.len - 2, "[]", 2);
        one.len -= is_array ? 2 : 0;
        if (is_array && kind == SCAN_ARRAY)
            report_elements(location, one, value);
        else if (!is_array && kind == SCAN_OBJECT && one.len)
            report_primary(location, one, value);
        at++; /* after the bar */
    }
}

void unread_report_body(struct api_call *call, struct slice body)
{
    const struct route *route = call->route;
    struct location location = { .call = call };
    if (route && route->body && call->area->is_for_users)
        report(&location, slice_of(route->body), body);
    buf_finish(&location.path);
}

void unread_report_whole_body(struct api_call *call)
{
    static const char *const none[] = { NULL };
    struct slice body = slice_trim(call->x->body);
    if (!call->route->body && call->area->is_for_users && body.len && scan_is_json(body))
        ignored_add_others(&call->ignored, "", body, none);
}

/* ---- queries ---- */

static bool has_parameter(const struct routed *routed, struct slice name)
{
    for (size_t i = 0; i < routed->query_count; i++)
        if (slice_equal(routed->query[i], name))
            return true;
    return false;
}

static bool came_before(const struct api_call *call, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (slice_equal(call->query[i].name, call->query[index].name))
            return true;
    return false;
}

enum err unread_check_query(struct api_call *call)
{
    for (size_t i = 0; i < call->query_count; i++) {
        struct slice name = call->query[i].name;
        bool is_known = has_parameter(call->routed, name);
        if (!is_known && slice_starts(name, "filter["))
            return explain(&call->why, ERR_INVALID,
                           "Invalid query: unknown filter \"%.*s\"; without it, the call "
                           "would match more than you mean",
                           SLICE_ARG(text_clip(name)));
        if (!is_known)
            ignored_add_parameter(&call->ignored, name);
        else if (came_before(call, i))
            return explain(&call->why, ERR_INVALID,
                           "Invalid query: \"%.*s\" occurs more than once; send it once, "
                           "with commas between values",
                           SLICE_ARG(name));
    }
    return OK;
}

/* ---- headers ---- */

void unread_report_branch(struct api_call *call, const struct account *account)
{
    struct slice branch = http_header(call->x, "x-trigger-branch");
    if (branch.len && account && account->type != ENVIRONMENT_PREVIEW)
        ignored_add_parameter(&call->ignored, SLICE("x-trigger-branch"));
}

enum err unread_check_headers(struct api_call *call)
{
    struct slice version = http_header(call->x, "x-trigger-api-version");
    struct slice encoding = http_header(call->x, "content-encoding");
    bool takes_any = call->route && call->route->signed_form == SIGNED_CALLBACK;
    if (encoding.len && !slice_is(encoding, "identity") && !takes_any)
        return explain(
            &call->why, ERR_MEDIA_TYPE,
            "Content-Encoding: %.*s is not supported; send the body uncompressed",
            SLICE_ARG(text_clip(encoding)));
    if (http_header(call->x, API_REQUEST_KEY).len > API_REQUEST_ID_MAX)
        return explain(&call->why, ERR_INVALID,
                       "Headers Error: " API_REQUEST_KEY " must have at most "
                       "%d characters",
                       API_REQUEST_ID_MAX);
    if (version.len && call->vocabulary != VOCABULARY_B)
        ignored_add_parameter(&call->ignored, SLICE("x-trigger-api-version"));
    unread_report_branch(call, call->account);
    return OK;
}
