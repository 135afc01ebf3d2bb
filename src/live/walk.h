/* walk.h - what a feed gets when the ring does not reach back to it: rows from the orders,
 * and from the store below cold. Parts of feed.c's work, one frame at a time. */
#pragma once

#include <stdbool.h>

#include "live/feed.h"

/* One frame of the live subscriptions, merged by rev; every eighth from the newest end.
 * True when they are complete after it. */
bool walk_live(struct feed *feed);

/* Nothing is left of the walk that there may have been. */
void walk_end(struct feed *feed);

/* One frame of the first catching subscription, which then goes to the end of the line or,
 * when live_clean and nothing is left, becomes live. False when it could not go on now. */
bool walk_catching(struct feed *feed, bool live_clean);

/* The page of the store that is on its way, or being sent, is for this subscription. */
bool walk_is_for(const struct feed *feed, const struct subscription *sub);

/* A page was asked for and has not come: no visit before it has. */
bool walk_is_waiting(const struct feed *feed);

/* The page on its way is dropped when it comes. */
void walk_abandon(struct feed *feed);
