/* encode.h - writes a map of named values as JSON or as msgpack.
 *
 * Rows and messages are built as small arrays of members on the stack, because msgpack
 * states the number of members before the first one. One of two encoders then appends them
 * to a buffer. Values are borrowed. JSON values must be valid, because the encoders check
 * nothing. A long value with an owner is not copied into the buffer of a rope
 * (base/rope.h). */
#pragma once

#include "base/rope.h"
#include "core/wire/view.h"

struct member;

enum value_kind {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_NUMBER,
    VALUE_REAL, /* written as 0 if it is not finite */
    VALUE_TEXT,
    VALUE_TIME, /* Unix ms; in JSON a string, in msgpack a timestamp (type -1) */
    VALUE_JSON, /* in JSON unchanged; in msgpack a str with that JSON */
    /* A text, as a JSON string; in msgpack a str with that, quotes included. */
    VALUE_QUOTED,
    VALUE_ERROR, /* owner: a stored error, written by run_error_render; as VALUE_JSON */
    VALUE_TAGS,
    VALUE_FIELDS, /* the names of a bit set of enum field */
    VALUE_MAP,
    VALUE_ROWS, /* an array of encoded rows */
};

struct value {
    enum value_kind kind;
    struct bytes *owner; /* owner of a text that may be long; NULL: the text is copied */
    union {
        bool truth;
        int64_t number; /* or a time */
        double real;
        struct slice text;           /* or JSON, or a text that is quoted */
        const struct tag_list *tags; /* NULL: none */
        uint32_t fields;
        struct {
            const struct member *members;
            size_t count;
        } map;
        struct {
            const struct rope *encoded; /* in JSON separated by commas */
            size_t count;
        } rows;
    };
};

struct member {
    const char *name; /* printable ASCII without quotes or backslashes, shorter than 32 */
    struct value value;
};

/* The meaning of a row, as the number after its members. A change has no number. */
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
