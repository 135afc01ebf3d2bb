/* bytes.h - immutable, reference-counted bytes.
 *
 * Used for the texts of runs and the encoded frames of the fan-out. They are written once,
 * then only read, and freed with the last reference. The counts are not atomic: only the
 * loop thread takes and releases references. Another thread may read bytes on which the
 * loop holds a reference for it, and may create bytes and hand them over.
 *
 * NULL is the absent value everywhere. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum bytes_json {
    BYTES_UNKNOWN,
    BYTES_NO_JSON,
    BYTES_JSON,
    BYTES_PARTS, /* not text: parts of other bytes; only rope.h reads them */
};

struct bytes {
    uint32_t refs : 30;
    uint32_t json : 2; /* enum bytes_json; set by whichever code checks it */
    uint32_t len;
    uint32_t escaped; /* length when escaped (escape.h); 0: not measured yet */
    char data[];      /* terminated by a zero byte that len does not count */
};

/* Returns a copy with one reference, the caller's. NULL for an absent slice. */
struct bytes *bytes_create(struct slice content);

/* Joins the parts in order. An absent part counts as empty. */
struct bytes *bytes_join(const struct slice *parts, size_t count);

/* Allocates len bytes that the caller fills in before sharing them. */
struct bytes *bytes_create_empty(size_t len);

/* Takes ownership of heap memory that begins with the content. Long memory is extended in
 * place, which is cheaper than fresh memory. */
struct bytes *bytes_take(char *memory, size_t len);

/* Like bytes_create, but equal names share one copy; loop thread only. For names that recur
 * (task, queue, tag, version, content type). The cache is bounded: on a miss, the caller
 * gets a copy of its own. */
struct bytes *bytes_create_shared(struct slice name);

static inline struct bytes *bytes_ref(struct bytes *bytes)
{
    if (bytes)
        bytes->refs++;
    return bytes;
}

void bytes_unref(struct bytes *bytes);

/* Takes a reference to value for *place and releases the old one. */
void bytes_set(struct bytes **place, struct bytes *value);

/* Releases the reference and sets the place to NULL. */
void bytes_clear(struct bytes **place);

/* Empties the cache of bytes_create_shared. Call it at the end of a process or a test. */
void bytes_forget_shared(void);

/* Returns an absent slice for NULL. */
static inline struct slice bytes_slice(const struct bytes *bytes)
{
    assert(!bytes || bytes->json != BYTES_PARTS);
    return bytes ? (struct slice){ bytes->data, bytes->len } : (struct slice){ 0 };
}

/* Returns true if only rope.h may read the data. */
static inline bool bytes_are_parts(const struct bytes *bytes)
{
    return bytes->json == BYTES_PARTS;
}
