/* recent.h - the ring of recent updates of one environment.
 *
 * An update is one change: its seq, the run's facts at that seq (those that filters need),
 * and one shared frame for each view in use. The ring holds up to RECENT_BYTES of updates.
 * It drops the oldest first, and `dropped` is the seq of the last one dropped. */
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
    struct bytes *frames[VIEWS_MAX]; /* by view index; NULL: the view was not in use */
};

struct recent {
    struct update **updates; /* a ring */
    uint32_t first, count, capacity;
    uint64_t dropped; /* every change up to this seq may be missing from the ring */
    size_t bytes;
};

void recent_finish(struct recent *recent);

/* Takes ownership of the update. */
void recent_push(struct recent *recent, struct update *update);

/* Returns the index of the first update after seq; count if there is none. */
uint32_t recent_after(const struct recent *recent, uint64_t seq);

static inline struct update *recent_at(const struct recent *recent, uint32_t i)
{
    return recent->updates[(recent->first + i) & (recent->capacity - 1)];
}

/* Creates an update with the run's facts at this change. The caller adds the frames. */
struct update *update_create(uint64_t seq, const struct run *run);

static inline struct facts facts_of_update(const struct update *update)
{
    return (struct facts){ update->id, update->task, update->batch, update->tags,
                           update->created_at };
}
