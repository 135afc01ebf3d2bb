/* watch_filter.h - which runs a live list is about: the filter of a list, with memory of its
 * own, and a key by which equal filters are found to be one.
 *
 * A period is kept as such: the time from which runs count moves on while somebody watches. */
#pragma once

#include "runcast/store.h"

struct watch_filter {
    uint32_t refs;
    struct run_filter run; /* its texts are this struct's */
    int64_t period_ms;     /* runs of the last so many ms; 0: created_from stays */
    struct bytes *key; /* the same for equal filters, whatever the order of their values */
    size_t size;       /* bytes of memory */
};

/* A filter counts as one for each 16 values that it names, and as one at least. Its memory and
 * the time that a run is judged in grow with its values. */
enum { WATCH_FILTER_VALUES = 16 };

struct watch_cost {
    size_t values;  /* of all lists of the filter */
    size_t filters; /* that it counts as */
};

struct watch_cost watch_filter_cost(const struct watch_filter *filter);

/* A copy with one reference, the caller's. */
struct watch_filter *watch_filter_create(const struct run_filter *run, int64_t period_ms);
struct watch_filter *watch_filter_ref(struct watch_filter *filter);
void watch_filter_unref(struct watch_filter *filter);
