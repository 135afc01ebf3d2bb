/* show_msgpack.c - decodes values with msgpack-c and writes them as text. */
#include "tests/support/world/show_msgpack.h"

#include <msgpack.h>

static void show(const msgpack_object *object, struct buf *out);

static void show_map(const msgpack_object_map *map, struct buf *out)
{
    buf_add_char(out, '{');
    for (uint32_t i = 0; i < map->size; i++) {
        if (i)
            buf_add_char(out, ',');
        show(&map->ptr[i].key, out);
        buf_add_char(out, ':');
        show(&map->ptr[i].val, out);
    }
    buf_add_char(out, '}');
}

static void show_array(const msgpack_object_array *array, struct buf *out)
{
    buf_add_char(out, '[');
    for (uint32_t i = 0; i < array->size; i++) {
        if (i)
            buf_add_char(out, ',');
        show(&array->ptr[i], out);
    }
    buf_add_char(out, ']');
}

static void show(const msgpack_object *object, struct buf *out)
{
    msgpack_timestamp time;
    switch (object->type) {
    case MSGPACK_OBJECT_NIL: buf_add_text(out, "null"); break;
    case MSGPACK_OBJECT_BOOLEAN:
        buf_add_text(out, object->via.boolean ? "true" : "false");
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: buf_add_number(out, object->via.i64); break;
    case MSGPACK_OBJECT_FLOAT64: buf_add_json_double(out, object->via.f64); break;
    case MSGPACK_OBJECT_STR:
        buf_add_json(out, (struct slice){ object->via.str.ptr, object->via.str.size });
        break;
    case MSGPACK_OBJECT_ARRAY: show_array(&object->via.array, out); break;
    case MSGPACK_OBJECT_MAP: show_map(&object->via.map, out); break;
    default:
        if (msgpack_object_to_timestamp(object, &time))
            buf_print(out, "@%lld.%09u", (long long)time.tv_sec, time.tv_nsec);
        else
            buf_add_char(out, '?');
        break;
    }
}

bool show_msgpack(struct slice bytes, struct buf *out)
{
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    size_t offset = 0;
    bool whole = true;
    while (offset < bytes.len && whole) {
        if (offset)
            buf_add_char(out, ' ');
        whole = msgpack_unpack_next(&unpacked, bytes.ptr, bytes.len, &offset) ==
                MSGPACK_UNPACK_SUCCESS;
        if (whole)
            show(&unpacked.data, out);
    }
    msgpack_unpacked_destroy(&unpacked);
    return whole;
}
