/* commit_turns.h - a fair queue of commits: projects take turns, and so do environments.
 *
 *   project A ─ env 1: c c c c      the first project has its turn, then goes to the end of
 *             ─ env 2: c            the line if it has more; so do the environments of each
 *   project B ─ env 3: c
 *
 * A project gets one turn, however many environments it has, because clients can create
 * preview branches, which are environments. Commits of one environment keep their order. In
 * identifiers, a share is a project as store_share_fn numbers it.
 *
 * A caller works in rounds. In one round a project has turns until all of its environments
 * have passed, or until commit_turns_take_share took its commits. */
#pragma once

#include "base/slots.h"
#include "base/table.h"
#include "runcast/store.h"

struct commit_turns {
    /* struct env_commits, by the number of the environment; only those with commits. */
    struct slots queues;
    /* struct share_commits, by store_share_fn; only those with commits. */
    struct table shares;
    struct list waiting; // share_commits::link; the next one first
    struct list served;  // share_commits::link; no turn before the next round
    unsigned round;
};

void commit_turns_init(struct commit_turns *turns);

/* Requires that there are no commits. */
void commit_turns_finish(struct commit_turns *turns);

/* Appends the commit to the queue of its environment: that of its first change, or claim.
 *
 * store::share_of, called on the loop, returns the environment's project; without it, each
 * environment counts as a project. */
void commit_turns_add(struct commit_turns *turns, const struct store *store,
                      struct store_commit *req);

/* Returns the number of projects that have commits. */
static inline size_t commit_turns_count(const struct commit_turns *turns)
{
    return turns->shares.count;
}

/* Begins a round. Projects whose round ended early come after those added since then. */
void commit_turns_begin_round(struct commit_turns *turns);

/* Returns the commit whose turn it is; NULL if the round has ended. */
struct store_commit *commit_turns_first(struct commit_turns *turns);

/* Removes that commit and ends the turn. */
void commit_turns_take(struct commit_turns *turns);

/* Keeps that commit, ends the turn, and ends the round for the commit's environment. */
void commit_turns_pass(struct commit_turns *turns);

/* Moves commits of the project whose turn it is to group.
 *
 * Takes them from its environments in turn until their weights (store_commit::weight) add
 * up to share or more, then ends the round for the project. Returns the sum; 0 if the round
 * has ended. */
size_t commit_turns_take_share(struct commit_turns *turns, size_t share,
                               struct list *group);
