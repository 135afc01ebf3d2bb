/* commit_turns.h - commits that wait; their projects take turns.
 *
 *   project A ─ env 1: c c c c      the project in front has its turn, and goes to the back of the
 *             ─ env 2: c            line if it has more commits; so do the environments of each
 *   project B ─ env 3: c
 *
 * A project has one turn, however many environments it has: preview branches are environments that
 * a client makes. Commits of one environment keep their order. A round ends early for an environment,
 * or a project, that passed: it has no turn before the next round. */
#pragma once

#include "base/slots.h"
#include "base/table.h"
#include "runcast/store.h"

struct commit_turns {
    struct slots
        queues; /* of struct env_commits, by the number of their environment: of those
                            with commits */
    struct table
        shares; /* of struct share_commits, by store_share_fn: of those with commits */
    struct list waiting; // share_commits::link; the next one first
    struct list served;  // share_commits::link; no turn before the next round
    unsigned round;
};

void commit_turns_init(struct commit_turns *turns);

/* Must hold no commits. */
void commit_turns_finish(struct commit_turns *turns);

/* Appends the commit to those of the environment of its first change, or claim.
 * store::share_of (called on the loop) gives the project of the environment; without it,
 * each stands by itself. */
void commit_turns_add(struct commit_turns *turns, const struct store *store,
                      struct store_commit *req);

/* The number of projects with commits. */
static inline size_t commit_turns_count(const struct commit_turns *turns)
{
    return turns->shares.count;
}

/* Begins a round. Projects whose round ended early stand after those that have come since. */
void commit_turns_begin_round(struct commit_turns *turns);

/* Returns the commit whose turn it is; NULL if the round has ended. */
struct store_commit *commit_turns_first(struct commit_turns *turns);

/* Removes that commit, and ends the turn. */
void commit_turns_take(struct commit_turns *turns);

/* Ends the turn, and the round for that commit's environment. The commit stays. */
void commit_turns_pass(struct commit_turns *turns);

/* Moves commits of the project whose turn it is to group until they weigh share, of its
 * environments in turns, and ends the round for the project. Returns their weight
 * (store_commit::weight); 0 if the round has ended. */
size_t commit_turns_take_share(struct commit_turns *turns, size_t share,
                               struct list *group);
