/* unit.h - does for the measured gateway what systemd does for a unit that has a socket.
 *
 *   unit_open: the socket listens ─► unit_start ─► READY=1 ─► unit_stop ─► ended ─► unit_start …
 *
 * The socket stays bound while one process ends and the next one starts: who connects
 * meanwhile waits in the kernel. As systemd's restart, the next one starts when the one
 * before has ended. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "options.h"
#include "poller.h"

struct unit {
    struct poller *poller;
    const struct options *options;
    int listener;          /* what the gateway is handed */
    struct source told;    /* the socket that the gateway tells its state to */
    struct source process; /* readable when it has ended */
    char notify_path[108];
    pid_t pid; /* 0: none runs */
    bool ready;
    int64_t ready_ns, ended_ns; /* of the process that runs, of the last that ended */
};

/* Binds the address of options->url and listens there. Options are borrowed. */
void unit_open(struct unit *unit, struct poller *poller, const struct options *options);

/* Starts options->gateway on the socket, with its data in options->data, and its log beside
 * that: DATA.log. */
void unit_start(struct unit *unit);

/* Returns when the gateway is ready; ends the program if it ends or takes too long. */
void unit_await(struct unit *unit);

/* SIGTERM; unit->pid is 0 when the process has ended. Ends the program if it failed. */
void unit_stop(struct unit *unit);

/* Kills what still runs. */
void unit_close(struct unit *unit);
