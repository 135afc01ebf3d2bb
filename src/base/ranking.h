/* ranking.h - values in the order of their keys, and which is the n-th of them.
 *
 * For pages of what comes and goes: finding a place costs a logarithm, wherever it is. The
 * value embeds its node; its key must not change while it is in. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* The place of a value in a ranking; embedded in the value. */
struct ranked {
    struct ranked *left, *right;
    uint32_t count; /* of it and all below it; 0: in no ranking */
    uint64_t weight;
};

typedef struct slice ranking_key_fn(const struct ranked *value);

struct ranking {
    struct ranked *root;
    ranking_key_fn *key;
};

void ranking_init(struct ranking *ranking, ranking_key_fn *key);

/* No value of that key is in it yet. */
void ranking_insert(struct ranking *ranking, struct ranked *value);
void ranking_remove(struct ranking *ranking, struct ranked *value);

/* The value at a place, counted from 0; NULL behind the last. */
struct ranked *ranking_at(const struct ranking *ranking, uint64_t place);
uint32_t ranking_count(const struct ranking *ranking);

/* How many have a key below this one: the place where it is, or would be. */
uint32_t ranking_place(const struct ranking *ranking, struct slice key);
