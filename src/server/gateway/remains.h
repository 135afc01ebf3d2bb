/* remains.h - what an archived branch, or an environment of a deleted project, leaves
 * in the store when retention has removed its runs: documents of every kind, and at last the
 * branch itself (of a deleted project retention.c removes all environments at once). */
#pragma once

#include "accounts/accounts.h"
#include "core/engine/engine.h"

enum { REMAINS_AT_ONCE = 100 };

/* The zero value of the rest is right at the beginning. */
struct remains {
    struct engine *engine;
    struct account *account;
    void (*done)(struct remains *remains);
    bool stopping; /* done comes as soon as the store has answered */

    enum document_kind kind;
    struct store_walk walk;
    struct store_scan scan;
    struct change changes[REMAINS_AT_ONCE];
    struct document_write write;
};

/* The environment is over, and not in memory. While it has runs
 * nothing is removed; whatever fails is begun again by the next call. done comes later. */
void remains_remove(struct remains *remains);
