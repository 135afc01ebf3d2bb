/* frame.h - one frame of rows that is made for one feed.
 *
 * Rows are added until 64 KiB are full, then it is sent. There is one such frame at a time,
 * on the loop thread; its memory is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/wire/view.h"
#include "runcast/run.h"

struct feed;

enum {
    FRAME_PLACES = 4096,     /* looked at in one visit */
    FRAME_PLACES_LEAST = 16, /* the same, however many subscriptions there are */
    FRAME_LOOKS = 32 * 1024, /* of a subscription at a place */
};

/* Each place, and each update of the ring, is held against every subscription: a visit goes
 * over fewer of them when there are many. */
static inline uint32_t frame_places(uint32_t subscriptions)
{
    uint32_t places = subscriptions ? FRAME_LOOKS / subscriptions : FRAME_PLACES;
    if (places > FRAME_PLACES)
        return FRAME_PLACES;
    return places < FRAME_PLACES_LEAST ? FRAME_PLACES_LEAST : places;
}

void frame_start(void);

/* Adds what a client that was complete at base needs of the run (render_since). False when it no
 * longer fits; the first row always does: a single larger run goes alone. */
bool frame_add(const struct view *view, const struct run *run, uint64_t base);

/* Adds that the run has left a live list; among the first rows, where there is room. */
void frame_add_left(const struct view *view, const char *id, uint32_t version);

/* Rows so far. */
size_t frame_count(void);

/* Sends the rows as those of a subscription, or (id < 0) as a patch. False: bytes are unsent now. */
bool frame_send(struct feed *feed, int64_t id, uint64_t seq, bool more);

/* The same as rows of a live list. begin: what the client has of it is over. */
bool frame_send_list(struct feed *feed, int64_t id, uint64_t seq, bool begin, bool more);
