/* heap_meter.h - the most heap memory that this process held at any moment.
 *
 * It needs a build with a sanitizer, whose allocator reports each call; in others it is
 * always 0. */
#pragma once

#include <stddef.h>

/* Starts at 0: memory that is already held does not count. */
void heap_meter_begin(void);

/* Returns the maximum in bytes since heap_meter_begin. */
size_t heap_meter_peak(void);
