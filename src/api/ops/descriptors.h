/* descriptors.h - counts open files, sockets and pipes, and how many may be open.
 *
 *   Linux 6.2 and later: the size of /proc/self/fd
 *   before:              its entries, a microsecond each: counted in time slices */
#pragma once

#include "base/loop.h"

struct descriptors {
    int folder; /* -1: closed, or it could not be opened */
    int64_t count;
};

void descriptors_begin(struct descriptors *descriptors);
/* Counts for one time slice. Returns true once all are counted; otherwise call it again in
 * the next turn. */
bool descriptors_count_some(struct descriptors *descriptors, struct timeslice *timeslice);

/* Returns INT64_MAX if there is no limit. */
int64_t descriptors_limit(void);
