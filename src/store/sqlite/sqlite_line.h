/* sqlite_line.h - the commits that wait to be written, and which of them are next. */
#pragma once

#include "base/slots.h"
#include "runcast/store.h"

/* Commits of one kind, small or large, by environment: the environments take turns. */
struct sqlite_turns {
    struct slots queues; /* of struct queue, by the number of their environment: of those
                            with commits */
    struct list waiting; // queue::link; of those with commits, the next one first
    struct list served;  // queue::link; had a turn in the last group, and have more
    size_t count;        /* of both */
};

struct sqlite_line {
    struct sqlite_turns small, large;
    bool large_was_last; /* of the groups */
};

void sqlite_line_init(struct sqlite_line *line);

/* Nobody waits any more. */
void sqlite_line_finish(struct sqlite_line *line);

bool sqlite_line_empty(const struct sqlite_line *line);
void sqlite_line_add(struct sqlite_line *line, struct store_commit *req);

/* Moves those of the next transaction to group: at least one if any waits. */
void sqlite_line_take(struct sqlite_line *line, struct list *group);

/* Moves all of them to `to`. */
void sqlite_line_empty_into(struct sqlite_line *line, struct list *to);
