/* frame.h - one frame of rows that is made for one feed.
 *
 * Rows are added until 64 KiB are full, then it is sent. There is one such frame at a time,
 * on the loop thread; its memory is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runcast/run.h"
#include "wire/view.h"

struct feed;

void frame_start(void);

/* What a client that was complete at base needs of the run (render_since). False when it no
 * longer fits; the first row always does: a single larger run goes alone. */
bool frame_add(const struct view *view, const struct run *run, uint64_t base);

/* Rows so far. */
size_t frame_count(void);

/* As rows of a subscription, or (id < 0) as a patch. False: bytes are unsent now. */
bool frame_send(struct feed *feed, int64_t id, uint64_t seq, bool more);
