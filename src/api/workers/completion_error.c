/* completion_error.c - keeps an error unchanged, or rewrites it within the limits.
 *
 *   {"type":"BUILT_IN_ERROR","message":"a…" 1.3 MB,"causes":[],"more":1}
 *     ─► {"type":"BUILT_IN_ERROR","message":"a… (cut, 1.3 MB)","causes":[],"more":1}
 *
 *   {"type":"NEWER_ERROR","message":"a"}
 *     ─► {"type":"INTERNAL_ERROR","code":"TASK_EXECUTION_FAILED",
 *         "message":"unknown error type \"NEWER_ERROR\": a"} */
#include "api/workers/completion_error.h"

#include "base/json/members.h"
#include "base/json/scan.h"

enum {
    KEPT_MEMBERS_MAX = 1000, /* of an error, without those that clients see */
    CAUSES_MAX = 10,
    CAUSE_TEXT_MAX = 8 * 1024, /* bytes */
};

static const char *const types[] = { "\"BUILT_IN_ERROR\"", "\"CUSTOM_ERROR\"",
                                     "\"STRING_ERROR\"", "\"INTERNAL_ERROR\"" };

enum error_member { TYPE, MESSAGE, RAW, NAME, STACK, CODE, CAUSES, SHOWN_COUNT };

/* The members that clients see. */
static const char *const shown[SHOWN_COUNT] = {
    [TYPE] = "type",        [MESSAGE] = "message", [RAW] = "raw",       [NAME] = "name",
    [STACK] = "stackTrace", [CODE] = "code",       [CAUSES] = "causes",
};

/* ---- cut texts ---- */

/* Appends the text of a string, not yet as JSON. Returns false if it is not a string. */
static bool add_text(struct buf *text, struct body_fields *fields, struct slice value,
                     size_t most)
{
    size_t len;
    if (!body_fields_begin(fields, value, most, text, &len))
        return false;
    if (len > most)
        buf_add_cut(text, len);
    return true;
}

/* Adds a string. A short one keeps its bytes. */
static void add_string(struct buf *out, struct body_fields *fields, struct slice value,
                       size_t most)
{
    struct buf text = { 0 };
    if (value.len <= most && !body_fields_has_mark(value)) {
        buf_add(out, value);
        return;
    }
    add_text(&text, fields, value, most);
    buf_add_json(out, buf_slice(&text));
    buf_finish(&text);
}

/* Adds the text of a CUSTOM_ERROR, which SDKs parse as JSON. A text that is too long
 * becomes an object with its beginning, as with the SDK's own limit. */
static void add_custom(struct buf *out, struct body_fields *fields, struct slice value,
                       size_t most)
{
    struct buf text = { 0 }, object = { 0 };
    size_t len;
    body_fields_begin(fields, value, most, &text, &len);
    if (len > most) {
        buf_add_cut(&text, len);
        buf_add_text(&object, "{\"truncated\":true,\"preview\":");
        buf_add_json(&object, buf_slice(&text));
        buf_add_char(&object, '}');
        buf_add_json(out, buf_slice(&object));
    } else {
        buf_add_json(out, buf_slice(&text));
    }
    buf_finish(&text);
    buf_finish(&object);
}

/* ---- an error that is rewritten ---- */

static void add_name(struct buf *out, struct slice key)
{
    if (out->ptr[out->len - 1] != '{')
        buf_add_char(out, ',');
    buf_add_char(out, '"');
    buf_add(out, key);
    buf_add_text(out, "\":");
}

static void add_cause(struct buf *out, struct body_fields *fields, struct slice cause)
{
    static const char *const names[] = { "name", "message", "stackTrace" };
    struct slice values[3];
    members_find_few(cause, KEPT_MEMBERS_MAX, names, 3, values);
    buf_add_char(out, '{');
    for (size_t i = 0; i < 3; i++) {
        if (scan_type(values[i]) != SCAN_STRING)
            continue;
        add_name(out, slice_of(names[i]));
        add_string(out, fields, values[i], CAUSE_TEXT_MAX);
    }
    buf_add_char(out, '}');
}

static void add_causes(struct buf *out, struct body_fields *fields, struct slice causes)
{
    struct scan_members elements = scan_members(causes);
    struct slice cause;
    buf_add_char(out, '[');
    for (unsigned i = 0; i < CAUSES_MAX && scan_next_element(&elements, &cause); i++) {
        if (i)
            buf_add_char(out, ',');
        add_cause(out, fields, cause);
    }
    buf_add_char(out, ']');
}

static enum error_member member_named(struct slice key)
{
    unsigned i = 0;
    while (i < SHOWN_COUNT && !scan_key_is(key, slice_of(shown[i])))
        i++;
    return (enum error_member)i;
}

