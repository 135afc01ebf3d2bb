/* unpacker.h - the hidden role of our binary that reads the archive of a version.
 *
 *   supervise role ─── order ───► launcher (launch.h) ───► unpacker
 *        ▲                                                    │
 *        └──────────── answer (unpack_answer.h) ──────────────┘
 *
 * Strangers made the archive, so no process reads it that has something to lose. The unpacker is a
 * child of the build like npm: it has the build's user, control group and namespaces, ends with
 * the build, and starts no program. It gets the archive at standard input, opened to be read,
 * and the folder to unpack into as its working directory. Before it reads the first byte of the
 * archive it gives up everything else: it may change that folder alone (sandbox.h), and
 * allocate as much memory as the order says. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"
#include "os/archive/bundle.h"

/* The first argument, before everything that main.c reads. It is in no help. */
#define UNPACKER_ROLE "--unpack"

/* The program of process_options: in the launcher it names our binary, too. */
#define UNPACKER_PROGRAM "/proc/self/exe"

enum unpack_extent {
    UNPACK_FIRST, /* judges all of it, answers with the files of the build, and unpacks those that
                     come before the packages are installed */
    UNPACK_ALL, /* unpacks everything */
};

struct unpack_order {
    enum unpack_extent extent;
    struct bundle_limits limits;
    uint64_t memory; /* bytes that it may allocate */
};

enum { UNPACK_ORDER_MAX = 128, UNPACK_MEMORY_BASE = 64 << 20 };

/* As much memory as archives within the limits need: the base, and the names of their files. */
uint64_t unpack_memory(const struct bundle_limits *limits);

/* Writes the argument after UNPACKER_ROLE. */
void unpack_order_write(const struct unpack_order *order, char out[UNPACK_ORDER_MAX]);

static inline bool unpacker_is_asked_for(int argc, char **argv)
{
    return argc == 3 && slice_is(slice_of(argv[1]), UNPACKER_ROLE);
}

/* Does not return if there are an order and an archive: it exits with 0 after the whole answer.
 * Otherwise returns an exit status. */
int unpacker_run(const char *order);
