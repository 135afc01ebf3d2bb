/* pg_copy.h - copies a SQLite database into an empty PostgreSQL database.
 *
 * Everything is copied byte for byte, including epoch, positions and versions, so that
 * clients continue from where they were; the files of deployments are copied, too. It is
 * one transaction: an interrupted copy leaves nothing. */
#pragma once

#include <signal.h>

#include "store/pg/pg_store.h"
#include "store/sqlite/snapshot/sqlite_look.h"

struct pg_copied {
    int64_t runs, documents, claims; /* number of rows */
    int64_t files;                   /* of deployments */
    int64_t bytes;                   /* of all rows, as sent over the connection */
};

/* Source of the files, provided by the caller. */
struct pg_copy_files {
    /* Gets the next file; size: in bytes. Returns ERR_NOT_FOUND at the end, or an error
     * with the reason. */
    enum err (*next)(struct pg_copy_files *files, struct store_file_name *name,
                     int64_t *size, struct failure *why);
    /* Reads len bytes of that file; they exist. */
    enum err (*read)(struct pg_copy_files *files, int64_t offset, char *piece, size_t len,
                     struct failure *why);
};

/* Copies everything. Uses database, schema and durability of the options. Blocks.
 *
 * Returns ERR_INVALID if there is data or a gateway already, ERR_STORE with the reason, or
 * ERR_CANCELED if *stopped became true. After an error nothing was copied, unless the
 * connection was lost at the very end; the reason then says so. */
enum err pg_copy(const struct pg_options *options, struct sqlite_look *look,
                 struct pg_copy_files *files, const volatile sig_atomic_t *stopped,
                 struct pg_copied *copied, struct failure *why);
