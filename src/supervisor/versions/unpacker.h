/* unpacker.h - the hidden role of our binary that reads a version's archive.
 *
 *   supervise role ─── order ───► launcher (launch.h) ───► unpacker
 *        ▲                                                    │
 *        └──────────── answer (unpack_answer.h) ──────────────┘
 *
 * The archive is untrusted, so only a process without privileges may read it. The unpacker
 * is a child of the build, like npm: it has the build's user, control group and namespaces,
 * ends with the build, and starts no program. It gets the archive on standard input, opened
 * for reading, and the folder to unpack into as its working directory. Before it reads the
 * first byte it gives up everything else: it may change only that folder (sandbox.h), and
 * allocate only as much memory as the order allows. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"
#include "os/archive/bundle.h"

/* The first argument, which main.c checks before all others. No help text has it. */
#define UNPACKER_ROLE "--unpack"

/* The program for process_options; to the launcher, too, it means our binary. */
#define UNPACKER_PROGRAM "/proc/self/exe"

enum unpack_extent {
    UNPACK_FIRST, /* check all of it, answer with the build files, and unpack those needed
                   * before packages are installed */
    UNPACK_ALL,   /* unpack everything */
};

struct unpack_order {
    enum unpack_extent extent;
    struct bundle_limits limits;
    uint64_t memory; /* bytes it may allocate */
};

enum { UNPACK_ORDER_MAX = 128, UNPACK_MEMORY_BASE = 64 << 20 };

/* Returns the memory that archives within the limits need.
 *
 * That is a fixed part plus the names of files. */
uint64_t unpack_memory(const struct bundle_limits *limits);

/* Writes the argument after UNPACKER_ROLE. */
void unpack_order_write(const struct unpack_order *order, char out[UNPACK_ORDER_MAX]);

static inline bool unpacker_is_asked_for(int argc, char **argv)
{
    return argc == 3 && slice_is(slice_of(argv[1]), UNPACKER_ROLE);
}

/* Executes the order and exits, with status 0 if the whole answer was written.
 *
 * Returns an exit status only if the order is invalid or standard input is not a file. */
int unpacker_run(const char *order);
