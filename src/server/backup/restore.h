/* restore.h - puts a backup into an empty data directory, on this machine or another one.
 *
 *   manifest ─► all hashes ─► does the key open it? ─► DATA is empty, and locked
 *      ─► fill DATA/restore.partial, compare hashes again ─► a new epoch ─► move into DATA,
 *         the database last
 *
 * Nothing is written before all hashes and the key were checked. The copy is made inside
 * the data directory, not next to it, because the directory may be a separate file system,
 * and its owner may be unable to create a folder next to it. All of this blocks. */
#pragma once

#include <signal.h>

#include "server/backup/backup_manifest.h"

struct restore_options {
    const char *source, *data;            /* paths of folders; data is created if missing */
    const char *key;                      /* encryption-key; "": the key in the backup */
    const volatile sig_atomic_t *stopped; /* once true: stop soon and leave nothing */
};

/* manifest: the backup's, with the new epoch of the data; the caller finishes it.
 * ERR_INVALID: why it cannot be restored; ERR_STORE, ERR_CANCELED: nothing of it is
 * left. */
enum err restore_make(const struct restore_options *options,
                      struct backup_manifest *manifest, struct failure *why);
