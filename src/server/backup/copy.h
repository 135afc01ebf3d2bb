/* copy.h - the data of a gateway of its own become those of gateways with a PostgreSQL.
 *
 *   lock ─► brought forward ─► does the key open it? ─► all rows and files, in one transaction
 *
 * No gateway serves meanwhile. The data directory stays as it is but for what a start does. All
 * of this blocks. */
#pragma once

#include <stdbool.h>

#include "base/vault/vault.h"
#include "store/pg/pg_copy.h"

struct copy_options {
    const char *data;    /* path of the folder */
    struct vault *vault; /* has to open what is sealed */
    struct pg_options target;
    const volatile sig_atomic_t
        *stopped; /* becomes true: it ends soon, and leaves nothing */
};

struct copied {
    struct pg_copied rows;
    size_t
        missing_files; /* that the database names, and that were not there to be copied */
    char epoch[17];
    char key_id[KEY_ID_TEXT_MAX]; /* of the key that opens them */
    bool
        key_is_found; /* it was not the vault's first one, but one that was kept beside it */
};

/* ERR_INVALID, ERR_STORE, ERR_CANCELED with the reason: nothing was copied. */
enum err copy_make(const struct copy_options *options, struct copied *copied,
                   struct failure *why);
