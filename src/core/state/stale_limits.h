/* stale_limits.h - brings the keys of changed limits and rates up to date. */
#pragma once

#include "core/state/members.h"

void stale_limits_init(struct engine_share *share);
void stale_limits_finish(struct engine_share *share);
