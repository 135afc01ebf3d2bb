/* db_check.h - looks for what is damaged or missing in a data directory, and changes nothing.
 *
 * It works beside a gateway and without one. What it finds is a sentence that says what to do. */
#pragma once

#include "base/vault/vault.h"
#include "store/sqlite/snapshot/sqlite_look.h"

struct db_check_options {
    const char *data;    /* path of the folder */
    struct vault *vault; /* NULL: what is sealed is not opened */
    int64_t now_ms;      /* Unix */
    sqlite_found_fn *found;
    void *owner;
};

/* ERR_STORE with the reason: it could not look at everything; else whatever was found. */
enum err db_check(const struct db_check_options *options, struct failure *why);
