/* encode.h - a map of named values, written as JSON or as msgpack.
 *
 * Rows and messages are built as small arrays of members on the stack, because msgpack
 * says how many there are before the first one; then one of two encoders appends them to
 * a buffer. What a value refers to is borrowed, and must be valid where JSON is: the
 * encoders check nothing. A long value whose owner is named is not copied into the buffer of a
 * rope (base/rope.h). */
#pragma once

#include "base/rope.h"
#include "core/wire/view.h"

struct member;

enum value_kind {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_NUMBER,
    VALUE_REAL, /* not finite: 0 */
    VALUE_TEXT,
    VALUE_TIME,   /* Unix ms; JSON a string, msgpack a timestamp (type -1) */
    VALUE_JSON,   /* JSON as it is; msgpack a str that holds it */
    VALUE_QUOTED, /* the JSON string of a text; msgpack a str that holds it, with quotes */
    VALUE_ERROR,  /* run_error_render of the owner; msgpack a str that holds it */
    VALUE_TAGS,
    VALUE_FIELDS, /* the names of a bit set of enum field */
    VALUE_MAP,
    VALUE_ROWS, /* an array of encoded rows */
};

struct value {
    enum value_kind kind;
    struct bytes *owner; /* of the text, where it may be long; NULL: it is copied */
    union {
        bool truth;
        int64_t number; /* of a time too */
        double real;
        struct slice text;           /* of JSON and quoted too */
        const struct tag_list *tags; /* NULL: none */
        uint32_t fields;
        struct {
            const struct member *members;
            size_t count;
        } map;
        struct {
            const struct rope *encoded; /* JSON: separated by commas */
            size_t count;
        } rows;
    };
};

struct member {
    const char *name; /* printable ASCII, no quote, no backslash, shorter than 32 */
    struct value value;
};

/* What a row means for a client, as the number behind its members says; of a change there is
 * none. */
enum row_kind { ROW_CHANGE, ROW_WHOLE, ROW_LEFT };

/* [id, version, {members}], [id, version, {members}, 1], [id, version, null, 2]. */
struct row {
    const char *id;
    uint32_t version;
    enum row_kind kind;
    const struct member *members;
    size_t count;
};

void encode_json_map(const struct member *members, size_t count, struct buf *out);
void encode_json_row(const struct row *row, struct buf *out);

void encode_msgpack_map(const struct member *members, size_t count, struct buf *out);
void encode_msgpack_row(const struct row *row, struct buf *out);

static inline void encode_map(enum encoding encoding, const struct member *members,
                              size_t count, struct buf *out)
{
    if (encoding == ENCODING_MSGPACK)
        encode_msgpack_map(members, count, out);
    else
        encode_json_map(members, count, out);
}

static inline void encode_row(enum encoding encoding, const struct row *row,
                              struct buf *out)
{
    if (encoding == ENCODING_MSGPACK)
        encode_msgpack_row(row, out);
    else
        encode_json_row(row, out);
}
