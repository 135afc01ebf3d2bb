/* linger.h - between two polls of a client: an echo goes on encoding the changes of its topic in
 * its view, until the client is back.
 *
 *   poll answered ─► echo ─► poll again: follows the ring from where it was
 *
 * So the client gets exactly the columns that changed meanwhile. All feeds that leave a topic
 * with the same view leave one echo, which then lasts longer. */
#pragma once

#include "base/list.h"
#include "base/timers.h"
#include "core/live/feed.h"

struct echo {
    struct environment *env;
    struct topic *topic;
    struct view *view;
    int64_t until_ms; /* monotonic; the timer may come before it */
    struct timer timer;
    struct list beside; // topic::echoes
    struct list link;   // the caller's
};

/* Finishes a feed with one subscription. A new echo is appended to the caller's list. */
void echo_leave(struct feed *feed, int64_t ms, struct list *echoes);

/* Ends the echo before its time. */
void echo_end(struct echo *echo);
