/* kept_view.h - keeps a client's view in use between two of its polls.
 *
 *   poll ends ─► kept view ─► next poll: follows the ring from where it was
 *
 * A kept view stays at the topic when a feed leaves. Changes of the topic continue to be
 * encoded in the feed's view until the client is back, so it gets exactly the columns that
 * changed meanwhile. All feeds with the same view that leave a topic share one kept view,
 * whose time they extend. */
#pragma once

#include "base/list.h"
#include "base/timers.h"
#include "core/live/feed.h"

struct kept_view {
    struct environment *env;
    struct topic *topic;
    struct view *view;
    int64_t until_ms; /* monotonic; the timer may fire earlier */
    struct timer timer;
    struct list topic_link; // topic::kept_views
    struct list link;       // the caller's
};

/* Finishes a feed that has one subscription, and leaves a kept view. A new one is appended
 * to `kept_views`. */
void feed_finish_keeping_view(struct feed *feed, int64_t ms, struct list *kept_views);

/* Ends the kept view early. */
void kept_view_end(struct kept_view *kept_view);
