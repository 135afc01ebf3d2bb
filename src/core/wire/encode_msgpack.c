/* encode_msgpack.c - writes members as msgpack, with the packer of msgpack-c. */
#include "core/wire/encode.h"

#include <assert.h>
#include <math.h>
#include <msgpack.h>

#include "base/utf8.h"
#include "core/wire/run_error.h"

static int append(void *out, const char *bytes, size_t len)
{
    buf_add(out, (struct slice){ bytes, len });
    return 0;
}

/* A str is UTF-8, which has no surrogate halves. Each half becomes U+FFFD, which also has
 * three bytes. */
static void pack_text(msgpack_packer *packer, struct slice text)
{
    static const char replacement[] = "\xEF\xBF\xBD";
    size_t from = 0;
    msgpack_pack_str(packer, text.len);
    for (size_t at = 0; at < text.len; at++) {
        if (!utf8_is_half(text.ptr + at, text.len - at))
            continue;
        msgpack_pack_str_body(packer, text.ptr + from, at - from);
        msgpack_pack_str_body(packer, replacement, sizeof(replacement) - 1);
        from = at + sizeof(replacement) - 1;
        at = from - 1;
    }
    msgpack_pack_str_body(packer, text.ptr + from, text.len - from);
}

/* Negative times have a positive fraction: -1 ms is second -1 and 999 ms. */
static void pack_time(msgpack_packer *packer, int64_t unix_ms)
{
    int64_t ms = (unix_ms % 1000 + 1000) % 1000;
    msgpack_timestamp time = { (unix_ms - ms) / 1000, (uint32_t)ms * 1000000 };
    msgpack_pack_timestamp(packer, &time);
}

static void pack_tags(msgpack_packer *packer, const struct tag_list *tags)
{
    uint32_t count = tags ? tags->count : 0;
    msgpack_pack_array(packer, count);
    for (uint32_t i = 0; i < count; i++)
        pack_text(packer, bytes_slice(tags->names[i]));
}

static void pack_fields(msgpack_packer *packer, uint32_t fields)
{
    msgpack_pack_array(packer, (size_t)__builtin_popcount(fields));
    for (unsigned field = 0; field < FIELD_COUNT; field++)
        if (fields & 1u << field)
            pack_text(packer, slice_of(field_name((enum field)field)));
}

/* Adds JSON that has to be rendered first. Its length is known only afterwards, so the str
 * gets the longest head (str 32), which is filled in then. */
static void add_made_json(const struct value *value, struct buf *out)
{
    enum { HEAD = 5 };
    size_t start = out->len;
    buf_reserve(out, HEAD);
    out->len += HEAD;
    size_t before = rope_len_of(out);
    if (value->kind == VALUE_ERROR)
        run_error_render(value->owner, out);
    else
        rope_add_json(out, value->owner, value->text);
    size_t len = rope_len_of(out) - before;
    assert(len <= UINT32_MAX);
    unsigned char *head = (unsigned char *)out->ptr + start;
    head[0] = 0xdb;
    for (unsigned i = 0; i < 4; i++)
        head[1 + i] = (unsigned char)(len >> (24 - 8 * i));
}

static void pack_value(msgpack_packer *packer, const struct value *value, struct buf *out)
{
    switch (value->kind) {
    case VALUE_NULL: msgpack_pack_nil(packer); break;
    case VALUE_BOOL:
        if (value->truth)
            msgpack_pack_true(packer);
        else
            msgpack_pack_false(packer);
        break;
    case VALUE_NUMBER: msgpack_pack_int64(packer, value->number); break;
    case VALUE_REAL:
        msgpack_pack_double(packer, isfinite(value->real) ? value->real : 0);
        break;
    case VALUE_TEXT: pack_text(packer, value->text); break;
    case VALUE_JSON:
        msgpack_pack_str(packer, value->text.len);
        rope_add(out, value->owner, value->text);
        break;
    case VALUE_QUOTED:
    case VALUE_ERROR: add_made_json(value, out); break;
    case VALUE_TIME: pack_time(packer, value->number); break;
    case VALUE_TAGS: pack_tags(packer, value->tags); break;
    case VALUE_FIELDS: pack_fields(packer, value->fields); break;
    case VALUE_MAP: encode_msgpack_map(value->map.members, value->map.count, out); break;
    case VALUE_ROWS:
        msgpack_pack_array(packer, value->rows.count);
        rope_add_rope(out, value->rows.encoded);
        break;
    }
}

void encode_msgpack_map(const struct member *members, size_t count, struct buf *out)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    msgpack_pack_map(&packer, count);
    for (size_t i = 0; i < count; i++) {
        pack_text(&packer, slice_of(members[i].name));
        pack_value(&packer, &members[i].value, out);
    }
}

void encode_msgpack_row(const struct row *row, struct buf *out)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    msgpack_pack_array(&packer, row->kind == ROW_CHANGE ? 3 : 4);
    pack_text(&packer, slice_of(row->id));
    msgpack_pack_uint32(&packer, row->version);
    if (row->kind == ROW_LEFT)
        msgpack_pack_nil(&packer);
    else
        encode_msgpack_map(row->members, row->count, out);
    if (row->kind != ROW_CHANGE)
        msgpack_pack_int(&packer, (int)row->kind);
}