static size_t text_limit(const struct buf *out, size_t begin)
{
    size_t used = out->len - begin;
    size_t left = used < COMPLETION_ERROR_MAX ? COMPLETION_ERROR_MAX - used : 0;
    return left < COMPLETION_TEXT_MAX ? left : COMPLETION_TEXT_MAX;
}

static void add_member(struct buf *out, struct body_fields *fields, struct slice key,
                       struct slice value, enum error_member which, bool is_custom,
                       size_t most)
{
    add_name(out, key);
    if (which == CAUSES && scan_type(value) == SCAN_ARRAY)
        add_causes(out, fields, value);
    else if (which == RAW && is_custom && scan_type(value) == SCAN_STRING)
        add_custom(out, fields, value, most);
    else if (scan_type(value) == SCAN_STRING)
        add_string(out, fields, value, most);
    else
        buf_add(out, value);
}

/* Returns false for a member that is left out: too many, too long, or without a short
 * name. */
static bool is_kept(struct slice key, struct slice value, enum error_member which,
                    unsigned count, size_t most)
{
    bool is_text = scan_type(value) == SCAN_STRING;
    if (which == TYPE || body_fields_has_mark(key) || key.len > most)
        return false;
    if (which == CAUSES && scan_type(value) == SCAN_ARRAY)
        return true;
    return (is_text || (!body_fields_has_mark(value) && value.len <= most)) &&
           (which < SHOWN_COUNT || count < KEPT_MEMBERS_MAX);
}

static void write_again(struct buf *out, struct body_fields *fields, struct slice error,
                        struct slice type)
{
    struct scan_members members = scan_members(error);
    struct slice key, value;
    size_t begin = out->len;
    bool is_custom = slice_is(type, "\"CUSTOM_ERROR\"");
    buf_add_text(out, "{\"type\":");
    buf_add(out, type);
    for (unsigned i = 0; i < COMPLETION_LOOKED_AT_MAX; i++) {
        if (!scan_next_member(&members, &key, &value))
            break;
        enum error_member which = member_named(key);
        size_t most = text_limit(out, begin);
        if (is_kept(key, value, which, i, most))
            add_member(out, fields, key, value, which, is_custom, most);
    }
    buf_add_char(out, '}');
}

/* ---- an error of an unknown form ---- */

static void add_unknown_text(struct buf *text, struct body_fields *fields,
                             struct slice error, const struct slice *values)
{
    if (scan_type(values[TYPE]) == SCAN_STRING) {
        buf_add_text(text, "unknown error type ");
        add_string(text, fields, values[TYPE], CAUSE_TEXT_MAX);
    } else {
        buf_add_text(text, "error without a type");
    }
    buf_add_text(text, ": ");
    if (!add_text(text, fields, values[MESSAGE], COMPLETION_TEXT_MAX) &&
        !add_text(text, fields, values[RAW], COMPLETION_TEXT_MAX) &&
        !add_text(text, fields, error, COMPLETION_TEXT_MAX) &&
        !body_fields_has_mark(error) && error.len <= COMPLETION_TEXT_MAX)
        buf_add(text, error);
}

void completion_error_add_internal(struct buf *out, const char *code, struct slice message)
{
    buf_print(out, "{\"type\":\"INTERNAL_ERROR\",\"code\":\"%s\",\"message\":", code);
    buf_add_json(out, message);
    buf_add_char(out, '}');
}

static void add_unknown(struct buf *out, struct body_fields *fields, struct slice error,
                        const struct slice *values)
{
    struct buf text = { 0 };
    if (error.len)
        add_unknown_text(&text, fields, error, values);
    else
        buf_add_text(&text, "the worker sent a failed attempt without an error");
    completion_error_add_internal(out, "TASK_EXECUTION_FAILED", buf_slice(&text));
    buf_finish(&text);
    if (scan_type(values[STACK]) != SCAN_STRING)
        return;
    out->len--; /* its closing brace */
    add_name(out, slice_of(shown[STACK]));
    add_string(out, fields, values[STACK], COMPLETION_TEXT_MAX);
    buf_add_char(out, '}');
}

/* ---- any error ---- */

static bool is_known(struct slice type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (slice_is(type, types[i]))
            return true;
    return false;
}

void completion_error_add(struct buf *out, struct body_fields *fields, struct slice error)
{
    struct slice values[SHOWN_COUNT];
    members_find_few(error, COMPLETION_LOOKED_AT_MAX, shown, SHOWN_COUNT, values);
    if (!is_known(values[TYPE]))
        add_unknown(out, fields, error, values);
    else if (error.len > COMPLETION_TEXT_MAX || body_fields_has_mark(error) ||
             !scan_has_at_most(error, KEPT_MEMBERS_MAX))
        write_again(out, fields, error, values[TYPE]);
    else
        buf_add(out, error);
}
