/* shim_clock.c - a wall clock that a test can set.
 *
 *   LD_PRELOAD=shim_clock.so  SHIM_CLOCK=file  gateway
 *
 * The file holds the milliseconds by which CLOCK_REALTIME is ahead; it is read each time
 * the clock is. Replace it by rename. Without it the clock is the real one. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static const char *path;

__attribute__((constructor)) static void start(void)
{
    *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    path = getenv("SHIM_CLOCK");
}

static long long ahead_ms(void)
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
        start(); /* somebody's constructor came first */
    int result = real_clock_gettime(clock, time);
    if (result || clock != CLOCK_REALTIME)
        return result;
    long long ahead = ahead_ms(), ns = time->tv_nsec + ahead % 1000 * 1000000;
    time->tv_sec += ahead / 1000 + (ns >= 1000000000) - (ns < 0);
    time->tv_nsec = (ns + 1000000000) % 1000000000;
    return 0;
}
