/* leftovers.h - removes what an ended environment leaves in the store, once its runs are
 * gone.
 *
 * That is documents of every kind, and finally the document of an archived branch itself.
 * For a deleted project, retention.c removes all environments at once. */
#pragma once

#include "accounts/accounts.h"
#include "core/engine/engine.h"

enum { LEFTOVERS_AT_ONCE = 100 };

/* The caller sets the first members and zeroes the rest. */
struct leftovers {
    struct engine *engine;
    struct account *account;
    void (*done)(struct leftovers *leftovers);
    bool stopping; /* call done as soon as the store has responded */

    enum document_kind kind;
    struct store_walk walk;
    struct store_scan scan;
    struct change changes[LEFTOVERS_AT_ONCE];
    struct document_write write;
};

/* Requires that the environment has ended and is not in memory. Removes nothing while it
 * has runs; the next call retries what failed. done is called later. */
void leftovers_remove(struct leftovers *leftovers);
