/* filter.h - which runs a subscription is about.
 *
 * Tags are only ever added to a run, and everything else is fixed when it is made: so a run
 * never leaves a filter. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "runcast/run.h"

enum topic_kind { TOPIC_ALL, TOPIC_TAG, TOPIC_BATCH, TOPIC_RUN };

struct filter {
    enum topic_kind kind;
    struct bytes *name;  /* run or batch id; NULL for tags and all */
    struct bytes **tags; /* TOPIC_TAG: all of them */
    uint32_t tag_count;
    struct bytes **tasks; /* narrowing: any of them; none: every task */
    uint32_t task_count;
    int64_t created_from; /* Unix ms; 0: any */
};

/* What a filter looks at of a run, as it was at one change. */
struct facts {
    const char *id;
    const struct bytes *task, *batch;
    const struct tag_list *tags;
    int64_t created_at;
};

static inline struct facts facts_of(const struct run *run)
{
    return (struct facts){ run->id, run->task, run->batch, run->tags, run->created_at };
}

bool filter_matches(const struct filter *filter, const struct facts *facts);

/* filter_matches for the run as it is now. */
static inline bool filter_wants(const struct filter *filter, const struct run *run)
{
    struct facts facts = facts_of(run);
    return filter_matches(filter, &facts);
}

/* Bytes of memory that the names of a filter take. */
size_t filter_size(const struct filter *filter);

void filter_finish(struct filter *filter);
