/* filter.h - which runs a subscription is about.
 *
 * Tags are only ever added to a run, and everything else is fixed when it is made: so a run
 * never leaves a filter. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/model/query.h"

enum topic_kind { TOPIC_ALL, TOPIC_TAG, TOPIC_BATCH, TOPIC_RUN };

/* What few filters ask for beside their topic. */
struct narrowing {
    struct bytes **tasks; /* any of them; none: every task */
    uint16_t task_count;
    int64_t created_from; /* Unix ms; 0: any */
};

/* One of them belongs to each subscription, of which there are many, and most have one tag. */
struct filter {
    enum topic_kind kind;
    uint16_t tag_count;
    union {
        struct bytes *name;  /* run or batch id; the tag, of TOPIC_TAG with one */
        struct bytes **tags; /* TOPIC_TAG with several: all of them; filter_tags */
    };
    struct narrowing *narrowing; /* NULL: none */
};

/* Its tag_count tags; borrowed. */
static inline struct bytes *const *filter_tags(const struct filter *filter)
{
    return filter->tag_count > 1 ? filter->tags : &filter->name;
}

/* Takes over the names, and the array in which they are; of TOPIC_TAG. */
void filter_set_tags(struct filter *filter, struct bytes **names, uint16_t count);

/* All zero when there is none; borrowed. */
static inline struct narrowing filter_narrowing(const struct filter *filter)
{
    return filter->narrowing ? *filter->narrowing : (struct narrowing){ 0 };
}

/* Take over the names, as filter_set_tags; and a time, in ms since 1970. */
void filter_set_tasks(struct filter *filter, struct bytes **names, uint16_t count);
void filter_set_created_from(struct filter *filter, int64_t unix_ms);

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
