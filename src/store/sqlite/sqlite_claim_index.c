/* sqlite_claim_index.c - an open hash table of 8-byte slots, with an undo list.
 *
 * A removal moves later slots of the same probe sequence back, so that no search passes
 * slots that were removed. */
#include "store/sqlite/sqlite_claim_index.h"

#include "base/mem.h"
#include "base/table.h"

enum { FIRST_CAPACITY = 64 };

void claim_index_finish(struct claim_index *index)
{
    free(index->slots);
    free(index->added);
    *index = (struct claim_index){ 0 };
}

uint32_t claim_index_hash(struct slice key)
{
    uint32_t hash = (uint32_t)table_hash(key);
    return hash ? hash : 1;
}

/* ---- slots ---- */

/* Returns a slot's distance from the place that its hash selects. */
static size_t distance(const struct claim_index *index, size_t at)
{
    return (at - index->slots[at].hash) & (index->capacity - 1);
}

static void put(struct claim_index *index, struct claim_slot slot)
{
    size_t mask = index->capacity - 1, at = slot.hash & mask;
    while (index->slots[at].hash)
        at = (at + 1) & mask;
    index->slots[at] = slot;
}

/* Entries keep their order, so both tables are read and written from front to back. */
static void resize(struct claim_index *index, size_t capacity)
{
    struct claim_slot *old = index->slots;
    size_t old_capacity = index->capacity;
    index->slots = mem_new_array(struct claim_slot, capacity);
    index->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].hash)
            put(index, old[i]);
    free(old);
}

static void clear(struct claim_index *index, size_t hole)
{
    size_t mask = index->capacity - 1;
    for (size_t at = (hole + 1) & mask; index->slots[at].hash; at = (at + 1) & mask)
        if (distance(index, at) >= ((at - hole) & mask)) {
            index->slots[hole] = index->slots[at];
            hole = at;
        }
    index->slots[hole].hash = 0;
}

static void remove_slot(struct claim_index *index, struct claim_slot slot)
{
    size_t mask = index->capacity - 1;
    for (size_t i = 0; i < index->capacity; i++) {
        size_t at = (slot.hash + i) & mask;
        const struct claim_slot *found = &index->slots[at];
        if (!found->hash)
            return;
        if (found->hash == slot.hash && found->id == slot.id) {
            clear(index, at);
            index->count--;
            break;
        }
    }
    if (index->capacity > FIRST_CAPACITY && index->count * 4 < index->capacity)
        resize(index, index->capacity / 2);
}

/* ---- the index ---- */

void claim_index_add(struct claim_index *index, uint32_t hash, int64_t id)
{
    struct claim_slot slot = { hash, (uint32_t)id };
    if (++index->count * 4 > index->capacity * 3)
        resize(index, index->capacity ? index->capacity * 2 : FIRST_CAPACITY);
    put(index, slot);
    index->newest = id;
    if (index->added_count == index->added_capacity) {
        index->added_capacity = index->added_capacity ? index->added_capacity * 2 : 64;
        index->added = (struct claim_slot *)mem_resize(index->added, index->added_capacity *
                                                                         sizeof(slot));
    }
    index->added[index->added_count++] = slot;
}

void claim_index_remove(struct claim_index *index, uint32_t hash, int64_t id)
{
    remove_slot(index, (struct claim_slot){ hash, (uint32_t)id });
}

int64_t claim_index_next(const struct claim_index *index, uint32_t hash, size_t *at)
{
    while (*at < index->capacity) {
        const struct claim_slot *slot =
            &index->slots[(hash + (*at)++) & (index->capacity - 1)];
        if (!slot->hash)
            break;
        if (slot->hash == hash)
            return index->newest - (uint32_t)((uint32_t)index->newest - slot->id);
    }
    return 0;
}

void claim_index_keep(struct claim_index *index)
{
    index->added_count = 0;
}

void claim_index_undo(struct claim_index *index, size_t kept)
{
    while (index->added_count > kept)
        remove_slot(index, index->added[--index->added_count]);
}
