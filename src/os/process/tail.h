/* tail.h - keeps the last bytes of an output of any length.
 *
 * Its memory is a ring of `limit` bytes, allocated with the first byte, and briefly twice
 * that when the text is requested. */
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

/* Returns the kept text, starting at its first whole character; borrowed until the next
 * call. */
struct slice tail_text(struct tail *tail);

/* Returns the last lines of that text, at most `lines` and `bytes`. The lines are complete,
 * unless the last one is longer than `bytes`. A trailing line feed does not begin another
 * line. */
struct slice tail_lines(struct tail *tail, unsigned lines, size_t bytes);
