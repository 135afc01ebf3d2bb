/* catch_up.h - sends new subscriptions everything up to now, one frame at a time.
 *
 * A subscription reads runs from the store while its position is below `cold`
 * (environment.h), then from memory. These functions are parts of a visit by feed.c. */
#pragma once

#include <stdbool.h>

#include "core/live/feed.h"

/* Sends one frame of the first subscription that catches up. That one then goes to the end
 * of the line, or becomes live if live_clean is set and nothing is left to send. Returns
 * false if it could not make progress now. */
bool catch_up_visit(struct feed *feed, bool live_clean);

/* Returns true if the store's page that is being read or sent is for this subscription. */
bool catch_up_is_for(const struct feed *feed, const struct subscription *sub);

/* Returns true while a page is being read. Until it arrives, no subscription catches up. */
bool catch_up_waits(const struct feed *feed);

/* For live subscriptions whose position is below cold: begins to read a page from the
 * store, or sends one frame of the page that has arrived. */
void catch_up_visit_live(struct feed *feed);

/* Returns true if the page that is being read or sent is for the live subscriptions. */
bool catch_up_is_for_live(const struct feed *feed);

/* Discards the page. One that is still being read is freed when it arrives. */
void catch_up_abandon(struct feed *feed);
