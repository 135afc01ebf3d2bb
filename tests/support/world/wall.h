/* wall.h - the wall clock of a test program that has a real loop: it goes on as ever, and can
 * be set ahead. Monotonic time, by which timers wait, is not. */
#pragma once

#include <stdint.h>

/* Once more than before. */
void wall_advance(int64_t ms);
