/* table.c - linear probing, a keyed hash, and growth in small steps.
 *
 *   old   [ . m m . m | b . c ]                 m: moved, no longer looked at in here
 *   slots [ . . a . m . . m . . m . . m . . ]   twice as many: where all of them go */
#include "base/table.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "base/mem.h"

enum { FIRST_CAPACITY = 16, MOVED_AT_ONCE = 8 };

static uint64_t hash_key[2];

/* Before main, so that every thread hashes alike. */
__attribute__((constructor)) static void draw_key(void)
{
    while (getrandom(hash_key, sizeof(hash_key), 0) != sizeof(hash_key))
        if (errno != EINTR)
            abort();
}

static inline uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

uint64_t table_hash(struct slice key)
{
    uint64_t v[4] = { hash_key[0] ^ UINT64_C(0x736f6d6570736575),
                      hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
                      hash_key[0] ^ UINT64_C(0x6c7967656e657261),
                      hash_key[1] ^ UINT64_C(0x7465646279746573) };
    size_t i = 0;
    for (; i + 8 <= key.len; i += 8) {
        uint64_t word;
        memcpy(&word, key.ptr + i, sizeof(word));
        sip_word(v, word);
    }
    uint64_t last = (uint64_t)key.len << 56;
    for (unsigned shift = 0; i < key.len; i++, shift += 8)
        last |= (uint64_t)(unsigned char)key.ptr[i] << shift;
    sip_word(v, last);
    v[2] ^= 0xFF;
    for (int round = 0; round < 4; round++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void table_init(struct table *table, table_key_fn *key)
{
    *table = (struct table){ .key = key };
}

void table_finish(struct table *table)
{
    free(table->slots);
    free(table->old);
    *table = (struct table){ .key = table->key };
}

/* Where the key is, or the free slot where it belongs. */
static size_t slot_of(const struct table *table, struct slice key, size_t hash)
{
    size_t mask = table->capacity - 1;
    size_t at = hash & mask;
    while (table->slots[at] && !slice_equal(table->key(table->slots[at]), key))
        at = (at + 1) & mask;
    return at;
}

/* ---- growing, a few slots at a time ---- */

static char gone; /* stands in old slots for a value that was removed */

/* Where the key is among the slots not moved yet; old_capacity when it is not. What was
 * moved stays in its slot, so that searches pass over it, but is not looked at. */
static size_t old_slot_of(const struct table *table, struct slice key, size_t hash)
{
    if (!table->old)
        return table->old_capacity;
    size_t mask = table->old_capacity - 1;
    for (size_t at = hash & mask; table->old[at]; at = (at + 1) & mask)
        if (at >= table->moved && table->old[at] != &gone &&
            slice_equal(table->key(table->old[at]), key))
            return at;
    return table->old_capacity;
}

static bool is_old(const struct table *table, size_t old_slot)
{
    return table->old && old_slot < table->old_capacity;
}

static void move_some(struct table *table)
{
    for (size_t i = 0; table->old && i < MOVED_AT_ONCE; i++) {
        void *value = table->old[table->moved];
        if (value && value != &gone) {
            struct slice key = table->key(value);
            table->slots[slot_of(table, key, (size_t)table_hash(key))] = value;
        }
        if (++table->moved < table->old_capacity)
            continue;
        free(table->old);
        table->old = NULL;
    }
}

/* The slots before are all moved by now: two thirds of twice as many were to be filled. */
static void grow(struct table *table)
{
    while (table->old)
        move_some(table);
    table->old = table->slots;
    table->old_capacity = table->capacity;
    table->moved = 0;
    table->capacity = table->capacity ? table->capacity * 2 : FIRST_CAPACITY;
    table->slots = mem_new_array(void *, table->capacity);
}

/* ---- what callers see ---- */

void *table_find(const struct table *table, struct slice key)
{
    if (!table->capacity)
        return NULL;
    size_t hash = (size_t)table_hash(key);
    void *value = table->slots[slot_of(table, key, hash)];
    if (value || !table->old)
        return value;
    size_t at = old_slot_of(table, key, hash);
    return is_old(table, at) ? table->old[at] : NULL;
}

void table_insert(struct table *table, void *value)
{
    if (table->count >= table->capacity - table->capacity / 3)
        grow(table);
    struct slice key = table->key(value);
    size_t hash = (size_t)table_hash(key), at = slot_of(table, key, hash);
    assert(!table->slots[at] && !is_old(table, old_slot_of(table, key, hash)));
    table->slots[at] = value;
    table->count++;
    move_some(table);
}

/* Moves what a search would no longer reach into the gap, so there are no tombstones. */
static void close_gap(struct table *table, size_t gap)
{
    size_t mask = table->capacity - 1;
    for (size_t at = (gap + 1) & mask; table->slots[at]; at = (at + 1) & mask) {
        size_t home = (size_t)table_hash(table->key(table->slots[at])) & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        table->slots[gap] = table->slots[at];
        table->slots[at] = NULL;
        gap = at;
    }
}

void *table_remove(struct table *table, struct slice key)
{
    if (!table->capacity)
        return NULL;
    size_t hash = (size_t)table_hash(key), at = slot_of(table, key, hash);
    void *value = table->slots[at];
    if (value) {
        table->slots[at] = NULL;
        close_gap(table, at);
    } else {
        at = old_slot_of(table, key, hash);
        if (!is_old(table, at))
            return NULL;
        value = table->old[at];
        table->old[at] = &gone;
    }
    table->count--;
    return value;
}

void *table_next(const struct table *table, size_t *at)
{
    for (; *at < table->capacity; (*at)++)
        if (table->slots[*at])
            return table->slots[(*at)++];
    while (table->old && *at < table->capacity + table->old_capacity) {
        size_t old = (*at)++ - table->capacity;
        if (old >= table->moved && table->old[old] && table->old[old] != &gone)
            return table->old[old];
    }
    return NULL;
}
