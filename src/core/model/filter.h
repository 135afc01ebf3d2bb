/* filter.h - which runs a subscription is about: those of a topic, or some of them.
 *
 * Tags are only ever added to a run, and everything else is fixed when it is made: so a run
 * never leaves a filter. */
#pragma once

#include "base/bytes.h"
#include "core/model/query.h"

/* Of the last two there are no subscriptions, but live lists. */
enum topic_kind {
    TOPIC_ALL,
    TOPIC_TAG,
    TOPIC_BATCH,
    TOPIC_RUN,
    TOPIC_TASK,
    TOPIC_QUEUE,
    TOPIC_KINDS
};

/* One of them belongs to each subscription, of which there are many, and most have a topic
 * alone. */
struct filter {
    struct bytes
        *name; /* the topic's: a tag, or the id of a batch or run; NULL: of TOPIC_ALL */
    struct query
        *query; /* all that it asks for, where it names several tags, or tasks; or NULL */
    int64_t created_from; /* Unix ms; 0: any */
    enum topic_kind kind;
};

/* Of one run, if its id is given; else of a batch, of the runs that have all tags, or of all runs.
 * wanted says which, and may narrow them to tasks and to those created from a time on. */
struct filter filter_create(struct slice run, const struct run_filter *wanted);

/* Returns true if the topic and the time of the filter, and its query, want a run of these facts. */
bool filter_matches(const struct filter *filter, const struct facts *facts);

/* filter_matches for the run as it is now. */
static inline bool filter_wants(const struct filter *filter, const struct run *run)
{
    struct facts facts = facts_of(run);
    return filter_matches(filter, &facts);
}

/* The same runs as a list or a count finds them, with one reference, the caller's. Not of
 * TOPIC_RUN. */
struct query *filter_to_query(const struct filter *filter);

/* Bytes of memory that its tags and tasks take. */
size_t filter_size(const struct filter *filter);

void filter_finish(struct filter *filter);
