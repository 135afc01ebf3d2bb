/* rope_parts.h - what bytes of BYTES_PARTS have in their data; private to bytes.c, which gives
 * the references back, and rope.c, which makes and reads them. */
#pragma once

#include "base/bytes.h"

enum rope_form { AS_IS, ESCAPED, ONE_LINE };

struct rope_part {
    struct bytes *owner; /* a reference; NULL: text of the rope */
    const char *ptr;
    uint32_t len;
    uint32_t shown;      /* bytes as they are read */
    enum rope_form form; /* in which it is read */
};

/* In the data of the bytes, where it may stand next. */
struct rope_parts {
    uint32_t count;
    struct rope_part all[];
};

static inline struct rope_parts *rope_parts_of(const struct bytes *bytes)
{
    uintptr_t align = _Alignof(struct rope_parts), at = (uintptr_t)bytes->data;
    return (struct rope_parts *)((at + align - 1) & ~(align - 1));
}
