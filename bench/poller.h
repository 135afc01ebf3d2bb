/* poller.h - epoll with callbacks, and the clock of all measurements.
 *
 * One thread, level triggered. A source is embedded in its owner. All times are
 * CLOCK_MONOTONIC in nanoseconds, which server and client on one machine share. */
#pragma once

#include <stdint.h>

struct tls;

struct source {
    int fd;          /* -1: closed */
    struct tls *tls; /* of secure.h; NULL: none. Destroyed with the descriptor */
    void (*ready)(struct source *source, uint32_t events);
};

struct poller {
    int epoll;
    int64_t awake_ns; /* how long to stay awake after an event; 0: not at all */
    int64_t ready_ns; /* time of the last event */
};

/* Prints the message to standard error and ends the program with status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void fatal(const char *format, ...);

int64_t now_ns(void);

void poller_init(struct poller *poller);
void poller_finish(struct poller *poller);

/* The descriptor must be open and new to the poller. */
void poller_add(struct poller *poller, struct source *source, uint32_t events);

void poller_change(struct poller *poller, struct source *source, uint32_t events);

/* Closes the descriptor; ignores a closed one. Its other events of the same turn are
 * dropped, but the memory must stay until poller_wait has returned. */
void poller_close(struct source *source);

/* Waits until something is ready or until_ns is reached, and calls the sources that are
 * ready. */
void poller_wait(struct poller *poller, int64_t until_ns);
