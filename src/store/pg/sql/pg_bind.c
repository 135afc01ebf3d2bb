/* pg_bind.c - appends numbers and bytes, and fills in lengths and counts afterwards. */
#include "store/pg/sql/pg_bind.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

enum { EMPTY_HEADER = 12, HEADER = 20 };

/* ---- numbers ---- */

static void write_int(char *at, uint64_t number, int size)
{
    for (int i = size - 1; i >= 0; i--, number >>= 8)
        at[i] = (char)(number & 0xff);
}

static void add_int(struct buf *buf, uint64_t number, int size)
{
    write_int(buf_reserve(buf, (size_t)size), number, size);
    buf->len += (size_t)size;
}

void pg_add_int2(struct buf *buf, int16_t number)
{
    add_int(buf, (uint64_t)number, 2);
}

void pg_add_int4(struct buf *buf, int32_t number)
{
    add_int(buf, (uint64_t)number, 4);
}

void pg_add_int8(struct buf *buf, int64_t number)
{
    add_int(buf, (uint64_t)number, 8);
}

static bool take_int(struct slice *bytes, uint64_t *number, size_t size)
{
    if (bytes->len < size)
        return false;
    *number = 0;
    for (size_t i = 0; i < size; i++)
        *number = *number << 8 | (unsigned char)bytes->ptr[i];
    *bytes = slice_from(*bytes, size);
    return true;
}

bool pg_take_int4(struct slice *bytes, int32_t *number)
{
    uint64_t taken;
    if (!take_int(bytes, &taken, 4))
        return false;
    *number = (int32_t)(uint32_t)taken;
    return true;
}

bool pg_take_int8(struct slice *bytes, int64_t *number)
{
    uint64_t taken;
    if (!take_int(bytes, &taken, 8))
        return false;
    *number = (int64_t)taken;
    return true;
}

/* ---- arrays ---- */

static void add_header(struct buf *buf, uint32_t type, uint32_t count)
{
    pg_add_int4(buf, 1);
    pg_add_int4(buf, 0);
    pg_add_int4(buf, (int32_t)type);
    pg_add_int4(buf, (int32_t)count);
    pg_add_int4(buf, 1);
}

void pg_array_begin(struct pg_array *array, uint32_t type)
{
    buf_clear(&array->buf);
    add_header(&array->buf, type, 0);
    array->count = 0;
    array->in_row = false;
}

struct slice pg_array_end(struct pg_array *array)
{
    assert(!array->in_row);
    struct slice whole = buf_slice(&array->buf);
    if (!array->count) {
        write_int(array->buf.ptr, 0, 4);
        return (struct slice){ whole.ptr, EMPTY_HEADER };
    }
    write_int(array->buf.ptr + EMPTY_HEADER, array->count, 4);
    return whole;
}

void pg_array_finish(struct pg_array *array)
{
    buf_finish(&array->buf);
}

void pg_row_begin(struct pg_array *array)
{
    assert(!array->in_row);
    array->row_at = array->buf.len;
    array->in_row = true;
    array->fields = 0;
    array->count++;
    pg_add_int4(&array->buf, 0); /* length, filled in by pg_row_end */
    pg_add_int4(&array->buf, 0); /* number of fields, filled in by pg_row_end */
}

void pg_row_end(struct pg_array *array)
{
    char *row = array->buf.ptr + array->row_at;
    write_int(row, array->buf.len - array->row_at - 4, 4);
    write_int(row + 4, array->fields, 4);
    array->in_row = false;
}

/* Adds the header of a value: the type if it is a field, and the length. */
static void begin_value(struct pg_array *array, enum pg_type type, int32_t len)
{
    if (array->in_row) {
        array->fields++;
        pg_add_int4(&array->buf, (int32_t)type);
    } else {
        array->count++;
    }
    pg_add_int4(&array->buf, len);
}

void pg_put_bool(struct pg_array *array, bool value)
{
    begin_value(array, PG_BOOL, 1);
    buf_add_char(&array->buf, (char)value);
}

void pg_put_int2(struct pg_array *array, int16_t value)
{
    begin_value(array, PG_INT2, 2);
    pg_add_int2(&array->buf, value);
}

void pg_put_int4(struct pg_array *array, int32_t value)
{
    begin_value(array, PG_INT4, 4);
    pg_add_int4(&array->buf, value);
}

void pg_put_int8(struct pg_array *array, int64_t value)
{
    begin_value(array, PG_INT8, 8);
    pg_add_int8(&array->buf, value);
}

void pg_put_real(struct pg_array *array, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    begin_value(array, PG_FLOAT8, 8);
    pg_add_int8(&array->buf, bits);
}

void pg_put_bytes(struct pg_array *array, struct slice value)
{
    begin_value(array, PG_BYTEA, value.ptr ? (int32_t)value.len : -1);
    buf_add(&array->buf, value);
}

void pg_put_byteas(struct pg_array *array, struct bytes *const *values, uint32_t count)
{
    size_t at = array->buf.len + 8;
    begin_value(array, PG_BYTEA_ARRAY, count ? 0 : -1);
    if (!count)
        return;
    add_header(&array->buf, PG_BYTEA, count);
    for (uint32_t i = 0; i < count; i++) {
        pg_add_int4(&array->buf, (int32_t)values[i]->len);
        buf_add(&array->buf, bytes_slice(values[i]));
    }
    write_int(array->buf.ptr + at - 4, array->buf.len - at, 4);
}

/* ---- parameters ---- */

void pg_params_finish(struct pg_params *params)
{
    free(params->items);
    buf_finish(&params->numbers);
    *params = (struct pg_params){ 0 };
}

void pg_params_clear(struct pg_params *params)
{
    params->count = 0;
    buf_clear(&params->numbers);
}

static struct pg_param *add_param(struct pg_params *params, uint32_t type, size_t len)
{
    if (params->count == params->capacity) {
        params->capacity = params->capacity ? 2 * params->capacity : 16;
        params->items =
            mem_resize(params->items, params->capacity * sizeof(params->items[0]));
    }
    struct pg_param *param = &params->items[params->count++];
    *param = (struct pg_param){ .type = type, .len = (uint32_t)len };
    param->at = params->numbers.len;
    return param;
}

void pg_param_int4(struct pg_params *params, int32_t value)
{
    add_param(params, PG_INT4, 4);
    pg_add_int4(&params->numbers, value);
}

void pg_param_int8(struct pg_params *params, int64_t value)
{
    add_param(params, PG_INT8, 8);
    pg_add_int8(&params->numbers, value);
}

void pg_param_bool(struct pg_params *params, bool value)
{
    add_param(params, PG_BOOL, 1);
    buf_add_char(&params->numbers, (char)value);
}

void pg_param_array(struct pg_params *params, uint32_t type, struct slice value)
{
    struct pg_param *param = add_param(params, type, value.len);
    param->borrowed = value.ptr;
    param->is_null = !value.ptr;
}

void pg_param_bytes(struct pg_params *params, struct slice value)
{
    pg_param_array(params, PG_BYTEA, value);
}

void pg_param_text(struct pg_params *params, const char *value)
{
    pg_param_array(params, PG_TEXT, slice_of(value));
}

const char *pg_param_value(const struct pg_params *params, size_t which)
{
    const struct pg_param *param = &params->items[which];
    if (param->is_null)
        return NULL;
    return param->borrowed ? param->borrowed : params->numbers.ptr + param->at;
}
