/* ledger.h - a store in front of another one, which records every version of every run.
 *
 *   engine ──► ledger ──► fake store
 *                │ every write, version by version
 *                └ a crash: requests in flight get the result "failed", in a process
 *                  that is dead; the store keeps what it had written, and some of the rest
 *
 * Also checks that seqs and versions have no gaps. */
#pragma once

#include "base/table.h"
#include "runcast/store.h"
#include "tests/support/world/world.h"

/* The versions of a run: versions[i].version is i + 1. */
struct story {
    char id[ID_MAX - 8];
    struct run *versions;
    uint32_t count, capacity;
    bool purged;      /* retention has removed it, so no client needs it */
    struct list link; // ledger::stories
};

struct ledger {
    struct store store; /* first */
    struct store *below;
    struct fake_store *fake;
    struct loop *loop;
    struct table by_id;
    struct list stories; // in the order of their creation
    size_t count;
    uint64_t seq;        /* of the last change written */
    struct list pending; // pending::link; in the order in which they were begun
    struct deferred deferred;
    bool dead;
};

/* For world_options.wrap: world->store is a ledger. */
struct store *ledger_wrap(struct world *world);
struct ledger *ledger_of(struct world *world);

/* Creates a ledger without a store. Its owner writes down every change. */
struct ledger *ledger_create(void);
void ledger_write(struct ledger *ledger, const struct change *change);

/* Call it before world_destroy, with no request in flight. */
void ledger_destroy(struct ledger *ledger);

/* The process dies. Until ledger_revive every request fails. */
void ledger_crash(struct ledger *ledger, uint64_t seed);
void ledger_revive(struct ledger *ledger);

/* Returns NULL for an unknown run. */
const struct story *ledger_find(const struct ledger *ledger, struct slice id);

/* The run as it was at seq; NULL: it did not exist yet. */
const struct run *story_at(const struct story *story, uint64_t seq);
const struct run *story_version(const struct story *story, uint32_t version);
static inline const struct run *story_last(const struct story *story)
{
    return &story->versions[story->count - 1];
}

/* The number-th run to be created, counting from 0. */
const struct story *ledger_story(const struct ledger *ledger, size_t number);
