/* run_match.h - whether a filter of a list wants a run: what drivers of the store ask of their
 * rows, asked of a run in memory. */
#pragma once

#include "runcast/store.h"

/* Returns true if every condition of the filter holds for the run. The filter's lists are sorted by
 * slice_compare, as watch_filter_create sorts them: a list is searched in the logarithm of its
 * length, because a client may watch with many long lists and each change asks all of them. */
bool run_matches(const struct run *run, const struct run_filter *filter);
