/* sandbox.h - permanently drops the rights that this process never needs.
 *
 *   option                         enforced by       what an intruder can then not do
 *   paths, and the access to them  Landlock          read or change other files
 *   ports to bind or connect to    Landlock, ABI 4   bind others, connect to others (TCP)
 *   abstract sockets; signals      Landlock, ABI 6   use those of others; signal others
 *   none: the list is fixed        seccomp           start a program or a process, trace
 *                                                    others, mount, load into the kernel
 *
 * Both are kernel features, need no privilege, and apply to everything that the thread
 * starts later. Before ABI 8, Landlock applies only to the calling thread, so begin a
 * sandbox before there is another thread. Whatever is open stays open.
 *
 * Landlock does not restrict stat, chmod, chown and utime; only the file system does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum sandbox_access {
    SANDBOX_READ,    /* read files and folders below it */
    SANDBOX_USE,     /* the same, and write to existing files */
    SANDBOX_SOCKETS, /* create and remove UNIX sockets; the kernel lets files be removed,
                      * too */
    SANDBOX_CHANGE,  /* everything except executing */
};

/* A path that does not exist is ignored. */
struct sandbox_path {
    const char *path;
    enum sandbox_access access;
};

/* Everything is borrowed for the call. */
struct sandbox_options {
    const struct sandbox_path *paths;
    size_t path_count;
    const uint16_t *ports; /* that may be bound; 0: any free one */
    size_t port_count;
    const uint16_t *servers; /* ports that may be connected to */
    size_t server_count;
    bool abstract_sockets; /* those of other processes may be used */
};

/* The protection in force. */
struct sandbox {
    int landlock;             /* its ABI; 0: missing or too old */
    const char *no_landlock;  /* the reason */
    bool filter;              /* the filter of system calls is active */
    const char *no_filter;    /* the reason */
    unsigned threads_outside; /* that were running, which Landlock does not restrict */
};

/* Leaves out what the kernel lacks. ERR_STORE, with the reason: the kernel refused. */
enum err sandbox_begin(const struct sandbox_options *options, struct sandbox *sandbox,
                       struct failure *why);
