/* listener.h - one address that a server listens on; private to http.
 *
 *   listener_bind ─► listener_start ─► accept ─► admission_adopt, or 503 and close
 *                        └─ one that is kept: listener_accept … listener_pause
 *
 * A socket that was handed over is kept by whoever has bound it: as long as nobody accepts there,
 * who connects waits in the kernel, and nobody has to be refused. That of the admin accepts always.
 *
 * A UNIX socket is a file. One that was left behind by a process that is gone is replaced;
 * one that somebody listens on, or that is no socket of ours, is not touched. */
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
    int fd; /* -1: none */
    int port;
    char *path;   /* of a UNIX socket, else NULL */
    dev_t device; /* of its file */
    ino_t inode;
    struct timer rest; /* accepts nothing until then */
};

/* A socket that listens; nobody is accepted yet. ERR_INVALID with the reason. */
enum err listener_bind(struct listener *listener, struct server *server,
                       const struct listen_options *options, struct failure *why);
void listener_start(struct listener *listener);

/* Whether who connects waits until somebody accepts, in this process or the next. */
bool listener_is_kept(const struct listener *listener);

/* Of one that is kept: accepts from now on; does not any more. */
void listener_accept(struct listener *listener);
void listener_pause(struct listener *listener);

/* closed is called for the handle, later; not for a listener that was never started. */
void listener_close(struct listener *listener, uv_close_cb closed);

/* Frees what a listener has that is closed, or was never started. */
void listener_finish(struct listener *listener);

/* The kind of timer for server::rest_kind. */
void listener_on_rested(struct timer *timer);
