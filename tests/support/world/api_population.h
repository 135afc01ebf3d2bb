/* api_population.h - fills a world, to measure the cost of a request when a lot is stored.
 *
 *   dev   2,000 runs in 4 batches, half of them delayed, of 50 tags 10 each
 *         200 schedules, 100 waitpoints, 50 variables
 *
 * Everything is created by calls that clients make. */
#pragma once

#include "tests/support/world/api_world.h"

void api_population_add(struct api_world *world);
