/* sim.h - shared by simulations: numbers drawn from a seed, and the report of a failure. */
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

/* Returns true in that many of a thousand draws. */
static inline bool chance(struct draws *draws, uint32_t per_mille)
{
    return draw(draws, 1000) < per_mille;
}

/* The start of each line about a seed: the test's number and the seed. */
extern char sim_title[64];

/* The main of a simulation: runs SEEDS seeds (count) from SEED on (1). */
int sim_run_seeds(void (*run_seed)(uint64_t seed), unsigned count);

/* An invariant does not hold: reports a failed test and exits the process. */
_Noreturn void violated(const char *format, ...) __attribute__((format(printf, 1, 2)));
