/* poller.h - epoll with callbacks, and the clock everything is measured with.
 *
 * One thread, level triggered. A source is embedded in what it belongs to. All times are
 * CLOCK_MONOTONIC in nanoseconds: server and client on one machine share it. */
#pragma once

#include <stdint.h>

struct tls;

struct source {
    int fd;          /* -1: closed */
    struct tls *tls; /* of secure.h; NULL: none. Goes with the descriptor */
    void (*ready)(struct source *source, uint32_t events);
};

struct poller {
    int epoll;
    int64_t awake_ns; /* stays awake so long behind what was ready last; 0: it does not */
    int64_t ready_ns; /* when that was */
};

/* Prints the sentence to standard error and ends the program with status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void fatal(const char *format, ...);

int64_t now_ns(void);

void poller_init(struct poller *poller);
void poller_finish(struct poller *poller);

/* The descriptor is open and not yet known to the poller. */
void poller_add(struct poller *poller, struct source *source, uint32_t events);

void poller_change(struct poller *poller, struct source *source, uint32_t events);

/* Closes the descriptor; harmless when it is closed. Events of it that wait in the same
 * turn are dropped, but the memory must stay until poller_wait has returned. */
void poller_close(struct source *source);

/* Waits until something is ready or until_ns has come, and calls what is ready. */
void poller_wait(struct poller *poller, int64_t until_ns);
