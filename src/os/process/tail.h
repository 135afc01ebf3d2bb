/* tail.h - keeps the last bytes of an output of any length.
 *
 * Its memory is a ring of limit bytes from the first byte on, and briefly twice that when
 * the text is requested. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

struct tail {
    char *ring;
    size_t limit, len;
    size_t at;        /* where the next byte goes */
    uint64_t dropped; /* bytes before the kept ones */
};

void tail_init(struct tail *tail, size_t limit);
void tail_finish(struct tail *tail);

void tail_add(struct tail *tail, struct slice text);

/* Returns the kept text from its first whole character on; borrowed until the next call. */
struct slice tail_text(struct tail *tail);

/* Returns the last lines of that text, at most `lines` and `bytes`. The lines are complete,
 * unless the last one is longer than `bytes`. A line feed at the end does not begin a
 * line. */
struct slice tail_lines(struct tail *tail, unsigned lines, size_t bytes);
