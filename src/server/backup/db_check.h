/* db_check.h - finds damaged or missing data in a data directory, and changes nothing.
 *
 * Works with or without a running gateway. Each finding is a sentence that says what to
 * do. */
#pragma once

#include "base/vault/vault.h"
#include "store/sqlite/snapshot/sqlite_look.h"

struct db_check_options {
    const char *data;    /* path of the data directory */
    struct vault *vault; /* NULL: do not check sealed values */
    int64_t now_ms;      /* Unix */
    sqlite_found_fn *found;
    void *owner;
};

/* Calls found for each finding. ERR_STORE with the reason: not everything could be
 * checked. */
enum err db_check(const struct db_check_options *options, struct failure *why);
