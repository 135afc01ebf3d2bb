/* query.h - which runs are asked for: the filter of a list, with memory of its own.
 *
 * A live list has one, and so have counts and a subscription that asks for more than its topic.
 * The lists of its filter are sorted and have no value twice. So a list is searched in the
 * logarithm of its length: a client may watch with many long lists, and each change asks all
 * of them.
 *
 * A period is kept as such: the time from which runs count moves on while somebody watches. */
#pragma once

#include "runcast/run.h"
#include "runcast/store.h"

struct query {
    uint32_t refs;
    struct run_filter filter; /* its texts are this struct's */
    int64_t period_ms;        /* runs of the last so many ms; 0: created_from stays */
    struct bytes *key;        /* query_key; NULL: it was not asked for yet */
    size_t size;              /* bytes of memory that its lists and texts take */
};

/* A copy of the filter with one reference, the caller's. */
struct query *query_create(const struct run_filter *filter, int64_t period_ms);
struct query *query_ref(struct query *query);
void query_unref(struct query *query);

/* The same for equal queries, whatever the order of their values; borrowed. */
struct slice query_key(struct query *query);

/* Bytes of memory of one whose key was asked for, or is now. */
size_t query_size(struct query *query);

/* A query counts as one for each 16 values that it names, and as one at least. Its memory and
 * the time that a run is judged in grow with its values. */
enum { QUERY_VALUES = 16 };

struct query_cost {
    size_t values;  /* of all lists of the filter */
    size_t queries; /* that it counts as */
};

struct query_cost query_cost(const struct query *query);

/* What a subscription may ask of a run, as it was at one change. Tags are only ever added to a
 * run, and everything else here is fixed when it is made. */
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

/* Returns true if every condition of the query that is about facts holds for them. */
bool query_fits(const struct query *query, const struct facts *facts);

/* Returns true if every condition of the query holds for the run: what drivers of the store ask of
 * their rows, asked of a run in memory. */
bool query_matches(const struct query *query, const struct run *run);
