/* seen_msgpack.c - parses messages of runs.v1 in MessagePack. */
#include "seen_parse.h"

#include <msgpack.h>

#include "base/json/scan.h"
#include "base/text.h"

static struct slice text_of(const msgpack_object *object)
{
    if (object->type != MSGPACK_OBJECT_STR)
        return (struct slice){ 0 };
    return (struct slice){ object->via.str.ptr, object->via.str.size };
}

static int64_t number_of(const msgpack_object *object)
{
    return object->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? (int64_t)object->via.u64 : 0;
}

/* Metadata is a string of JSON. */
static int64_t n_of(const msgpack_object *fields)
{
    int64_t n = 0;
    if (fields->type != MSGPACK_OBJECT_MAP)
        return 0;
    for (uint32_t i = 0; i < fields->via.map.size; i++) {
        const msgpack_object_kv *field = &fields->via.map.ptr[i];
        struct slice json = text_of(&field->val);
        if (slice_is(text_of(&field->key), "metadata") && scan_is_json(json) &&
            scan_type(json) == SCAN_OBJECT)
            (void)text_to_i64(scan_member(json, "n"), &n);
    }
    return n;
}

static void parse_rows(const struct seen *seen, const msgpack_object *rows,
                       struct seen_message *message)
{
    if (rows->type != MSGPACK_OBJECT_ARRAY)
        return;
    for (uint32_t i = 0; i < rows->via.array.size; i++) {
        const msgpack_object *one = &rows->via.array.ptr[i];
        struct seen_row *row = seen_add_row(message);
        if (one->type != MSGPACK_OBJECT_ARRAY || one->via.array.size < 3)
            continue;
        const msgpack_object *parts = one->via.array.ptr;
        row->run = seen_find_run(seen, text_of(&parts[0]));
        row->version = (uint32_t)number_of(&parts[1]);
        row->n = n_of(&parts[2]);
    }
}

static void parse_map(const struct seen *seen, const msgpack_object_map *map,
                      struct seen_message *message)
{
    for (uint32_t i = 0; i < map->size; i++) {
        struct slice key = text_of(&map->ptr[i].key);
        const msgpack_object *value = &map->ptr[i].val;
        if (slice_is(key, "op"))
            message->op = seen_op_of(text_of(value));
        else if (slice_is(key, "more"))
            message->more = value->type == MSGPACK_OBJECT_BOOLEAN && value->via.boolean;
        else if (slice_is(key, "mode"))
            message->resumed = slice_is(text_of(value), "resume");
        else if (slice_is(key, "seq"))
            message->seq = number_of(value);
        else if (slice_is(key, "in"))
            message->in_ms = number_of(value);
        else if (slice_is(key, "epoch"))
            seen_keep_epoch(message, text_of(value));
        else if (slice_is(key, "count"))
            message->count = number_of(value);
        else if (slice_is(key, "rows"))
            parse_rows(seen, value, message);
    }
}

bool seen_parse_msgpack(const struct seen *seen, struct slice text,
                        struct seen_message *message)
{
    msgpack_unpacked unpacked;
    size_t used = 0;
    msgpack_unpacked_init(&unpacked);
    bool whole = msgpack_unpack_next(&unpacked, text.ptr, text.len, &used) ==
                     MSGPACK_UNPACK_SUCCESS &&
                 unpacked.data.type == MSGPACK_OBJECT_MAP;
    if (whole)
        parse_map(seen, &unpacked.data.via.map, message);
    msgpack_unpacked_destroy(&unpacked);
    return whole;
}
