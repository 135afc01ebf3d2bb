/* readiness.h - which sockets are ready, a few at a time; private to net.
 *
 *   libuv ─► one descriptor is ready: the epoll of all connections
 *             └─► BATCH of them ─► fn each ─► more, while the turn has time
 *
 * libuv would call every ready handle in one turn, thousands of them, and look again for
 * as long as there were a thousand. Here what is left over waits in the kernel, in line
 * behind those that have not been served yet. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/loop.h"

struct watch;

typedef void watch_fn(struct watch *watch, uint32_t events);

/* Embedded in what the socket belongs to; stays until the end of the turn in which it was
 * closed. */
struct watch {
    int fd;
    uint32_t events; /* EPOLLIN …; 0: the kernel does not know it */
    watch_fn *fn;
};

struct readiness {
    struct loop *loop;
    struct stint reads; /* of the sockets that are ready in this turn */
    uv_poll_t handle;
    int fd; /* -1: none */
};

/* False, and errno: the system is out of something. */
bool readiness_init(struct readiness *readiness, struct loop *loop);

/* 0: nothing is wanted, not even errors. False when the kernel refuses the socket. */
bool readiness_watch(struct readiness *readiness, struct watch *watch, uint32_t events);

/* closed is called for the handle, later. */
void readiness_close(struct readiness *readiness, uv_close_cb closed);
