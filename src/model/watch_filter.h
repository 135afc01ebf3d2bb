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

/* A copy with one reference, the caller's. */
struct watch_filter *watch_filter_create(const struct run_filter *run, int64_t period_ms);
struct watch_filter *watch_filter_ref(struct watch_filter *filter);
void watch_filter_unref(struct watch_filter *filter);
