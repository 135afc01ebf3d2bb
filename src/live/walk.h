/* walk.h - what the live subscriptions of a feed get when the ring does not reach back to
 * it: rows from the orders. A part of feed.c's work, one frame at a time. */
#pragma once

#include <stdbool.h>

#include "live/feed.h"

enum {
    WALK_PLACES = 4096,     /* looked at in one visit */
    WALK_PLACES_LEAST = 16, /* the same, however many subscriptions there are */
    WALK_LOOKS = 32 * 1024, /* of a subscription at a place */
};

/* Each place, and each update of the ring, is held against every subscription: a visit goes
 * over fewer of them when there are many. */
static inline uint32_t walk_places(uint32_t subscriptions)
{
    uint32_t places = subscriptions ? WALK_LOOKS / subscriptions : WALK_PLACES;
    if (places > WALK_PLACES)
        return WALK_PLACES;
    return places < WALK_PLACES_LEAST ? WALK_PLACES_LEAST : places;
}

/* One frame of the live subscriptions, merged by rev; some go ahead of the walk (ahead.h).
 * True when they are complete after it. */
bool walk_live(struct feed *feed);

/* Intermediate versions that a live client misses: those between the newest that was sent
 * and this one. Whole rows are not judged. */
void walk_count_conflated(const struct feed *feed, const struct run *run);
