/* operation.c - reads operations on metadata, and explains what is wrong with them.
 *
 * A key that starts with "$." is a path: parts after a dot, or in brackets as a number or
 * in quotes. The container decides whether a number is an index or a name. */
#include "core/model/operation.h"

#include <math.h>

#include "base/json/members.h"
#include "base/text.h"

enum { MEMBERS_MAX = 16 }; /* members of an operation; three are used */

static const char *const type_names[OPERATION_TYPE_COUNT] = {
    "set", "delete", "append", "remove", "increment", "update",
};

/* Reads ['name'], ["name"] or [0]. */
static bool take_bracket(struct slice *rest, struct slice *part)
{
    if (rest->len < 2)
        return false;
    struct slice text = slice_from(*rest, 1);
    char quote = text.ptr[0];
    bool quoted = quote == '\'' || quote == '"';
    if (quoted)
        text = slice_from(text, 1);
    const char *end = text.len ? memchr(text.ptr, quoted ? quote : ']', text.len) : NULL;
    if (!end)
        return false;
    *part = (struct slice){ text.ptr, (size_t)(end - text.ptr) };
    *rest = slice_from(text, part->len + 1);
    if (quoted) {
        if (!slice_starts(*rest, "]"))
            return false;
        *rest = slice_from(*rest, 1);
        return true;
    }
    uint64_t number;
    return text_to_u64(*part, &number) == OK;
}

static bool take_part(struct slice *rest, struct slice *part)
{
    if (rest->ptr[0] == '.')
        *rest = slice_from(*rest, 1);
    else if (rest->ptr[0] != '[')
        return false;
    if (slice_starts(*rest, "["))
        return take_bracket(rest, part);

    size_t len = 0;
    while (len < rest->len && rest->ptr[len] != '.' && rest->ptr[len] != '[')
        len++;
    *part = (struct slice){ rest->ptr, len };
    *rest = slice_from(*rest, len);
    return len > 0 && !slice_is(*part, "*");
}

/* These functions return what is wrong, or NULL. */

static const char *read_parts(struct operation *operation)
{
    struct slice rest = buf_slice(&operation->key);
    operation->part_count = 0;
    if (!slice_starts(rest, "$.")) {
        operation->parts[operation->part_count++] = rest;
        return NULL;
    }
    rest = slice_from(rest, 1);
    while (rest.len) {
        if (operation->part_count == OPERATION_PARTS_MAX)
            return "the path in key is too long";
        if (!take_part(&rest, &operation->parts[operation->part_count++]))
            return "key is not a path like $.a.b, $.list[0] or $.a['b c']";
    }
    return NULL;
}

static const char *read_key(struct slice json, struct operation *operation)
{
    buf_clear(&operation->key);
    if (!scan_string(json, &operation->key))
        return "key must be a string";
    const char *problem = read_parts(operation);
    if (problem)
        return problem;

    static const char *const refused[] = { "__proto__", "constructor", "prototype" };
    for (size_t i = 0; i < operation->part_count; i++)
        for (size_t j = 0; j < sizeof(refused) / sizeof(refused[0]); j++)
            if (slice_is(operation->parts[i], refused[j]))
                return "key must not name __proto__, constructor or prototype";
    return NULL;
}

static const char *read_value(struct slice json, struct operation *operation)
{
    operation->value = json;
    enum scan_type type = scan_type(operation->value);
    double number;
    switch (operation->type) {
    case OPERATION_DELETE: return NULL;
    case OPERATION_UPDATE: return type == SCAN_OBJECT ? NULL : "value must be an object";
    case OPERATION_INCREMENT:
        if (scan_number(operation->value, &number) && isfinite(number))
            return NULL;
        return "value must be a number";
    default: return type == SCAN_NONE ? "value is missing" : NULL;
    }
}

static const char *read_type(struct slice json, struct operation *operation)
{
    struct slice name = scan_unquoted(slice_trim(json));
    unsigned type = 0;
    while (type < OPERATION_TYPE_COUNT && !scan_key_is(name, slice_of(type_names[type])))
        type++;
    if (type == OPERATION_TYPE_COUNT)
        return "type must be set, delete, append, remove, increment or update";
    operation->type = (enum operation_type)type;
    return NULL;
}

const char *operation_read(struct operation *operation, struct slice json)
{
    static const char *const names[] = { "type", "key", "value" };
    struct slice values[3];
    if (scan_type(json) != SCAN_OBJECT)
        return "an operation must be an object";
    if (!members_find_few(json, MEMBERS_MAX, names, 3, values))
        return "an operation must have at most 16 members";
    const char *problem = read_type(values[0], operation);
    operation->part_count = 0;
    if (!problem && operation->type != OPERATION_UPDATE)
        problem = read_key(values[1], operation);
    if (!problem)
        problem = read_value(values[2], operation);
    return problem;
}

void operation_finish(struct operation *operation)
{
    buf_finish(&operation->key);
}
