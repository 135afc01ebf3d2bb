/* cursor.h - a bounded reader of big-endian data with a sticky error.
 *
 * Reads past the end return zero and set failed; check failed once at the end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct cursor {
    const unsigned char *at, *end;
    bool failed;
};

static inline struct cursor cursor_over(struct slice s)
{
    const unsigned char *at = (const unsigned char *)s.ptr;
    return (struct cursor){ .at = at, .end = at + s.len };
}

static inline size_t cursor_left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static inline uint64_t cursor_number(struct cursor *cursor, size_t width)
{
    uint64_t number = 0;
    if (cursor->failed || cursor_left(cursor) < width) {
        cursor->failed = true;
        return 0;
    }
    for (size_t i = 0; i < width; i++)
        number = number << 8 | *cursor->at++;
    return number;
}

static inline struct slice cursor_bytes(struct cursor *cursor, size_t len)
{
    if (cursor->failed || cursor_left(cursor) < len) {
        cursor->failed = true;
        return (struct slice){ 0 };
    }
    struct slice s = { (const char *)cursor->at, len };
    cursor->at += len;
    return s;
}
