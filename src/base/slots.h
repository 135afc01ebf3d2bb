/* slots.h - one pointer for each small number, here for each environment: the array grows
 * to the highest number that was used.
 *
 *   number:  0     1     2     3
 *   items: NULL   env   NULL  env      slots_next gives those that are there, in order
 *
 * Who has something of its own for each environment keeps it in slots, beside the others'. */
#pragma once

#include <stdint.h>

#include "base/mem.h"

/* The zero value is empty. */
struct slots {
    void **items; /* the items are the owner's */
    uint32_t count;
};

/* NULL: nothing was put there. */
static inline void *slots_get(const struct slots *slots, uint32_t number)
{
    return number < slots->count ? slots->items[number] : NULL;
}

/* The place of a number, to be read and set; it moves with the next call. */
static inline void **slots_at(struct slots *slots, uint32_t number)
{
    if (number >= slots->count) {
        slots->items = (void **)mem_resize(slots->items, (number + 1) * sizeof(void *));
        while (slots->count <= number)
            slots->items[slots->count++] = NULL;
    }
    return &slots->items[number];
}

/* The next item from *at on, which begins at 0; NULL behind the last. */
static inline void *slots_next(const struct slots *slots, uint32_t *at)
{
    while (*at < slots->count) {
        void *item = slots->items[(*at)++];
        if (item)
            return item;
    }
    return NULL;
}

/* Gives back the array. */
static inline void slots_finish(struct slots *slots)
{
    free(slots->items);
    *slots = (struct slots){ 0 };
}
