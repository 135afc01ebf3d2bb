/* walk.h - what the live subscriptions of a feed get when the ring does not reach back to its
 * position: rows from the orders. A part of feed.c's work, one frame at a time. */
#pragma once

#include <stdbool.h>

#include "core/live/feed.h"

/* One frame of the live subscriptions, merged by rev; some go ahead of the walk (ahead.h).
 * True when they are complete after it. */
bool walk_live(struct feed *feed);
