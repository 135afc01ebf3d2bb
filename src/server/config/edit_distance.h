/* edit_distance.h - how far two names are apart: for finding what somebody meant. */
#pragma once

#include "base/slice.h"

/* Characters added, taken away or replaced; CONFIG_NAME_MAX for longer names. */
unsigned edit_distance(struct slice a, struct slice b);
