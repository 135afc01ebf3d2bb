/* query.h - the runs that a client requests: a copy of a list's filter.
 *
 * Each live list or count has a query (core/live/window.h), and so has a subscription whose
 * filter restricts more than a topic (filter.h). Its lists of values (tasks, tags, …) are
 * sorted and have no duplicates, so that matching takes time logarithmic in their length:
 * clients may watch with many long lists, and a change may have to be matched with all of
 * them.
 *
 * A query may have a period, such as the last 24 hours, which then moves while clients
 * watch (core/live/windows.c). */
#pragma once

#include "runcast/run.h"
#include "runcast/store.h"

struct query {
    uint32_t refs;
    struct run_filter filter; /* its texts belong to this struct */
    /* Only runs of this last period count; 0: created_from is fixed. */
    int64_t period_ms;
    struct bytes *key; /* see query_key; NULL: not made yet */
    size_t size;       /* bytes of memory that its lists and texts take */
};

/* Returns a copy of the filter. The caller owns the one reference. */
struct query *query_create(const struct run_filter *filter, int64_t period_ms);
struct query *query_ref(struct query *query);
void query_unref(struct query *query);

/* Returns a text that is the same for equal queries, in whatever order their values came;
 * borrowed. */
struct slice query_key(struct query *query);

/* Returns the bytes of memory that the query takes, its key included. */
size_t query_size(struct query *query);

/* A query counts as one for each QUERY_VALUES values that it names, and at least as one.
 * Its memory, and the time to match a run, grow with its values. */
enum { QUERY_VALUES = 16 };

struct query_cost {
    size_t values;  /* of all lists of the filter */
    size_t queries; /* how many queries it counts as */
};

struct query_cost query_cost(const struct query *query);

/* The parts of a run that a filter or a subscription's query depends on, as they were at
 * one change. Tags are only ever added to a run, and the rest is fixed when it is
 * created. */
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

/* Returns true if the facts meet every condition of the query that is about facts. */
bool query_fits(const struct query *query, const struct facts *facts);

/* Returns true if the run meets every condition of the query. The store's drivers check the
 * same conditions on their rows. */
bool query_matches(const struct query *query, const struct run *run);
