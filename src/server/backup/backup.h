/* backup.h - copies a data directory while its gateway serves.
 *
 *   files of deployments ─► the database at one moment ─► keys: do they open it?
 *      ─► a new epoch ─► hashes, manifest ─► rename DIR.partial-XXXXXX to DIR
 *
 * The gateway is not involved. The copy has every write that the gateway acknowledged
 * before. It omits files that can be recreated or are not needed: unpacked versions,
 * uploads that no deployment uses, and the token of this machine's supervise role.
 *
 * If DIR exists, it is complete. All of this blocks. */
#pragma once

#include <signal.h>

#include "server/backup/backup_manifest.h"

struct backup_options {
    const char *data, *target;            /* paths of folders */
    const char *key;                      /* encryption-key; "": in the data directory */
    const volatile sig_atomic_t *stopped; /* once true: stop soon and remove the copy */
};

/* Makes the backup and fills in its manifest, which the caller finishes in any case.
 *
 * ERR_INVALID, ERR_STORE or ERR_CANCELED with the reason: no backup was made, and its files
 * were removed. */
enum err backup_make(const struct backup_options *options, struct backup_manifest *manifest,
                     struct failure *why);
