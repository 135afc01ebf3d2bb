#include "base/table.h"

#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "base/mem.h"

enum { FIRST_CAPACITY = 16 };

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
    *table = (struct table){ .key = table->key };
}

/* Where the key is, or the free slot where it belongs. */
static size_t slot_of(const struct table *table, struct slice key)
{
    size_t mask = table->capacity - 1;
    size_t at = (size_t)table_hash(key) & mask;
    while (table->slots[at] && !slice_equal(table->key(table->slots[at]), key))
        at = (at + 1) & mask;
    return at;
}

static void grow(struct table *table)
{
    void **old = table->slots;
    size_t old_capacity = table->capacity;
    table->capacity = old_capacity ? old_capacity * 2 : FIRST_CAPACITY;
    table->slots = mem_new_array(void *, table->capacity);
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i])
            table->slots[slot_of(table, table->key(old[i]))] = old[i];
    free(old);
}

void *table_find(const struct table *table, struct slice key)
{
    return table->capacity ? table->slots[slot_of(table, key)] : NULL;
}

void table_insert(struct table *table, void *value)
{
    if (table->count >= table->capacity - table->capacity / 3)
        grow(table);
    size_t at = slot_of(table, table->key(value));
    assert(!table->slots[at]);
    table->slots[at] = value;
    table->count++;
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
    size_t at = slot_of(table, key);
    void *value = table->slots[at];
    if (!value)
        return NULL;
    table->slots[at] = NULL;
    table->count--;
    close_gap(table, at);
    return value;
}

void *table_next(const struct table *table, size_t *at)
{
    while (*at < table->capacity)
        if (table->slots[(*at)++])
            return table->slots[*at - 1];
    return NULL;
}
