/* descriptors.h - how many files, sockets and pipes the process has open, and how many it may.
 *
 *   Linux 6.2 and later: the size of /proc/self/fd
 *   before:              its entries, which take a microsecond each: counted in a stint */
#pragma once

#include "base/loop.h"

struct descriptors {
    int folder; /* -1: closed, or it could not be opened */
    int64_t count;
};

void descriptors_begin(struct descriptors *descriptors);
/* True when all are counted; else it is to be called again in the next turn. */
bool descriptors_count_some(struct descriptors *descriptors, struct stint *stint);

/* INT64_MAX: no limit. */
int64_t descriptors_limit(void);
