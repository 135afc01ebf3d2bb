/* throttled_sync.h - syncs a large file in small parts, so that other syncs stay fast.
 *
 * A sync delays every other sync on the same disk. After each part, the disk is left to
 * others for as long as the part took, up to a limit. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Start with a zeroed struct. */
struct throttled_sync {
    size_t unsynced; /* bytes */
};

/* Notes a write of `bytes` bytes to the file. If enough are unsynced, syncs and pauses.
 *
 * Returns false with errno set if the sync fails. Blocks. */
bool throttled_sync_wrote(struct throttled_sync *sync, int fd, size_t bytes);
