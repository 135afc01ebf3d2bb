/* bytes.h - immutable bytes that many share.
 *
 * A run's texts and the encoded frames of the fan-out: written once, then only read, freed
 * with the last reference. References are counted without atomics: only the loop thread
 * takes and gives them. Another thread may read bytes that somebody on the loop holds for
 * it, and may make new ones and hand them over.
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
    BYTES_PARTS, /* no text at all: parts of others, which rope.h reads */
};

struct bytes {
    uint32_t refs : 30;
    uint32_t json : 2; /* enum bytes_json: whoever knows or finds it notes it */
    uint32_t len;
    uint32_t escaped; /* bytes as escape.h writes them; 0: not measured yet */
    char data[];      /* terminated by a zero that len does not count */
};

/* A copy with one reference, the caller's. NULL for an absent slice. */
struct bytes *bytes_create(struct slice content);

/* The parts one after the other; absent ones are empty. */
struct bytes *bytes_join(const struct slice *parts, size_t count);

/* Room for len bytes that the caller fills in before it shares them. */
struct bytes *bytes_create_empty(size_t len);

/* Takes over memory of the heap that begins with the content: a long one is moved where it
 * is, which is cheaper than memory that nobody has touched. */
struct bytes *bytes_take(char *memory, size_t len);

/* A copy of which the loop thread keeps one for everybody: for names that recur (task,
 * queue, tag, version, content type). A bounded cache: a miss is only an own copy. */
struct bytes *bytes_create_shared(struct slice name);

static inline struct bytes *bytes_ref(struct bytes *bytes)
{
    if (bytes)
        bytes->refs++;
    return bytes;
}

void bytes_unref(struct bytes *bytes);

/* Replaces *place by a reference of its own to value and drops the old one. */
void bytes_set(struct bytes **place, struct bytes *value);

/* Drops the reference and clears the place. */
void bytes_clear(struct bytes **place);

/* Empties the cache of bytes_create_shared; at the end of a process or a test. */
void bytes_forget_shared(void);

/* Absent for NULL. */
static inline struct slice bytes_slice(const struct bytes *bytes)
{
    assert(!bytes || bytes->json != BYTES_PARTS);
    return bytes ? (struct slice){ bytes->data, bytes->len } : (struct slice){ 0 };
}

/* Their data is read by rope.h only. */
static inline bool bytes_are_parts(const struct bytes *bytes)
{
    return bytes->json == BYTES_PARTS;
}
