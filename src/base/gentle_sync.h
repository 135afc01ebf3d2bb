/* gentle_sync.h - a large file is written beside others who sync small ones.
 *
 * A sync of a disk is waited for by all who sync meanwhile. So what is written is synced in
 * small parts, and after each the disk is left to others for as long as that took. */
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
