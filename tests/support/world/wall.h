/* wall.h - the wall clock of a test program that has a real loop: it runs on, and can be
 * set ahead. Monotonic time, which timers use, is not affected. */
#pragma once

#include <stdint.h>

/* Sets it ahead by that much more. */
void wall_advance(int64_t ms);
