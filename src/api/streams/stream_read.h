/* stream_read.h - loop callbacks that serve the readers of streams. */
#pragma once

#include "base/loop.h"

/* Writes to ready readers. Returns true if the turn's time runs out before all were
 * served. */
bool stream_readers_flush(struct flusher *flusher);

/* Called by a reader's timer. */
void stream_reader_on_time(struct timer *timer);
