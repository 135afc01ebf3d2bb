/* tree.h - seals the folder of a version, so that only this process can change it.
 *
 * Untrusted programs have written to the folder, so links in it are never followed. A
 * sealed folder and everything in it belong to this process, and no other user can write
 * there. Sealing blocks: call it on a pool thread. It checks after each entry whether its
 * job (work.h) was stopped. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/work.h"

/* Limits of a built version: number of files, folders and links, and bytes of all files. */
struct tree_limits {
    uint64_t entries_max, bytes_max;
};

/* Seals everything in the folder and syncs it.
 *
 * Regular files become 0644 or 0755, folders 0755; links stay; other entries are removed.
 * The whole disk is synced once, not file by file. *bytes: size of all files. Returns
 * ERR_INVALID for a file with several names whose owner is not the builder; it keeps owner
 * and mode, because it may be one of the machine's files. Returns ERR_TOO_LARGE or
 * ERR_CANCELED. */
enum err tree_seal(int folder, uid_t builder, const struct tree_limits *limits,
                   const struct work *work, uint64_t *bytes, struct failure *why);
