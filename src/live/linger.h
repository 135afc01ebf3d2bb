/* linger.h - what feeds leave behind whose clients will be back in a moment.
 *
 *   poll answered ─► echo ─► poll again: follows the ring from where it was
 *
 * Until it ends, changes of the topic go on being encoded for the view, so that the client
 * gets exactly the columns that changed meanwhile. All who leave a topic with the same
 * view leave one echo, which then lasts longer. */
#pragma once

#include "base/list.h"
#include "base/timers.h"
#include "live/feed.h"

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

/* Before its time. */
void echo_end(struct echo *echo);
