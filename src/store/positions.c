/* positions.c - the positions of environments, in a sorted array. */
#include "store/positions.h"

#include "base/mem.h"

void positions_finish(struct positions *positions)
{
    free(positions->entries);
    *positions = (struct positions){ 0 };
}

/* Returns the index of the environment, or where it would be inserted. */
static size_t place_of(const struct positions *positions, uint32_t env)
{
    size_t low = 0, high = positions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (positions->entries[middle].env < env)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct store_position *entry_of(struct positions *positions, uint32_t env)
{
    size_t at = place_of(positions, env);
    if (at < positions->count && positions->entries[at].env == env)
        return &positions->entries[at];
    if (positions->count == positions->capacity) {
        positions->capacity = positions->capacity ? positions->capacity * 2 : 16;
        positions->entries = mem_resize(
            positions->entries, positions->capacity * sizeof(positions->entries[0]));
    }
    memmove(&positions->entries[at + 1], &positions->entries[at],
            (positions->count - at) * sizeof(positions->entries[0]));
    positions->count++;
    positions->entries[at] = (struct store_position){ .env = env };
    return &positions->entries[at];
}

struct store_position positions_get(const struct positions *positions, uint32_t env)
{
    size_t at = place_of(positions, env);
    if (at < positions->count && positions->entries[at].env == env)
        return positions->entries[at];
    return (struct store_position){ .env = env };
}

void positions_put(struct positions *positions, struct store_position position)
{
    struct store_position *entry = entry_of(positions, position.env);
    if (position.seq < entry->seq)
        position.seq = entry->seq;
    *entry = position;
}

void positions_note(struct positions *positions, const struct store_commit *req)
{
    struct store_position *entry = NULL;
    for (size_t i = 0; i < req->change_count; i++) {
        const struct change *change = &req->changes[i];
        if (!entry || entry->env != change->env)
            entry = entry_of(positions, change->env);
        if (change->seq > entry->seq)
            entry->seq = change->seq;
    }
}

void positions_grow(struct positions *positions, uint32_t env, int64_t bytes)
{
    entry_of(positions, env)->stored += bytes;
}
