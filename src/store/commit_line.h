/* commit_line.h - the commits that wait to be written, and which of them are next. */
#pragma once

#include "base/slots.h"
#include "base/table.h"
#include "runcast/store.h"

/* Commits of one kind, small or large. Owners (projects) take turns, and so do the environments of
 * each. */
struct commit_turns {
    struct slots
        queues; /* of struct env_commits, by the number of their environment: of those
                            with commits */
    struct table owners; /* of struct commit_owner, by number: of those with commits */
    struct list waiting; // commit_owner::link; the next one first
    struct list served;  // commit_owner::link; had a turn in the last group, and have more
};

struct commit_line {
    struct commit_turns small, large;
    bool large_was_last; /* of the groups */
};

void commit_line_init(struct commit_line *line);

/* Nobody waits any more. */
void commit_line_finish(struct commit_line *line);

bool commit_line_empty(const struct commit_line *line);
/* The owner of an environment is what share_of of the store says; without that, each
 * environment is an owner. */
void commit_line_add(struct commit_line *line, const struct store *store,
                     struct store_commit *req);

/* Moves those of the next transaction to group: at least one if any waits. */
void commit_line_take(struct commit_line *line, struct list *group);

/* Moves all of them to `to`. */
void commit_line_empty_into(struct commit_line *line, struct list *to);
