/* recent.h - the ring of recent updates of one environment.
 *
 * An update is one change: its seq, the facts that filters need as they were at that seq,
 * and one shared frame per view in use. The ring holds RECENT_BYTES of them; what it drops
 * first is the oldest, and `dropped` remembers how far. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/model/filter.h"
#include "core/wire/view.h"

enum { RECENT_BYTES = 4 << 20 };

struct update {
    uint64_t seq;
    char id[RUN_ID_MAX];
    struct bytes *task, *batch;
    struct tag_list *tags;
    int64_t created_at;
    uint32_t version;
    uint32_t bytes;                  /* of all frames */
    struct bytes *frames[VIEWS_MAX]; /* by view index; NULL: nobody had that view */
};

struct recent {
    struct update **updates; /* a circle */
    uint32_t first, count, capacity;
    uint64_t dropped; /* every change up to this seq may be missing from the ring */
    size_t bytes;
};

void recent_finish(struct recent *recent);

/* Takes over the update. */
void recent_push(struct recent *recent, struct update *update);

/* Index of the first update after seq, in 0 … count. */
uint32_t recent_after(const struct recent *recent, uint64_t seq);

static inline struct update *recent_at(const struct recent *recent, uint32_t i)
{
    return recent->updates[(recent->first + i) & (recent->capacity - 1)];
}

/* The facts of this run at this change; frames are the caller's to fill in. */
struct update *update_create(uint64_t seq, const struct run *run);

static inline struct facts facts_of_update(const struct update *update)
{
    return (struct facts){ update->id, update->task, update->batch, update->tags,
                           update->created_at };
}
