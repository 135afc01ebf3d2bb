/* wall.h - a wall clock that can be set ahead, for test programs with a real loop.
 *
 * It keeps running. Monotonic time, which timers use, is not affected. */
#pragma once

#include <stdint.h>

/* Sets it ahead by that much more. */
void wall_advance(int64_t ms);
