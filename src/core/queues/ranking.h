/* ranking.h - values ordered by key, with access to the n-th one.
 *
 * For paging through values that come and go: finding a place takes logarithmic time. The
 * value embeds its node; its key must not change while it is in the ranking. */
#pragma once

#include <stdint.h>

#include "base/slice.h"

/* The node of a value in a ranking; embedded in the value. */
struct ranked {
    struct ranked *left, *right;
    uint32_t count; /* of it and all below it; 0: not in a ranking */
    uint64_t weight;
};

typedef struct slice ranking_key_fn(const struct ranked *value);

struct ranking {
    struct ranked *root;
    ranking_key_fn *key;
};

void ranking_init(struct ranking *ranking, ranking_key_fn *key);

/* The ranking must not contain the key yet. */
void ranking_insert(struct ranking *ranking, struct ranked *value);
void ranking_remove(struct ranking *ranking, struct ranked *value);

/* Returns the value at a place, counted from 0; NULL past the end. */
struct ranked *ranking_at(const struct ranking *ranking, uint64_t place);
uint32_t ranking_count(const struct ranking *ranking);

/* Returns the number of keys below this one: the place where it is or would be. */
uint32_t ranking_place(const struct ranking *ranking, struct slice key);
