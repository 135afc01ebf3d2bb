/* members.c - writes members with their commas, and reads members of objects. */
#include "base/json/members.h"

#include "base/json/scan.h"
#include "base/rope.h"
#include "base/text.h"

void members_add_name(struct buf *out, const char *name)
{
    char last = out->len ? out->ptr[out->len - 1] : '{';
    if (last != '{' && last != '[')
        buf_add_char(out, ',');
    buf_add_char(out, '"');
    buf_add_text(out, name);
    buf_add_text(out, "\":");
}

void members_add_text(struct buf *out, const char *name, struct slice text)
{
    if (!text.ptr)
        return;
    members_add_name(out, name);
    buf_add_json(out, text);
}

void members_add_bytes(struct buf *out, const char *name, struct bytes *text)
{
    if (!text)
        return;
    members_add_name(out, name);
    rope_add_json(out, text, bytes_slice(text));
}

void members_add_number(struct buf *out, const char *name, int64_t number)
{
    members_add_name(out, name);
    buf_add_number(out, number);
}

void members_add_bool(struct buf *out, const char *name, bool value)
{
    members_add_name(out, name);
    buf_add_text(out, value ? "true" : "false");
}

void members_add_time(struct buf *out, const char *name, int64_t unix_ms)
{
    if (!unix_ms)
        return;
    members_add_name(out, name);
    buf_add_json_time(out, unix_ms);
}

void members_add_json(struct buf *out, const char *name, struct slice json)
{
    if (!json.ptr)
        return;
    members_add_name(out, name);
    buf_add(out, json);
}

void members_add_json_bytes(struct buf *out, const char *name, struct bytes *json)
{
    if (!json)
        return;
    members_add_name(out, name);
    rope_add(out, json, bytes_slice(json));
}

void members_add_texts(struct buf *out, const char *name, struct bytes *const *texts,
                       size_t count)
{
    members_add_name(out, name);
    buf_add_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_json(out, bytes_slice(texts[i]));
    }
    buf_add_char(out, ']');
}

/* ---- reading ---- */

struct bytes *members_text_of(struct slice value)
{
    struct buf text = { 0 };
    struct bytes *bytes = NULL;
    if (scan_string(value, &text))
        bytes = bytes_create(buf_slice(&text));
    buf_finish(&text);
    return bytes;
}

struct bytes *members_text(struct slice object, const char *name)
{
    return members_text_of(scan_member(object, name));
}

bool members_number(struct slice object, const char *name, int64_t *number)
{
    return text_to_i64(scan_member(object, name), number) == OK;
}

bool members_is_true(struct slice object, const char *name)
{
    return scan_type(scan_member(object, name)) == SCAN_TRUE;
}

bool members_find_few(struct slice object, size_t most, const char *const *names,
                      size_t count, struct slice *values)
{
    struct slice key, value;
    memset(values, 0, count * sizeof(*values));
    if (scan_type(object) != SCAN_OBJECT)
        return true;
    struct scan_members members = scan_members(object);
    for (size_t met = 0; scan_next_member(&members, &key, &value);) {
        if (++met > most)
            return false;
        for (size_t i = 0; i < count; i++)
            if (scan_key_is(key, slice_of(names[i])))
                values[i] = value;
    }
    return true;
}

void members_find(struct slice object, const char *const *names, size_t count,
                  struct slice *values)
{
    members_find_few(object, SIZE_MAX, names, count, values);
}
