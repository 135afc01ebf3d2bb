/* restore.h - puts a backup into an empty data directory, on this machine or another one.
 *
 *   manifest ─► every hash ─► does the key open it? ─► DATA is empty, and nobody starts on it
 *      ─► DATA/restore.partial is filled, hashes compared again ─► a new epoch ─► moved into DATA,
 *         the database last
 *
 * Up to the copying nothing is written. It is made in the data directory, not beside it, which may
 * be a file system of its own, or in a folder where its owner may make none. All of this blocks. */
#pragma once

#include <signal.h>

#include "server/backup/backup_manifest.h"

struct restore_options {
    const char *source, *data; /* paths of folders; data is made if it is not there */
    const char *key;           /* encryption-key; "": the key that is in the backup */
    const volatile sig_atomic_t
        *stopped; /* becomes true: it ends soon, and leaves nothing */
};

/* manifest: of the backup, to be finished by the caller; its epoch is the one that the data have
 * now. ERR_INVALID: it cannot be put back, and why; ERR_STORE, ERR_CANCELED: nothing is left of
 * it. */
enum err restore_make(const struct restore_options *options,
                      struct backup_manifest *manifest, struct failure *why);
