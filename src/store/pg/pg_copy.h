/* pg_copy.h - a database of SQLite becomes the content of an empty PostgreSQL.
 *
 * All of it, byte for byte: epoch, positions and versions too, so that clients go on from where
 * they were; and the files of its deployments. In one transaction: what is cut off leaves nothing. */
#pragma once

#include <signal.h>

#include "store/pg/pg_store.h"
#include "store/sqlite/snapshot/sqlite_look.h"

struct pg_copied {
    int64_t runs, documents, claims; /* rows */
    int64_t files;                   /* of deployments */
    int64_t bytes;                   /* of all rows, as they went over the connection */
};

/* Where files come from; the caller's. */
struct pg_copy_files {
    /* The next one; size: its bytes. ERR_NOT_FOUND: there is no other; others with the reason. */
    enum err (*next)(struct pg_copy_files *files, struct store_file_name *name,
                     int64_t *size, struct failure *why);
    /* So many bytes of it, which are there. */
    enum err (*read)(struct pg_copy_files *files, int64_t offset, char *piece, size_t len,
                     struct failure *why);
};

/* Of options database, schema and durability count. Blocks. ERR_INVALID: there are data already,
 * or a gateway; ERR_STORE with the reason; ERR_CANCELED: *stopped has become true. Nothing was
 * copied then, but when the connection was lost at the very end, which the reason says. */
enum err pg_copy(const struct pg_options *options, struct sqlite_look *look,
                 struct pg_copy_files *files, const volatile sig_atomic_t *stopped,
                 struct pg_copied *copied, struct failure *why);
