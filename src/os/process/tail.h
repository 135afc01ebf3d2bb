/* tail.h - the last bytes of an output, however much there was.
 *
 * A ring of limit bytes, which is all of its memory from the first byte on; twice that for a
 * moment when it is asked for its text. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

struct tail {
    char *ring;
    size_t limit, len;
    size_t at;        /* where the next byte goes */
    uint64_t dropped; /* bytes before what is kept */
};

void tail_init(struct tail *tail, size_t limit);
void tail_finish(struct tail *tail);

void tail_add(struct tail *tail, struct slice text);

/* What is kept, from its first whole character on; borrowed until the next call. */
struct slice tail_text(struct tail *tail);

/* Of that the last lines, at most so many and so many bytes, and whole ones unless the last
 * is longer than that. A line feed at the end begins no line. */
struct slice tail_lines(struct tail *tail, unsigned lines, size_t bytes);
