/* readiness.h - which sockets are ready, a few at a time.
 *
 *   libuv ─► one descriptor is ready: the epoll of all connections
 *             └─► BATCH of them ─► fn each ─► more, while the turn has time
 *
 * libuv would call every ready handle in one turn, thousands of them, and look again for
 * as long as there were a thousand. Here what is left over waits in the kernel, in line
 * behind those that have not been told of yet.
 *
 * Reading what a client has sent may cost a whole turn, and so may writing what waits for
 * many clients at once. The kernel names sockets that stay ready in the same order each time:
 * a client that costs much would be served alone. So when a turn's time was over before all
 * were served, those come first that were served the longest time ago. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/loop.h"

struct readiness_watch;

typedef void watch_fn(struct readiness_watch *watch, uint32_t events);

/* Embedded in what the socket belongs to; stays until the end of the turn in which it was
 * closed. */
struct readiness_watch {
    int fd;
    uint32_t events; /* EPOLLIN …; 0: the kernel does not know it */
    uint64_t served; /* when it was last read or written, as readiness::served; 0: never */
    watch_fn *fn;
};

struct readiness {
    struct loop *loop;
    struct stint serving; /* of the sockets that are ready in this turn */
    uint64_t served;      /* sockets so far */
    bool left_some;       /* the last turn's time was over before all were served */
    uv_poll_t handle;
    int fd; /* -1: none */
};

/* False, and errno: the system is out of something. */
bool readiness_init(struct readiness *readiness, struct loop *loop);

/* 0: nothing is wanted, not even errors. False when the kernel refuses the socket. */
bool readiness_watch(struct readiness *readiness, struct readiness_watch *watch,
                     uint32_t events);

/* True when that socket, which is ready, may be read and written in this turn; it is then the
 * last in line. */
bool readiness_may_serve(struct readiness *readiness, struct readiness_watch *watch);

/* closed is called for the handle, later. */
void readiness_close(struct readiness *readiness, uv_close_cb closed);
