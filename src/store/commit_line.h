/* commit_line.h - the commits waiting to be written, and which of them are written next.
 *
 * commit_line.c explains the order. Each writer of a driver has one. Not thread-safe. */
#pragma once

#include "store/commit_turns.h"

struct commit_line {
    struct commit_turns small, large;
    bool large_was_last; /* the last group was a large commit */
};

void commit_line_init(struct commit_line *line);

/* Requires that no commit is waiting. */
void commit_line_finish(struct commit_line *line);

bool commit_line_empty(const struct commit_line *line);
void commit_line_add(struct commit_line *line, const struct store *store,
                     struct store_commit *req);

/* Moves the commits of the next transaction to group: at least one if any is waiting. */
void commit_line_take(struct commit_line *line, struct list *group);

/* Moves all waiting commits to `to`. */
void commit_line_empty_into(struct commit_line *line, struct list *to);
