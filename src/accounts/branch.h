/* branch.h - names of preview branches, by the rules of the official CLI. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* Returns true for a branch name that Git allows, of 1 to 255 bytes of UTF-8. */
bool branch_name_is_right(struct slice name);

/* Strips a leading refs/heads/ or the like. Returns "" for any other refs/…, which is not a
 * branch. */
struct slice branch_name_clean(struct slice ref);
