/* run_sum.h - a number that stands for one state of a run, to compare two memories. */
#pragma once

#include <string.h>

#include "runcast/run.h"

/* Returns the bytes of the word up to the first zero, and notes that there is one. The id may
 * have anything after its end. */
static inline uint64_t run_sum_word(const char *text, size_t size, bool *is_over)
{
    uint64_t word = 0;
    if (*is_over)
        return 0;
    memcpy(&word, text, size);
    uint64_t zero = (word - UINT64_C(0x0101010101010101)) & ~word;
    zero &= UINT64_C(0x8080808080808080); /* the lowest bit is of the first zero byte */
    *is_over = zero != 0;
    return zero ? word & ((zero & -zero) - 1) : word;
}

/* Returns a hash of the run's id and rev. The sum of those of many runs differs if one run
 * is missing or has another state, except by an unlikely chance. It protects against
 * mistakes, not against an attacker. Every change takes it twice: whole words, and
 * multiplications that do not wait for each other, are four times as fast as bytes. */
static inline uint64_t run_sum(const struct run *run)
{
    bool is_over = false;
    uint64_t hash = run->rev * UINT64_C(0xa0761d6478bd642f);
    hash += run_sum_word(run->id, 8, &is_over) * UINT64_C(0x9e3779b97f4a7c15);
    hash += run_sum_word(run->id + 8, 8, &is_over) * UINT64_C(0xbf58476d1ce4e5b9);
    hash += run_sum_word(run->id + 16, 8, &is_over) * UINT64_C(0x94d049bb133111eb);
    hash += run_sum_word(run->id + 24, RUN_ID_MAX - 24, &is_over) *
            UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ hash >> 32) * UINT64_C(0xe7037ed1a0b428db);
    return hash ^ hash >> 29;
}
