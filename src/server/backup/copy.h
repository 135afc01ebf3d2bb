/* copy.h - moves a gateway's data from SQLite to PostgreSQL.
 *
 *   lock ─► upgrade ─► does the key open it? ─► all rows and files, in one transaction
 *
 * No gateway may serve meanwhile. The data directory stays unchanged, except that its
 * schema is upgraded, as by any start. All of this blocks. */
#pragma once

#include <stdbool.h>

#include "base/vault/vault.h"
#include "store/pg/pg_copy.h"

struct copy_options {
    const char *data;    /* path of the data directory */
    struct vault *vault; /* must open what is sealed */
    struct pg_options target;
    const volatile sig_atomic_t *stopped; /* once true: stop soon and leave nothing */
};

struct copied {
    struct pg_copied rows;
    size_t missing_files; /* named by the database, but missing */
    char epoch[17];
    char key_id[KEY_ID_TEXT_MAX]; /* of the key that opens the secrets */
    bool key_is_found;            /* it is a kept key, not the vault's current one */
};

/* ERR_INVALID, ERR_STORE, ERR_CANCELED with the reason: nothing was copied. */
enum err copy_make(const struct copy_options *options, struct copied *copied,
                   struct failure *why);
