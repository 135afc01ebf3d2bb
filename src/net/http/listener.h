/* listener.h - one address on which a server listens; private to http.
 *
 *   listener_bind ─► listener_start ─► accept ─► admission_adopt, or 503 and close
 *                        └─ handed over: listener_accept … listener_pause
 *
 * A socket that was handed over is kept by the process that bound it, so it outlives this
 * process. While this process does not accept, clients that connect wait in the kernel, and
 * none must be rejected. An admin socket always accepts.
 *
 * A UNIX socket is a file. One left over from a dead process is replaced. One that a
 * process listens on, or a file that is not our socket, is left alone. */
#pragma once

#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "base/timers.h"
#include "net/http/server.h"

struct listener {
    struct server *server;
    struct listen_options options; /* the host is borrowed until listener_start */
    uv_poll_t handle;
    int fd; /* -1: closed */
    int port;
    char *path;   /* of a UNIX socket, otherwise NULL */
    dev_t device; /* of its file */
    ino_t inode;
    struct timer rest; /* accepts nothing until it fires */
};

/* Binds a listening socket; accepts nothing yet. ERR_INVALID with the reason. */
enum err listener_bind(struct listener *listener, struct server *server,
                       const struct listen_options *options, struct failure *why);
void listener_start(struct listener *listener);

/* Returns true for a socket that was handed over, except an admin one: clients may wait
 * until this process, or the next one, accepts. */
bool listener_is_kept(const struct listener *listener);

/* For sockets for which listener_is_kept: starts and stops accepting. */
void listener_accept(struct listener *listener);
void listener_pause(struct listener *listener);

/* Calls closed for the handle, later; not again if it is closing already. Not for a listener
 * that was never started. */
void listener_close(struct listener *listener, uv_close_cb closed);

/* The same, but accepts clients that have connected before. */
void listener_leave(struct listener *listener, uv_close_cb closed);

/* Frees a listener that is closed, or was never started. */
void listener_finish(struct listener *listener);

/* The timer function of server::rest_kind. */
void listener_on_rested(struct timer *timer);
