/* branch.h - names of preview branches, by the rules of the official CLI. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* What Git allows for a branch, 1 to 255 bytes of UTF-8. */
bool branch_name_is_right(struct slice name);

/* Without a leading refs/heads/ and its like; empty for any other refs/…, which name no
 * branch. */
struct slice branch_name_clean(struct slice ref);
