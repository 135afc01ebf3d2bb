/* unit.h - runs the measured gateway like systemd runs a unit with a socket.
 *
 *   unit_open: the socket listens ─► unit_start ─► READY=1 ─► unit_stop ─► ended ─► unit_start …
 *
 * The socket stays bound while one process exits and the next one starts: connections
 * opened meanwhile wait in the kernel. As in a restart by systemd, the next process starts
 * after the previous one has exited. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "options.h"
#include "poller.h"

struct unit {
    struct poller *poller;
    const struct options *options;
    int listener;          /* passed to the gateway */
    struct source told;    /* the socket for the gateway's notifications */
    struct source process; /* readable when the process has exited */
    char notify_path[108];
    pid_t pid; /* 0: none runs */
    bool ready;
    int64_t ready_ns, ended_ns; /* of the running process; of the last one that exited */
};

/* Binds the address of options->url and listens there. Borrows options. */
void unit_open(struct unit *unit, struct poller *poller, const struct options *options);

/* Starts options->gateway on the socket, with its data in options->data and its log in
 * DATA.log. */
void unit_start(struct unit *unit);

/* Returns when the gateway is ready; exits the program if the gateway exits or takes too
 * long. */
void unit_await(struct unit *unit);

/* Sends SIGTERM; unit->pid is 0 when the process has exited. If it failed, the program
 * exits. */
void unit_stop(struct unit *unit);

/* Kills a running gateway. */
void unit_close(struct unit *unit);
