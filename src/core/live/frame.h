/* frame.h - builds one frame of rows for one feed.
 *
 * Rows are added until 64 KiB are full, then the frame is sent. There is one such frame at
 * a time, on the loop thread; its memory is reused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/wire/view.h"
#include "runcast/run.h"

struct feed;

enum {
    FRAME_PLACES = 4096,     /* places examined in one visit */
    FRAME_PLACES_LEAST = 16, /* at least, however many subscriptions there are */
    FRAME_LOOKS = 32 * 1024, /* comparisons of a place with a subscription, per visit */
};

/* Returns how many places, or updates of the ring, a visit may look at. Each is compared
 * with every subscription, so there are fewer with many subscriptions. */
static inline uint32_t frame_places(uint32_t subscriptions)
{
    uint32_t places = subscriptions ? FRAME_LOOKS / subscriptions : FRAME_PLACES;
    if (places > FRAME_PLACES)
        return FRAME_PLACES;
    return places < FRAME_PLACES_LEAST ? FRAME_PLACES_LEAST : places;
}

void frame_start(void);

/* Adds the part of the run needed by a client that had everything at base (render_since).
 * Returns false if it no longer fits. The first row always fits: a run that is too large
 * goes alone. */
bool frame_add(const struct view *view, const struct run *run, uint64_t base);

/* Adds a row stating that a run has left a live list. Call it first, while the frame has
 * space. */
void frame_add_left(const struct view *view, const char *id, uint32_t version);

/* Returns the number of rows so far. */
size_t frame_count(void);

/* Sends the rows as those of a subscription, or as a patch if id < 0. Returns false if
 * bytes are unsent now. */
bool frame_send(struct feed *feed, int64_t id, uint64_t seq, bool more);

/* The same for rows of a live list. begin: the client must forget the rows it has of the
 * list. */
bool frame_send_list(struct feed *feed, int64_t id, uint64_t seq, bool begin, bool more);
