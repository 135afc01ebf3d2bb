/* api_population.h - a world in use: what a request costs when much is there already.
 *
 *   dev   2,000 runs in 4 batches, half of them delayed, of 50 tags 10 each
 *         200 schedules, 100 waitpoints, 50 variables
 *
 * Made by the calls that clients make. */
#pragma once

#include "tests/support/world/api_world.h"

void api_population_add(struct api_world *world);
