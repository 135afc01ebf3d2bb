/* encode_json.c - writes members as JSON text, straight into the buffer. */
#include "core/wire/encode.h"

#include <math.h>

#include "core/wire/run_error.h"

/* Adds the name of a member and a colon, after a comma unless it is the first. */
static void add_name(const char *name, bool first, struct buf *out)
{
    size_t len = strlen(name);
    char *start = buf_reserve(out, len + 4), *at = start;
    if (!first)
        *at++ = ',';
    *at++ = '"';
    memcpy(at, name, len);
    at += len;
    *at++ = '"';
    *at++ = ':';
    out->len += (size_t)(at - start);
}

static void add_tags(const struct tag_list *tags, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; tags && i < tags->count; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_json(out, bytes_slice(tags->names[i]));
    }
    buf_add_char(out, ']');
}

/* Field names are short, and contain nothing that JSON escapes. */
static void add_fields(uint32_t fields, struct buf *out)
{
    bool first = true;
    buf_add_char(out, '[');
    for (unsigned field = 0; field < FIELD_COUNT; field++) {
        if (!(fields & 1u << field))
            continue;
        const char *name = field_name((enum field)field);
        size_t len = strlen(name);
        char *at = buf_reserve(out, len + 3);
        if (!first)
            *at++ = ',';
        *at++ = '"';
        memcpy(at, name, len);
        at[len] = '"';
        out->len += len + 3 - first;
        first = false;
    }
    buf_add_char(out, ']');
}

static void add_value(const struct value *value, struct buf *out)
{
    switch (value->kind) {
    case VALUE_NULL: buf_add(out, SLICE("null")); break;
    case VALUE_BOOL: buf_add(out, value->truth ? SLICE("true") : SLICE("false")); break;
    case VALUE_NUMBER: buf_add_number(out, value->number); break;
    case VALUE_REAL:
        buf_add_json_double(out, isfinite(value->real) ? value->real : 0);
        break;
    case VALUE_TEXT:
    case VALUE_QUOTED: rope_add_json(out, value->owner, value->text); break;
    case VALUE_TIME: buf_add_json_time(out, value->number); break;
    case VALUE_JSON: rope_add(out, value->owner, value->text); break;
    case VALUE_ERROR: run_error_render(value->owner, out); break;
    case VALUE_TAGS: add_tags(value->tags, out); break;
    case VALUE_FIELDS: add_fields(value->fields, out); break;
    case VALUE_MAP: encode_json_map(value->map.members, value->map.count, out); break;
    case VALUE_ROWS:
        buf_add_char(out, '[');
        rope_add_rope(out, value->rows.encoded);
        buf_add_char(out, ']');
        break;
    }
}

void encode_json_map(const struct member *members, size_t count, struct buf *out)
{
    buf_add_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        add_name(members[i].name, i == 0, out);
        add_value(&members[i].value, out);
    }
    buf_add_char(out, '}');
}

void encode_json_row(const struct row *row, struct buf *out)
{
    buf_add_char(out, '[');
    buf_add_json(out, slice_of(row->id));
    buf_add_char(out, ',');
    buf_add_number(out, row->version);
    buf_add_char(out, ',');
    if (row->kind == ROW_LEFT)
        buf_add_text(out, "null");
    else
        encode_json_map(row->members, row->count, out);
    if (row->kind != ROW_CHANGE)
        buf_print(out, ",%d", (int)row->kind);
    buf_add_char(out, ']');
}
