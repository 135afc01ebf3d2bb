/* backup.h - a copy of a data directory, made while its gateway serves.
 *
 *   files of deployments ─► the database, as it is at one moment ─► keys: do they open it?
 *      ─► a new epoch ─► hashes, manifest ─► DIR.partial-XXXXXX becomes DIR
 *
 * The gateway is neither asked nor told. What it acknowledged before is in the copy. It holds what
 * cannot be made again: not what is unpacked of versions, which is made of their archives, nor
 * uploads that no deployment has taken, nor the token of the supervise role of this machine.
 *
 * A folder called DIR is whole. All of this blocks. */
#pragma once

#include <signal.h>

#include "server/backup/backup_manifest.h"

struct backup_options {
    const char *data, *target; /* paths of folders */
    const char *key;           /* encryption-key; "": the key is in the data directory */
    const volatile sig_atomic_t
        *stopped; /* becomes true: it ends soon, and leaves nothing */
};

/* manifest: what it has, to be finished by the caller. ERR_INVALID: nothing was made, and why;
 * ERR_STORE, ERR_CANCELED: the same, nothing is left of it. */
enum err backup_make(const struct backup_options *options, struct backup_manifest *manifest,
                     struct failure *why);
