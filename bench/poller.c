/* poller.c - epoll with callbacks, and the clock of all measurements. */
#include "poller.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "net/tls.h"

enum { EVENTS_A_TURN = 512 };

static const int64_t NS_PER_S = 1000000000;

void fatal(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr); /* a progress line may be there */
    fputs("runcast-bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void poller_init(struct poller *poller)
{
    *poller = (struct poller){ .epoll = epoll_create1(EPOLL_CLOEXEC) };
    if (poller->epoll < 0)
        fatal("cannot create an epoll descriptor: %s", strerror(errno));
}

void poller_finish(struct poller *poller)
{
    close(poller->epoll);
}

static void control(struct poller *poller, int operation, struct source *source,
                    uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = source };
    if (epoll_ctl(poller->epoll, operation, source->fd, &event))
        fatal("cannot watch a descriptor: %s", strerror(errno));
}

void poller_add(struct poller *poller, struct source *source, uint32_t events)
{
    control(poller, EPOLL_CTL_ADD, source, events);
}

void poller_change(struct poller *poller, struct source *source, uint32_t events)
{
    control(poller, EPOLL_CTL_MOD, source, events);
}

void poller_close(struct source *source)
{
    tls_destroy(source->tls);
    source->tls = NULL;
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
}

static int ask(struct poller *poller, struct epoll_event *events, int64_t left_ns)
{
    if (left_ns < 0)
        left_ns = 0;
    struct timespec left = { .tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S };
    int count = epoll_pwait2(poller->epoll, events, EVENTS_A_TURN, &left, NULL);
    if (count < 0 && errno != EINTR)
        fatal("cannot wait for events: %s", strerror(errno));
    return count;
}

void poller_wait(struct poller *poller, int64_t until_ns)
{
    struct epoll_event events[EVENTS_A_TURN];
    int64_t awake_until_ns = poller->ready_ns + poller->awake_ns;
    if (awake_until_ns > until_ns)
        awake_until_ns = until_ns;
    int count = 0;
    while (count == 0 && now_ns() < awake_until_ns)
        count = ask(poller, events, 0);
    if (count == 0)
        count = ask(poller, events, until_ns - now_ns());
    if (count > 0)
        poller->ready_ns = now_ns();
    for (int i = 0; i < count; i++) {
        struct source *source = events[i].data.ptr;
        if (source->fd >= 0)
            source->ready(source, events[i].events);
    }
}
