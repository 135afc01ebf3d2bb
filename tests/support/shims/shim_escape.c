/* shim_escape.c - an attacker in the gateway that tries to get out, in any of its
 * threads.
 *
 *   LD_PRELOAD=shim_escape.so  SHIM_ESCAPE=file  SHIM_DATA=folder  SHIM_OUTSIDE=folder  gateway
 *
 * A thread that gets SIGUSR2 makes every attempt of escapes.h. The file gets a line for
 * each, "THREAD<tab>name of the attempt<tab>errno", and "THREAD<tab>done". */
#include <pthread.h>
#include <stdlib.h>

#include "../escapes.h"

static int report = -1;
static struct escape_place place;

static void on_signal(int number)
{
    char line[128];
    int thread = (int)syscall(SYS_gettid), error = errno;
    (void)number;
    for (int i = 0; i < ESCAPES; i++) {
        struct escape_place own = place;
        snprintf(own.names, sizeof(own.names), "escape-%d-%d", thread, i);
        int len = snprintf(line, sizeof(line), "%d\t%s\t%d\n", thread, escapes[i].name,
                           escapes[i].attempt(&own));
        if (write(report, line, (size_t)len) != len)
            abort();
    }
    int len = snprintf(line, sizeof(line), "%d\tdone\n", thread);
    if (write(report, line, (size_t)len) != len)
        abort();
    errno = error;
}

__attribute__((constructor)) static void start(void)
{
    const char *file = getenv("SHIM_ESCAPE");
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    place.data = getenv("SHIM_DATA");
    place.outside = getenv("SHIM_OUTSIDE");
    report = file ? open(file, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (report >= 0 && place.data && place.outside)
        sigaction(SIGUSR2, &action, NULL);
}
