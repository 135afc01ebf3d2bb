/* table.h - a hash table with borrowed keys.
 *
 * The value holds its own key; a function returns it. It uses open addressing over 12-byte
 * slots: a million entries take about 25 MB, and 38 MB while the table grows. It hashes by
 * SipHash-2-4 with a key drawn at start, because users choose tags and ids. A growing table
 * moves a few entries with each insertion, so that no single insertion pays for a
 * million. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct slice table_key_fn(const void *value);

struct table_slots {
    void **values;
    uint32_t *hashes; /* of the keys; 0: free */
    size_t capacity;  /* a power of two, or 0 */
};

struct table {
    struct table_slots now;
    struct table_slots old; /* while they are being moved; capacity 0: done */
    size_t moved;           /* number of old slots moved, from the front */
    size_t count;
    table_key_fn *key;
};

void table_init(struct table *table, table_key_fn *key);

/* Frees the table; the values stay the caller's. */
void table_finish(struct table *table);

/* Returns NULL if not found. */
void *table_find(const struct table *table, struct slice key);

/* The table must not contain the key yet. */
void table_insert(struct table *table, void *value);

/* Returns the removed value, or NULL if not found. */
void *table_remove(struct table *table, struct slice key);

/* Returns the next value in no particular order; NULL at the end. Start with *at = 0. The
 * value that was returned last may be changed, but not removed, while walking. */
void *table_next(const struct table *table, size_t *at);

/* Returns the keyed hash, for code with an index of its own. */
uint64_t table_hash(struct slice key);
