/* unread.c - a type and a value, walked side by side. */
#include "call/unread.h"

#include <ctype.h>

#include "call/operation.h"
#include "json/scan.h"

/* ---- bodies ---- */

static void tell(struct ignored *ignored, struct buf *path, struct slice type,
                 struct slice value);

/* The field that a key spells. is_open: any name is one. */
static bool find_field(struct slice object, struct slice key, struct openapi_field *field,
                       struct slice *type, bool *is_open)
{
    const char *at = object.ptr + 1;
    size_t count = 0;
    *is_open = false;
    for (; openapi_skim_field(&at, field, type); count++) {
        *is_open |= slice_is(field->name, "*");
        if (scan_key_is(key, field->name))
            return true;
    }
    *is_open |= !count;
    return false;
}

static void tell_object(struct ignored *ignored, struct buf *path, struct slice object,
                        struct slice value)
{
    struct scan_members members = scan_members(value);
    struct slice key, inner, type;
    struct openapi_field field;
    size_t len = path->len;
    bool is_open;
    while (scan_next_member(&members, &key, &inner)) {
        if (find_field(object, key, &field, &type, &is_open)) {
            buf_print(path, "%.*s.", SLICE_ARG(field.name));
            tell(ignored, path, type, inner);
            path->len = len;
        } else if (!is_open) {
            buf_add_char(path, '\0');
            ignored_add_member(ignored, path->ptr, key);
            path->len = len;
        }
    }
}

/* One of the types that a union has, without its brackets. */
static void tell_primary(struct ignored *ignored, struct buf *path, struct slice type,
                         struct slice value)
{
    const char *named;
    if (type.ptr[0] == '{')
        tell_object(ignored, path, type, value);
    else if (isupper((unsigned char)type.ptr[0]) && (named = openapi_named_type(type)))
        tell(ignored, path, slice_of(named), value);
}

/* The path ends with a dot, which an element's brackets come before. */
static void tell_elements(struct ignored *ignored, struct buf *path, struct slice type,
                          struct slice value)
{
    struct scan_members elements = scan_members(value);
    struct slice element;
    size_t len = path->len;
    path->len -= len > 0;
    buf_add_text(path, "[].");
    while (scan_next_element(&elements, &element))
        if (scan_type(element) == SCAN_OBJECT)
            tell_primary(ignored, path, type, element);
    path->len = len - (len > 0);
    if (len)
        buf_add_char(path, '.');
}

static void tell(struct ignored *ignored, struct buf *path, struct slice type,
                 struct slice value)
{
    const char *at = type.ptr;
    enum scan_type kind = scan_type(value);
    if (kind != SCAN_OBJECT && kind != SCAN_ARRAY)
        return;
    while (at < type.ptr + type.len) {
        struct slice one = openapi_skim(&at, "|,}");
        bool is_array = one.len > 2 && !memcmp(one.ptr + one.len - 2, "[]", 2);
        one.len -= is_array ? 2 : 0;
        if (is_array && kind == SCAN_ARRAY)
            tell_elements(ignored, path, one, value);
        else if (!is_array && kind == SCAN_OBJECT && one.len)
            tell_primary(ignored, path, one, value);
        at++; /* behind the bar */
    }
}

void unread_tell_body(struct api_call *call, struct slice body)
{
    const struct area *area;
    const struct operation *op = operation_find(call->route, &area);
    struct buf path = { 0 };
    if (op && op->body && area->is_for_users)
        tell(&call->ignored, &path, slice_of(op->body), body);
    buf_finish(&path);
}

/* ---- queries ---- */

static bool has_parameter(const struct operation *op, struct slice name)
{
    const char *at = op->query;
    struct openapi_field field;
    struct slice type;
    while (at && openapi_skim_field(&at, &field, &type))
        if (slice_equal(field.name, name))
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
    const struct area *area;
    const struct operation *op =
        call->query_count ? operation_find(call->route, &area) : NULL;
    for (size_t i = 0; op && i < call->query_count; i++) {
        struct slice name = call->query[i].name;
        if (!has_parameter(op, name))
            ignored_add_parameter(&call->ignored, name);
        else if (came_before(call, i))
            return explain(&call->why, ERR_INVALID,
                           "Invalid query: '%.*s' is there more than once; send it once, a "
                           "list with commas between its values",
                           SLICE_ARG(name));
    }
    return OK;
}
