/* sandbox.h - takes from this process, for good, what it will never need.
 *
 *   what is told                       who keeps it          what an intruder then cannot do
 *   paths, and what is done there      Landlock              read or change other files
 *   ports that are bound, or called    Landlock, ABI 4       bind others, connect to others (TCP)
 *   who is spoken to and signalled     Landlock, ABI 6       speak to others by abstract sockets,
 *                                                            signal them
 *   nothing: the list is fixed         seccomp               begin a program or a process, trace
 *                                                            others, mount, load into the kernel
 *
 * Both are the kernel's, need no privilege, and hold for what the thread begins later. Before
 * Landlock's ABI 8 they hold for the thread alone that asks for them: so a sandbox is begun before
 * there is another one. What is open stays open, whatever it is.
 *
 * Landlock does not look at stat, chmod, chown and utime: they are the file system's to refuse. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum sandbox_access {
    SANDBOX_READ, /* files and folders below it */
    SANDBOX_USE,  /* the same, and write into files that are there */
    SANDBOX_SOCKETS, /* make and remove UNIX sockets: the kernel does not tell them from files when
                        they are removed */
    SANDBOX_CHANGE, /* everything but to execute */
};

/* Of one that is not there nothing is said. */
struct sandbox_path {
    const char *path;
    enum sandbox_access access;
};

/* Everything is borrowed for the call. */
struct sandbox_options {
    const struct sandbox_path *paths;
    size_t path_count;
    const uint16_t *ports; /* that may be bound; 0: whichever is free */
    size_t port_count;
    const uint16_t *servers; /* ports that may be connected to */
    size_t server_count;
    bool abstract_sockets; /* of other processes may be sent to */
};

/* What is in force. */
struct sandbox {
    int landlock;             /* its ABI; 0: the kernel has none that helps */
    const char *no_landlock;  /* why not */
    bool filter;              /* of system calls */
    const char *no_filter;    /* why not */
    unsigned threads_outside; /* that ran already, and are not kept by Landlock */
};

/* What the kernel lacks is left out. ERR_STORE with the reason: the kernel has it, and refused. */
enum err sandbox_begin(const struct sandbox_options *options, struct sandbox *sandbox,
                       struct failure *why);
