/* seen_json.c - parses messages of runs.v1 in JSON, and the bodies of long polls. */
#include "seen_parse.h"

#include "base/json/scan.h"
#include "base/text.h"

static int64_t number_of(struct slice text)
{
    int64_t number = 0;
    (void)text_to_i64(text, &number);
    return number;
}

static int64_t n_of(struct slice metadata)
{
    return scan_type(metadata) == SCAN_OBJECT ? number_of(scan_member(metadata, "n")) : 0;
}

static struct slice inside(struct slice string)
{
    return string.len < 2 ? (struct slice){ 0 }
                          : (struct slice){ string.ptr + 1, string.len - 2 };
}

/* Parses [runId, version, {fields}] or [runId, version, {all fields}, 1]. */
static void parse_row(const struct seen *seen, struct slice text, struct seen_row *row)
{
    struct scan_members members = scan_members(text);
    struct slice id, version, fields;
    if (!scan_next_element(&members, &id) || !scan_next_element(&members, &version) ||
        !scan_next_element(&members, &fields))
        return;
    row->run = seen_find_run(seen, inside(id));
    row->version = (uint32_t)number_of(version);
    if (scan_type(fields) == SCAN_OBJECT)
        row->n = n_of(scan_member(fields, "metadata"));
}

static void parse_rows(const struct seen *seen, struct slice rows,
                       struct seen_message *message)
{
    if (scan_type(rows) != SCAN_ARRAY)
        return;
    struct scan_members elements = scan_members(rows);
    struct slice row;
    while (scan_next_element(&elements, &row))
        parse_row(seen, row, seen_add_row(message));
}

static void take_member(struct slice key, struct slice value, struct seen_message *message)
{
    if (slice_is(key, "op"))
        message->op = seen_op_of(inside(value));
    else if (slice_is(key, "more"))
        message->more = slice_is(value, "true");
    else if (slice_is(key, "mode"))
        message->resumed = slice_is(value, "\"resume\"");
    else if (slice_is(key, "seq"))
        message->seq = number_of(value);
    else if (slice_is(key, "in"))
        message->in_ms = number_of(value);
    else if (slice_is(key, "epoch"))
        seen_keep_epoch(message, inside(value));
    else if (slice_is(key, "count"))
        message->count = number_of(value);
    else if (slice_is(key, "cpu_ns"))
        message->cpu_ns = number_of(value);
}

bool seen_parse_json(const struct seen *seen, struct slice text,
                     struct seen_message *message)
{
    struct slice key, value;
    if (!scan_is_json(text) || scan_type(text) != SCAN_OBJECT)
        return false;
    struct scan_members members = scan_members(text);
    while (scan_next_member(&members, &key, &value)) {
        if (slice_is(key, "rows"))
            parse_rows(seen, value, message);
        else
            take_member(key, value, message);
    }
    return true;
}

/* Parses {"key":"run_x","value":{"metadata":"{\"n\":1}",…},"headers":{…}}: a column is a
 * string, and in {"n":…} only the quotes are escaped. */
static void parse_change(const struct seen *seen, struct slice change,
                         struct seen_message *message)
{
    static const char N[] = "\"{\\\"n\\\":";
    struct slice key = scan_member(change, "key"), value = scan_member(change, "value");
    if (!key.ptr) {
        struct slice headers = scan_member(change, "headers");
        if (slice_is(scan_member(headers, "control"), "\"up-to-date\""))
            message->more = false;
        return;
    }
    struct seen_row *row = seen_add_row(message);
    row->run = seen_find_run(seen, inside(key));
    if (scan_type(value) != SCAN_OBJECT)
        return;
    struct slice metadata = scan_member(value, "metadata");
    if (!slice_starts(metadata, N))
        return;
    struct slice rest = slice_from(metadata, sizeof(N) - 1), digits;
    if (slice_split(&rest, '}', &digits))
        row->n = number_of(digits);
}

bool seen_parse_shape(const struct seen *seen, struct slice text,
                      struct seen_message *message)
{
    struct slice change;
    if (!scan_is_json(text) || scan_type(text) != SCAN_ARRAY)
        return false;
    message->op = SEEN_PATCH;
    message->more = true;
    struct scan_members changes = scan_members(text);
    while (scan_next_element(&changes, &change)) {
        if (scan_type(change) == SCAN_OBJECT)
            parse_change(seen, change, message);
    }
    return true;
}
