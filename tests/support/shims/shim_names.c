/* shim_names.c - no name server responds for names that end in .hangs.
 *
 *   LD_PRELOAD=shim_names.so gateway
 *
 * Each such lookup writes a line to stderr, and never ends. */
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int (*real_getaddrinfo)(const char *, const char *, const struct addrinfo *,
                               struct addrinfo **);

static void hang(const char *name)
{
    const struct timespec hour = { .tv_sec = 3600 };
    dprintf(STDERR_FILENO, "looks up %s\n", name);
    for (;;)
        nanosleep(&hour, NULL);
}

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict found)
{
    const char *end = name ? strrchr(name, '.') : NULL;
    if (!real_getaddrinfo)
        *(void **)&real_getaddrinfo = dlsym(RTLD_NEXT, "getaddrinfo");
    if (end && strcmp(end, ".hangs") == 0)
        hang(name);
    return real_getaddrinfo(name, service, hints, found);
}
