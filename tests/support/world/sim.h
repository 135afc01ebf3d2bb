/* sim.h - what simulations share: numbers drawn from a seed, and the end of a bad one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct draws {
    uint64_t state;
};

/* 0 … below-1. The same seed draws the same numbers (splitmix64). */
static inline uint32_t draw(struct draws *draws, uint32_t below)
{
    uint64_t z = draws->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % below);
}

/* True so many times in a thousand. */
static inline bool chance(struct draws *draws, uint32_t per_mille)
{
    return draw(draws, 1000) < per_mille;
}

/* What the line about a seed begins with: the test's number and the seed. */
extern char sim_title[64];

/* The whole of a simulation's main: each seed from SEED on (1), SEEDS of them (count). */
int sim_run_seeds(void (*run_seed)(uint64_t seed), unsigned count);

/* An invariant does not hold: says so as a failed test and ends the process. */
_Noreturn void violated(const char *format, ...) __attribute__((format(printf, 1, 2)));
