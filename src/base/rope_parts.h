/* rope_parts.h - the data of BYTES_PARTS bytes.
 *
 * Private to bytes.c, which releases the references, and rope.c, which makes and reads
 * parts. */
#pragma once

#include "base/bytes.h"

enum rope_form { AS_IS, ESCAPED, ONE_LINE };

struct rope_part {
    struct bytes *owner; /* a reference; NULL: text of the rope */
    const char *ptr;
    uint32_t len;
    uint32_t shown;      /* length when read */
    enum rope_form form; /* how it is read */
};

/* Stored in the data of the bytes, at the first aligned address. */
struct rope_parts {
    uint32_t count;
    struct rope_part all[];
};

static inline struct rope_parts *rope_parts_of(const struct bytes *bytes)
{
    uintptr_t align = _Alignof(struct rope_parts), at = (uintptr_t)bytes->data;
    return (struct rope_parts *)((at + align - 1) & ~(align - 1));
}
