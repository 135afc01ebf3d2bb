/* sqlite_claim_index.h - finds the rows of brief claims by the hash of their key.
 *
 *   hash of a key ─► slots [ 8 bytes: hash, id ] ─► id of the row, which has the key
 *
 * Brief claims (runcast/store.h) are appended to their table, which has no other index, so
 * that a commit does not write a page of a tree for each of them. At least a quarter of the
 * slots are in use, so a claim takes at most 32 bytes of memory. Only one thread may use an
 * index. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct claim_slot {
    uint32_t hash; /* of the key; 0: the slot is free */
    uint32_t id;   /* the low half of the row's id */
};

/* The zero value is empty. */
struct claim_index {
    struct claim_slot *slots; /* open addressing with linear probing */
    size_t capacity;          /* a power of two, or 0 */
    size_t count;
    int64_t newest; /* id that was added last; ids grow, and all are within 2^32 of it */
    struct claim_slot *added; /* since the last claim_index_keep, in their order */
    size_t added_count, added_capacity;
};

/* Frees the memory and leaves an empty index. */
void claim_index_finish(struct claim_index *index);

/* Returns the hash of a key, which is never 0. */
uint32_t claim_index_hash(struct slice key);

/* The id is higher than those of all rows in the index. */
void claim_index_add(struct claim_index *index, uint32_t hash, int64_t id);

/* Does nothing if the index does not contain the row. */
void claim_index_remove(struct claim_index *index, uint32_t hash, int64_t id);

/* Returns the id of the next row with this hash, whose key may be another one; 0 after the
 * last one. Start with *at = 0. */
int64_t claim_index_next(const struct claim_index *index, uint32_t hash, size_t *at);

/* Keeps what was added: the transaction has been committed. */
void claim_index_keep(struct claim_index *index);

/* Removes what was added, except for the first `kept` rows since claim_index_keep. */
void claim_index_undo(struct claim_index *index, size_t kept);
