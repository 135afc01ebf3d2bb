/* tree.h - the folder of a version, in which a stranger's programs have written: what is in it is
 * never followed. A sealed one belongs to this process, and nobody else can write in it.
 *
 * Sealing blocks: for a thread of the pool, whose job (work.h) is looked at after each entry. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/work.h"

/* Limits of a version in its place: number of files, folders and links, and bytes of all
 * files. */
struct tree_limits {
    uint64_t entries_max, bytes_max;
};

/* Regular files become 0644 or 0755, folders 0755, links stay; what is none of these is removed.
 * All of it is synced, with everything else on that disk: once, and not file by file. bytes: of all
 * files. ERR_INVALID: a file that has another name elsewhere too, and is not the builder's, keeps
 * its owner and mode: it may be one of the machine's. ERR_TOO_LARGE: a limit; ERR_CANCELED. */
enum err tree_seal(int folder, uid_t builder, const struct tree_limits *limits,
                   const struct work *work, uint64_t *bytes, struct failure *why);
