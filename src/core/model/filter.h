/* filter.h - which runs a subscription is about: those of a topic, or some of them.
 *
 * A topic is a kind and a name, for example a tag (core/live/hub.h). A filter has a topic,
 * maybe a time from which runs count, and a query (query.h) if it restricts more than that.
 *
 * Tags are only ever added to a run, and everything else here is fixed when it is created,
 * so a run never stops matching a filter. */
#pragma once

#include "base/bytes.h"
#include "core/model/query.h"

/* The kinds of topics. The last two are for live lists only, not for subscriptions. */
enum topic_kind {
    TOPIC_ALL,
    TOPIC_TAG,
    TOPIC_BATCH,
    TOPIC_RUN,
    TOPIC_TASK,
    TOPIC_QUEUE,
    TOPIC_KINDS
};

/* Each subscription has one. There are many of them, and most have only a topic. */
struct filter {
    /* The topic's: a tag, or the id of a batch or run; NULL for TOPIC_ALL. */
    struct bytes *name;
    /* If it names several tags, or tasks: all of its conditions; otherwise NULL. */
    struct query *query;
    int64_t created_from; /* Unix ms; runs created earlier do not match; 0: any */
    enum topic_kind kind;
};

/* Makes a filter for one run if its id is given. Otherwise it is for the runs in wanted:
 * those of a batch, those that have all tags, or all runs, maybe only of some tasks, or
 * created from a time on. */
struct filter filter_create(struct slice run, const struct run_filter *wanted);

/* Returns true if a run with these facts matches the topic, the time and the query. */
bool filter_matches(const struct filter *filter, const struct facts *facts);

/* filter_matches for the run as it is now. */
static inline bool filter_wants(const struct filter *filter, const struct run *run)
{
    struct facts facts = facts_of(run);
    return filter_matches(filter, &facts);
}

/* Returns a query for the same runs, for a list or a count. The caller owns the one
 * reference. Not for TOPIC_RUN. */
struct query *filter_to_query(const struct filter *filter);

/* Returns the bytes of memory that its tags and tasks take. */
size_t filter_size(const struct filter *filter);

void filter_finish(struct filter *filter);
