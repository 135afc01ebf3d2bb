/* pg_bind.h - values in PostgreSQL's binary format: parameters, arrays, composites.
 *
 *   array       dimensions 1, flags 0, type, length, lower bound 1; then its elements
 *   element     length (-1: NULL), bytes
 *   composite   an element whose bytes are: number of fields; for each: type, length, bytes
 *
 * All numbers are big-endian. An array without elements has no dimensions. */
#pragma once

#include "base/buf.h"

/* Types whose number is the same on every server. */
enum pg_type {
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_INT8 = 20,
    PG_INT2 = 21,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_FLOAT8 = 701,
    PG_BYTEA_ARRAY = 1001,
    PG_INT4_ARRAY = 1007,
    PG_TEXT_ARRAY = 1009,
    PG_INT8_ARRAY = 1016,
};

void pg_add_int2(struct buf *buf, int16_t number);
void pg_add_int4(struct buf *buf, int32_t number);
void pg_add_int8(struct buf *buf, int64_t number);

/* Takes a number from the beginning of bytes. Returns false if there are too few bytes. */
bool pg_take_int4(struct slice *bytes, int32_t *number);
bool pg_take_int8(struct slice *bytes, int64_t *number);

/* ---- arrays ---- */

/* A zeroed struct, begun, is an empty array.
 *
 * A value is an element or, between pg_row_begin and pg_row_end, a field of a composite
 * element. */
struct pg_array {
    struct buf buf;
    uint32_t count;  /* of elements */
    bool in_row;     /* a composite element has begun */
    size_t row_at;   /* where it begins */
    uint32_t fields; /* how many it has */
};

/* Empties the array. type: of its elements. */
void pg_array_begin(struct pg_array *array, uint32_t type);
/* Returns the complete value, borrowed until the next pg_array_begin. */
struct slice pg_array_end(struct pg_array *array);
void pg_array_finish(struct pg_array *array);

void pg_row_begin(struct pg_array *array);
void pg_row_end(struct pg_array *array);

void pg_put_bool(struct pg_array *array, bool value);
void pg_put_int2(struct pg_array *array, int16_t value);
void pg_put_int4(struct pg_array *array, int32_t value);
void pg_put_int8(struct pg_array *array, int64_t value);
void pg_put_real(struct pg_array *array, double value);
/* An absent slice becomes NULL. */
void pg_put_bytes(struct pg_array *array, struct slice value);
/* Puts a field that is an array of bytea; NULL if count is 0. */
void pg_put_byteas(struct pg_array *array, struct bytes *const *values, uint32_t count);

/* ---- parameters ---- */

struct pg_param {
    uint32_t type;
    uint32_t len;
    const char *borrowed; /* the value; NULL: it is in numbers, or is_null */
    size_t at;            /* offset in numbers */
    bool is_null;         /* NULL in SQL */
};

/* A zeroed struct is empty. */
struct pg_params {
    struct pg_param *items;
    size_t count, capacity;
    struct buf numbers;
};

void pg_params_finish(struct pg_params *params);
/* Removes all parameters but keeps the memory. */
void pg_params_clear(struct pg_params *params);

void pg_param_int4(struct pg_params *params, int32_t value);
void pg_param_int8(struct pg_params *params, int64_t value);
void pg_param_bool(struct pg_params *params, bool value);
/* Borrowed until the statement was sent. An absent value becomes NULL. */
void pg_param_bytes(struct pg_params *params, struct slice value);
void pg_param_text(struct pg_params *params, const char *value);
/* Adds an array; type: of the array itself. */
void pg_param_array(struct pg_params *params, uint32_t type, struct slice value);

const char *pg_param_value(const struct pg_params *params, size_t which);
