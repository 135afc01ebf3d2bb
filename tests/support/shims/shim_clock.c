/* shim_clock.c - clocks that a test can set.
 *
 *   LD_PRELOAD=shim_clock.so  SHIM_CLOCK=file  SHIM_MONOTONIC=file  gateway
 *
 * The first file holds the milliseconds by which CLOCK_REALTIME is ahead, the second those
 * of CLOCK_MONOTONIC, which a sleeping loop notices when something wakes it. They are read
 * each time the clock is. Replace them by rename. Without one its clock is the real one. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "reach.h"

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static const char *wall_path, *monotonic_path;

__attribute__((constructor)) static void start(void)
{
    *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    wall_path = getenv("SHIM_CLOCK");
    monotonic_path = getenv("SHIM_MONOTONIC");
}

static long long ahead_ms(const char *path)
{
    char text[32];
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    return strtoll(text, NULL, 10);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!real_clock_gettime)
        start(); /* a constructor of another library came first */
    int result = real_clock_gettime(clock, time);
    bool monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE;
    if (result || (clock != CLOCK_REALTIME && !monotonic))
        return result;
    long long ahead = ahead_ms(monotonic ? monotonic_path : wall_path),
              ns = time->tv_nsec + ahead % 1000 * 1000000;
    time->tv_sec += ahead / 1000 + (ns >= 1000000000) - (ns < 0);
    time->tv_nsec = (ns + 1000000000) % 1000000000;
    return 0;
}
