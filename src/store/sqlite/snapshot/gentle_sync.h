/* gentle_sync.h - syncs a large file in small parts, so that other syncs of the disk stay fast.
 *
 * A sync delays every other sync of the same disk. After each part the disk is left to others for
 * as long as the part took. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The zero value begins. */
struct gentle_sync {
    size_t unsynced; /* bytes */
};

/* So many bytes more were written to the file: syncs them if they are enough, and rests. False:
 * errno says why it could not. Blocks. */
bool gentle_sync_wrote(struct gentle_sync *sync, int fd, size_t bytes);
