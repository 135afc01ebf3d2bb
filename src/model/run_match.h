/* run_match.h - whether a filter of a list wants a run: what drivers of the store ask of their
 * rows, asked of a run in memory. */
#pragma once

#include "runcast/store.h"

/* Every condition of the filter holds for the run. */
bool run_matches(const struct run *run, const struct run_filter *filter);
