/* wall.h - a wall clock that can be set ahead, for test programs with a real loop.
 *
 * It keeps running. Monotonic time, which timers use, is not affected. */
#pragma once

#include <stdint.h>

/* Sets it further ahead by that much. */
void wall_advance(int64_t ms);
