/* run_columns.h - a run as a row: the columns that every database has of it, and what is kept
 * as a text or a number that is several things at once.
 *
 * A row also has env, id and tags. The packets have tables of their own, for they are written
 * only when they change. */
#pragma once

#include "base/buf.h"
#include "runcast/store.h"

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

/* Whether a change of the run can change it: what never does is left out of updates. */
enum column_life { COLUMN_CHANGES, COLUMN_FIXED };

struct run_column {
    const char *name;
    enum column_type type;
    enum column_life life;
    size_t offset; /* as run_field takes it */
};

enum { RUN_COLUMN_COUNT = 49 };

extern const struct run_column run_columns[RUN_COLUMN_COUNT];

/* Where a value that was read belongs. A run has no rare part for what is not set: NULL then. */
void *run_column_place(const struct run_column *column, struct run *run, bool is_set);

/* The text of a column of that type. */
static inline struct slice run_column_text(const struct run_column *column,
                                           const struct run *run)
{
    return bytes_slice(*(struct bytes *const *)run_field(run, column->offset));
}

/* Which texts of a run are asked for: all, or those that an update writes. */
enum column_texts { COLUMN_TEXTS_ALL, COLUMN_TEXTS_CHANGING };

bool run_column_is_asked(const struct run_column *column, enum column_texts which);

/* How many bytes these texts of a run have. Tags and packets are not among them. */
int64_t run_columns_size(const struct run *run, enum column_texts which);

/* SQL of both databases: the columns of a run r with those of its packets that are wanted, from
 * run_metadata m, run_payload p and run_output o; and their joins. */
void run_columns_add(struct buf *sql, enum store_parts parts);
void run_columns_add_joins(struct buf *sql, enum store_parts parts);

/* The column of flags: 1 test, 2 replay, 4 parent waits, 8 from batch, 16 user's key. */
int run_flags(const struct run *run);
void run_set_flags(struct run *run, int flags);

/* Tags as the text of their column: "3:one,3:two,". */
void run_tags_add(struct buf *out, const struct tag_list *tags);

/* Cuts the first tag off that text; false at its end. */
bool run_tags_next(struct slice *text, struct slice *tag);

/* The list that the text is of. May be called on any thread. */
struct tag_list *run_tags_read(struct slice text);

/* A packet as it was read. Who shows a long value has to know whether it is JSON, and how long
 * it is when it is escaped: both take a look at all of it, which costs the loop nothing where
 * rows are read on another thread. */
struct bytes *run_packet_create(struct slice value);
