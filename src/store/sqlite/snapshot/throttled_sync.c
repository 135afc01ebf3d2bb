/* throttled_sync.c - syncs a part, then pauses for as long as that took. */
#include "store/sqlite/snapshot/throttled_sync.h"

#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { PART = 4 << 20, REST_MAX_MS = 250 };

static const int64_t ms_ns = 1000000;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void rest(int64_t ns)
{
    if (ns > REST_MAX_MS * ms_ns)
        ns = REST_MAX_MS * ms_ns;
    struct timespec while_others_sync = { .tv_nsec = ns };
    nanosleep(&while_others_sync, NULL); /* a signal may end it early */
}

bool throttled_sync_wrote(struct throttled_sync *sync, int fd, size_t bytes)
{
    sync->unsynced += bytes;
    if (sync->unsynced < PART)
        return true;
    sync->unsynced = 0;
    int64_t begun = now_ns();
    if (fdatasync(fd))
        return false;
    rest(now_ns() - begun);
    return true;
}
