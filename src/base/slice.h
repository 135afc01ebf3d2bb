/* slice.h - borrowed bytes.
 *
 * A slice owns nothing and is not terminated. { NULL, 0 } means absent, { "", 0 } empty. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *ptr;
    size_t len;
};

#define SLICE(literal) ((struct slice){ "" literal, sizeof(literal) - 1 })

/* For printf: "%.*s", SLICE_ARG(slice). */
#define SLICE_ARG(s) (int)(s).len, ((s).ptr ? (s).ptr : "")

static inline struct slice slice_of(const char *text)
{
    return (struct slice){ text, text ? strlen(text) : 0 };
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Compares bytewise, for qsort; a prefix of another text comes first. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static inline bool slice_is(struct slice s, const char *text)
{
    return slice_equal(s, slice_of(text));
}

static inline bool slice_starts(struct slice s, const char *prefix)
{
    size_t len = strlen(prefix);
    return s.len >= len && memcmp(s.ptr, prefix, len) == 0;
}

/* Returns the rest, starting at the given offset. */
static inline struct slice slice_from(struct slice s, size_t offset)
{
    return (struct slice){ s.ptr + offset, s.len - offset };
}

/* Removes white space at both ends (RFC 8259 §2: space, tab, line feed, return). */
static inline struct slice slice_trim(struct slice s)
{
    while (s.len && strchr(" \t\r\n", s.ptr[0]) && s.ptr[0])
        s = slice_from(s, 1);
    while (s.len && strchr(" \t\r\n", s.ptr[s.len - 1]) && s.ptr[s.len - 1])
        s.len--;
    return s;
}

/* Cuts the part before the first separator off the front of rest. Returns false once rest
 * is used up (its ptr is NULL). "a,,b" gives "a", "", "b"; "" gives one empty part. */
static inline bool slice_split(struct slice *rest, char separator, struct slice *part)
{
    if (!rest->ptr)
        return false;
    const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    if (!end) {
        *part = *rest;
        *rest = (struct slice){ 0 };
        return true;
    }
    *part = (struct slice){ rest->ptr, (size_t)(end - rest->ptr) };
    *rest = slice_from(*rest, part->len + 1);
    return true;
}
