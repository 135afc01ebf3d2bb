/* sqlite_line.h - the commits that wait to be written, and which of them are next. */
#pragma once

#include "runcast/store.h"

struct sqlite_line {
    struct list small, large; // store_commit::link; in the order in which they came
    uint32_t large_env;       /* whose was written last */
    bool large_was_last;      /* of the groups */
};

void sqlite_line_init(struct sqlite_line *line);
bool sqlite_line_empty(const struct sqlite_line *line);
void sqlite_line_add(struct sqlite_line *line, struct store_commit *req);

/* Moves those of the next transaction to group: at least one if any waits. */
void sqlite_line_take(struct sqlite_line *line, struct list *group);

/* Moves all of them to `to`. */
void sqlite_line_empty_into(struct sqlite_line *line, struct list *to);
