/* shim_busy.c - makes a gateway so busy that the time of each turn is used up at once.
 *
 *   LD_PRELOAD=shim_busy.so gateway
 *
 * Each time the gateway reads a clock, 10 ms have passed: on the CPU clock of its
 * thread, and on CLOCK_MONOTONIC, which it uses as an upper bound of that. libuv sees
 * the real clocks, so timers are not affected. */
#include <dlfcn.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <time.h>

enum { STEP_MS = 10 };

static int (*real_clock_gettime)(clockid_t, struct timespec *);

static const void *base_of(const void *address)
{
    Dl_info info = { 0 };
    dladdr(address, &info);
    return info.dli_fbase;
}

static bool is_of_the_program(const void *caller)
{
    return base_of(caller) == base_of((const void *)getauxval(AT_PHDR));
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static long steps;
    if (!real_clock_gettime)
        *(void **)&real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_clock_gettime(clock, time);
    bool is_turns = clock == CLOCK_MONOTONIC || clock == CLOCK_THREAD_CPUTIME_ID;
    if (result || !is_turns || !is_of_the_program(__builtin_return_address(0)))
        return result;
    long ms = __atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED) * STEP_MS;
    time->tv_sec += ms / 1000;
    time->tv_nsec += ms % 1000 * 1000000;
    if (time->tv_nsec >= 1000000000) {
        time->tv_sec++;
        time->tv_nsec -= 1000000000;
    }
    return 0;
}
