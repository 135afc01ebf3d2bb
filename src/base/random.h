/* random.h - numbers that nobody can foretell. */
#pragma once

#include <stdint.h>

/* One of 0 … bound - 1, each as likely as the others; bound is at least 1. */
uint64_t random_below(uint64_t bound);
