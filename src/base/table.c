/* table.c - a hash table: linear probing, a keyed hash, and growth in small steps.
 *
 *   old [ . - - . - | b . c ]                 -: moved or removed, its hash remains
 *   now [ . . a . m . . m . . m . . m . . ]   twice as many slots: all values move here
 *
 * A slot is a value and 32 bits of its key's hash, in two separate arrays. A search passes
 * other values, and a table grows, without reading the values, because each would be a
 * cache miss. */
#include "base/table.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "base/mem.h"

enum { FIRST_CAPACITY = 16, MOVED_AT_ONCE = 8 };

static uint64_t hash_key[2];

/* Runs before main, so that all threads use the same key. */
__attribute__((constructor)) static void generate_key(void)
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

static struct table_slots make_slots(size_t capacity)
{
    assert(capacity <= UINT32_MAX); /* 32 bits of the hash select the slot */
    return (struct table_slots){ .capacity = capacity,
                                 .values = mem_new_array(void *, capacity),
                                 .hashes = mem_new_array(uint32_t, capacity) };
}

static void free_slots(struct table_slots *slots)
{
    free(slots->values);
    free(slots->hashes);
    *slots = (struct table_slots){ .values = NULL };
}

void table_finish(struct table *table)
{
    free_slots(&table->now);
    free_slots(&table->old);
    table_init(table, table->key);
}

/* Returns the low half of the key's hash. 0 marks free slots, so it becomes 1. */
static uint32_t hash_of(struct slice key)
{
    uint32_t hash = (uint32_t)table_hash(key);
    return hash ? hash : 1;
}

static bool holds(const struct table *table, const struct table_slots *slots, size_t at,
                  struct slice key, uint32_t hash)
{
    return slots->hashes[at] == hash && slice_equal(table->key(slots->values[at]), key);
}

/* Returns the slot of the key, or the free slot where it belongs. */
static size_t slot_of(const struct table *table, struct slice key, uint32_t hash)
{
    size_t mask = table->now.capacity - 1, at = hash & mask;
    while (table->now.hashes[at] && !holds(table, &table->now, at, key, hash))
        at = (at + 1) & mask;
    return at;
}

static void put(struct table *table, size_t at, void *value, uint32_t hash)
{
    table->now.values[at] = value;
    table->now.hashes[at] = hash;
}

/* ---- growing, a few slots at a time ---- */

/* Returns the slot of the key among those not moved yet; their capacity if it is not there.
 * A moved or removed value leaves its hash, so that searches continue past it, but no
 * value. */
static size_t old_slot_of(const struct table *table, struct slice key, uint32_t hash)
{
    const struct table_slots *old = &table->old;
    size_t mask = old->capacity - 1;
    if (old->capacity)
        for (size_t at = hash & mask; old->hashes[at]; at = (at + 1) & mask)
            if (old->values[at] && holds(table, old, at, key, hash))
                return at;
    return old->capacity;
}

/* Inserts a value that is in no slot, so its key need not be compared. */
static void move(struct table *table, void *value, uint32_t hash)
{
    size_t mask = table->now.capacity - 1, at = hash & mask;
    while (table->now.hashes[at])
        at = (at + 1) & mask;
    put(table, at, value, hash);
}

static void move_some(struct table *table)
{
    struct table_slots *old = &table->old;
    for (size_t i = 0; old->capacity && i < MOVED_AT_ONCE; i++) {
        if (old->values[table->moved])
            move(table, old->values[table->moved], old->hashes[table->moved]);
        old->values[table->moved] = NULL;
        if (++table->moved == old->capacity)
            free_slots(old);
    }
}

/* Earlier values have been moved by now: two thirds of the doubled slots had to fill
 * first. */
static void grow(struct table *table)
{
    while (table->old.capacity)
        move_some(table);
    table->old = table->now;
    table->moved = 0;
    table->now = make_slots(table->now.capacity ? table->now.capacity * 2 : FIRST_CAPACITY);
}

/* ---- interface ---- */

void *table_find(const struct table *table, struct slice key)
{
    if (!table->now.capacity)
        return NULL;
    uint32_t hash = hash_of(key);
    size_t at = slot_of(table, key, hash);
    if (table->now.hashes[at])
        return table->now.values[at];
    at = old_slot_of(table, key, hash);
    return at < table->old.capacity ? table->old.values[at] : NULL;
}

void table_insert(struct table *table, void *value)
{
    if (table->count >= table->now.capacity - table->now.capacity / 3)
        grow(table);
    struct slice key = table->key(value);
    uint32_t hash = hash_of(key);
    size_t at = slot_of(table, key, hash);
    assert(!table->now.hashes[at] && old_slot_of(table, key, hash) == table->old.capacity);
    put(table, at, value, hash);
    table->count++;
    move_some(table);
}

/* Moves values that a search would no longer reach into the gap, so no tombstones exist. */
static void close_gap(struct table *table, size_t gap)
{
    struct table_slots *now = &table->now;
    size_t mask = now->capacity - 1;
    for (size_t at = (gap + 1) & mask; now->hashes[at]; at = (at + 1) & mask) {
        size_t home = now->hashes[at] & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        put(table, gap, now->values[at], now->hashes[at]);
        gap = at;
    }
    put(table, gap, NULL, 0);
}

void *table_remove(struct table *table, struct slice key)
{
    if (!table->now.capacity)
        return NULL;
    uint32_t hash = hash_of(key);
    size_t at = slot_of(table, key, hash);
    void *value = table->now.values[at];
    if (value) {
        close_gap(table, at);
    } else {
        at = old_slot_of(table, key, hash);
        if (at == table->old.capacity)
            return NULL;
        value = table->old.values[at];
        table->old.values[at] = NULL;
    }
    table->count--;
    return value;
}

void *table_next(const struct table *table, size_t *at)
{
    while (*at < table->now.capacity + table->old.capacity) {
        size_t slot = (*at)++;
        void *value = slot < table->now.capacity
                          ? table->now.values[slot]
                          : table->old.values[slot - table->now.capacity];
        if (value)
            return value;
    }
    return NULL;
}
