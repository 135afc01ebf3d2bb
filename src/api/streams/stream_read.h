/* stream_read.h - callbacks of the loop that serve the readers of streams. */
#pragma once

#include "base/loop.h"

/* Writes to the readers that are ready. Returns true if the turn's time ends before all
 * were served. */
bool stream_readers_flush(struct flusher *flusher);

/* Called by a reader's timer. */
void stream_reader_on_time(struct timer *timer);
