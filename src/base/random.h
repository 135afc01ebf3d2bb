/* random.h - unpredictable random numbers. */
#pragma once

#include <stdint.h>

/* Returns one of 0 … bound - 1, all equally likely; bound is at least 1. */
uint64_t random_below(uint64_t bound);
