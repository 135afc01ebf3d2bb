/* linger.h - keeps a client's view in use between two of its polls.
 *
 *   poll answered ─► echo ─► poll again: follows the ring from where it was
 *
 * An echo stays at the topic of a feed that has left. Changes of the topic continue to be
 * encoded in the feed's view until the client is back, so it gets exactly the columns that
 * changed meanwhile. All feeds with the same view that leave a topic share one echo, which
 * then lasts longer. */
#pragma once

#include "base/list.h"
#include "base/timers.h"
#include "core/live/feed.h"

struct echo {
    struct environment *env;
    struct topic *topic;
    struct view *view;
    int64_t until_ms; /* monotonic; the timer may fire earlier */
    struct timer timer;
    struct list beside; // topic::echoes
    struct list link;   // the caller's
};

/* Finishes a feed with one subscription, and leaves an echo. A new one is appended to
 * `echoes`. */
void echo_leave(struct feed *feed, int64_t ms, struct list *echoes);

/* Ends the echo before its time. */
void echo_end(struct echo *echo);
