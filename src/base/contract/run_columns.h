/* run_columns.h - the table of a run's fields: a row in every database, a map between
 * gateways.
 *
 * A run also has an id, tags, and packets (payload, metadata, output) with their types. The
 * packets are stored and sent separately, only when they change. */
#pragma once

#include "base/buf.h"
#include "runcast/run.h"

enum column_type {
    COLUMN_U8,
    COLUMN_U16,
    COLUMN_U32,
    COLUMN_I32,
    COLUMN_I64,
    COLUMN_U64,
    COLUMN_REAL,
    COLUMN_TEXT,
    COLUMN_FLAGS
};

/* Whether the column can change after the run was created. Updates leave fixed ones out. */
enum column_life { COLUMN_CHANGES, COLUMN_FIXED };

struct run_column {
    const char *name;
    enum column_type type;
    enum column_life life;
    size_t offset; /* for run_field */
};

enum { RUN_COLUMN_COUNT = 50 };

/* The index of a column is its number between gateways: append, never reorder. */
extern const struct run_column run_columns[RUN_COLUMN_COUNT];

/* Returns where a value that was read is stored.
 *
 * is_set: the value is not empty. Returns NULL for an empty value of the rare part, which a
 * run has only if some of it is set. */
void *run_column_place(const struct run_column *column, struct run *run, bool is_set);

/* Returns the text of a COLUMN_TEXT column. */
static inline struct slice run_column_text(const struct run_column *column,
                                           const struct run *run)
{
    return bytes_slice(*(struct bytes *const *)run_field(run, column->offset));
}

/* The flags column: 1 test, 2 replay, 4 parent waits, 8 from batch, 16 user's key. */
int run_flags(const struct run *run);
void run_set_flags(struct run *run, int flags);

/* Appends tags as in their column: "3:one,3:two,". */
void run_tags_add(struct buf *out, const struct tag_list *tags);

/* Takes the first tag off such a text. Returns false at its end. */
bool run_tags_next(struct slice *text, struct slice *tag);

/* Parses such a text. May be called on any thread. */
struct tag_list *run_tags_read(struct slice text);
