/* table.h - hash table with borrowed keys.
 *
 * The value holds its own key: the caller says how to get it. Open addressing over 12-byte
 * slots, so a million entries cost about 25 MB, and 38 MB while the table grows. SipHash-2-4
 * with a key drawn at start, because users choose tags and ids. A table that grows moves a few
 * entries with each insertion, so that none of them pays for a million. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct slice table_key_fn(const void *value);

struct table_slots {
    void **values;
    uint32_t *hashes; /* of their keys; 0: free */
    size_t capacity;  /* a power of two, or 0 */
};

struct table {
    struct table_slots now;
    struct table_slots old; /* while they are being moved; without capacity: done */
    size_t moved;           /* of the old ones, from the front */
    size_t count;
    table_key_fn *key;
};

void table_init(struct table *table, table_key_fn *key);

/* The values are the caller's. */
void table_finish(struct table *table);

/* NULL when there is none. */
void *table_find(const struct table *table, struct slice key);

/* No value of that key is in the table yet. */
void table_insert(struct table *table, void *value);

/* The value that was there, or NULL. */
void *table_remove(struct table *table, struct slice key);

/* Walks in no particular order: start with *at = 0; NULL at the end. The value returned
 * last may be changed but not removed while walking. */
void *table_next(const struct table *table, size_t *at);

/* The keyed hash, for those who build their own index. */
uint64_t table_hash(struct slice key);
