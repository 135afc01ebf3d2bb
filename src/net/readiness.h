/* readiness.h - reports which sockets are ready, a few at a time.
 *
 *   libuv ─► one descriptor is ready: the epoll of all connections
 *             └─► BATCH of them ─► fn each ─► more, while the turn has time
 *
 * libuv would call every ready handle in one turn, thousands of them, and poll again as
 * long as a poll yields a thousand. Here, sockets that were not served wait in the kernel,
 * after those that it has not reported yet.
 *
 * Reading what one client has sent may take a whole turn, and so may writing to many
 * clients at once. The kernel reports sockets that stay ready in the same order each time,
 * so an expensive client could be the only one served. Therefore, if a turn's time ran out
 * before all were served, those served the longest time ago come first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/loop.h"

struct readiness_watch;

typedef void watch_fn(struct readiness_watch *watch, uint32_t events);

/* Embedded in the owner of the socket. Must stay until the end of the turn in which the
 * socket was closed. */
struct readiness_watch {
    int fd;
    uint32_t events; /* EPOLLIN …; 0: not registered with the kernel */
    uint64_t served; /* when it was last read or written, in readiness::served; 0: never */
    watch_fn *fn;
};

struct readiness {
    struct loop *loop;
    struct timeslice serving; /* the time slice for the ready sockets of this turn */
    uint64_t served;          /* sockets served so far */
    bool left_some;           /* the last turn's time ran out before all were served */
    uv_poll_t handle;
    int fd; /* -1: closed */
};

/* Returns false, with errno, if the system is out of resources. */
bool readiness_init(struct readiness *readiness, struct loop *loop);

/* Sets the events to watch; 0: none, not even errors. Returns false if the kernel rejects
 * the socket. */
bool readiness_watch(struct readiness *readiness, struct readiness_watch *watch,
                     uint32_t events);

/* Returns true if a ready socket may be read and written in this turn. It is then the last
 * in line. */
bool readiness_may_serve(struct readiness *readiness, struct readiness_watch *watch);

/* Closes it; closed is called for the handle, later. */
void readiness_close(struct readiness *readiness, uv_close_cb closed);
