/* run_sum.h - a number that stands for one state of a run, to compare two memories. */
#pragma once

#include <string.h>

#include "runcast/run.h"

/* Returns a hash of the run's id and rev. The sum of those of many runs differs if one run
 * is missing or has another state, except by an unlikely chance. It protects against
 * mistakes, not against an attacker. */
static inline uint64_t run_sum(const struct run *run)
{
    uint64_t words[(RUN_ID_MAX + 7) / 8] = { 0 }, hash = run->rev;
    memcpy(words, run->id, strlen(run->id));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}
