/* slots.h - an array of pointers indexed by small numbers, here one for each environment.
 *
 *   number:  0     1     2     3
 *   items: NULL   env   NULL  env      slots_next returns those that are not NULL, in order
 *
 * The array grows to the highest number that was used. Modules that keep state per
 * environment use slots for it. */
#pragma once

#include <stdint.h>

#include "base/mem.h"

/* The zero value is empty. */
struct slots {
    void **items; /* owned by the caller */
    uint32_t count;
};

/* Returns NULL if nothing was put there. */
static inline void *slots_get(const struct slots *slots, uint32_t number)
{
    return number < slots->count ? slots->items[number] : NULL;
}

/* Returns the place of a number, to read and set. The next call may move it. */
static inline void **slots_at(struct slots *slots, uint32_t number)
{
    if (number >= slots->count) {
        slots->items = (void **)mem_resize(slots->items, (number + 1) * sizeof(void *));
        while (slots->count <= number)
            slots->items[slots->count++] = NULL;
    }
    return &slots->items[number];
}

/* Returns the next item; NULL past the end. Start with *at = 0. */
static inline void *slots_next(const struct slots *slots, uint32_t *at)
{
    while (*at < slots->count) {
        void *item = slots->items[(*at)++];
        if (item)
            return item;
    }
    return NULL;
}

/* Frees the array. */
static inline void slots_finish(struct slots *slots)
{
    free(slots->items);
    *slots = (struct slots){ 0 };
}
