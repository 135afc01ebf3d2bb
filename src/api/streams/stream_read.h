/* stream_read.h - when the readers of streams have their turn. */
#pragma once

#include "base/loop.h"

/* Writes to readers that are ready; true when the turn's time is over and more are. */
bool stream_readers_flush(struct flusher *flusher);

/* Timer of a reader. */
void stream_reader_on_time(struct timer *timer);
