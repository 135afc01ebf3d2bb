/* recent.c - the ring of recent updates.
 *
 *   dropped │ first ──► … ──► newest        drops the oldest when the updates exceed 4 MiB
 *
 * A client whose position is not below `dropped` finds every change that it has not seen
 * here, as frames shared by all clients with its view. */
#include "core/changes/recent.h"

#include <string.h>

#include "base/mem.h"

struct update *update_create(uint64_t seq, const struct run *run)
{
    struct update *update = mem_new(struct update);
    update->seq = seq;
    memcpy(update->id, run->id, sizeof(update->id));
    update->task = bytes_ref(run->task);
    update->batch = bytes_ref(run->batch);
    update->tags = tag_list_ref(run->tags);
    update->created_at = run->created_at;
    update->version = run->version;
    return update;
}

static void update_destroy(struct update *update)
{
    bytes_unref(update->task);
    bytes_unref(update->batch);
    tag_list_unref(update->tags);
    for (int i = 0; i < VIEWS_MAX; i++)
        bytes_unref(update->frames[i]);
    free(update);
}

static void drop_oldest(struct recent *recent)
{
    struct update *oldest = recent_at(recent, 0);
    recent->dropped = oldest->seq;
    recent->bytes -= oldest->bytes + sizeof(struct update);
    recent->first = (recent->first + 1) & (recent->capacity - 1);
    recent->count--;
    update_destroy(oldest);
}

void recent_finish(struct recent *recent)
{
    while (recent->count)
        drop_oldest(recent);
    free(recent->updates);
    *recent = (struct recent){ 0 };
}

static void grow(struct recent *recent)
{
    uint32_t capacity = recent->capacity ? recent->capacity * 2 : 64;
    struct update **updates = mem_new_array(struct update *, capacity);
    for (uint32_t i = 0; i < recent->count; i++)
        updates[i] = recent_at(recent, i);
    free(recent->updates);
    recent->updates = updates;
    recent->capacity = capacity;
    recent->first = 0;
}

void recent_push(struct recent *recent, struct update *update)
{
    if (recent->count == recent->capacity)
        grow(recent);
    recent->updates[(recent->first + recent->count) & (recent->capacity - 1)] = update;
    recent->count++;
    recent->bytes += update->bytes + sizeof(struct update);
    while (recent->bytes > RECENT_BYTES && recent->count > 1)
        drop_oldest(recent);
}

uint32_t recent_after(const struct recent *recent, uint64_t seq)
{
    uint32_t low = 0, high = recent->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (recent_at(recent, middle)->seq <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
