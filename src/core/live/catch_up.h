/* catch_up.h - new subscriptions catch up: rows from the store below cold, then from
 * memory. Parts of feed.c's work, one frame at a time. */
#pragma once

#include <stdbool.h>

#include "core/live/feed.h"

/* One frame of the first catching subscription, which then goes to the end of the line or,
 * when live_clean and nothing is left, becomes live. False when it could not go on now. */
bool catch_up_visit(struct feed *feed, bool live_clean);

/* The page of the store that is on its way, or being sent, is for this subscription. */
bool catch_up_is_for(const struct feed *feed, const struct subscription *sub);

/* A page was asked for and has not come: no catching subscription goes on before it has. */
bool catch_up_waits(const struct feed *feed);

/* Live subscriptions that fell below cold: asks for a page of the store, or sends one frame
 * of the one that has come. */
void catch_up_visit_live(struct feed *feed);

/* The page is for the live subscriptions. */
bool catch_up_is_for_live(const struct feed *feed);

/* The page on its way is dropped when it comes. */
void catch_up_abandon(struct feed *feed);
