/* trace_counts.h - the document of a run's trace: counts of what is stored and what is missing.
 *
 *   DOC_TRACE        run_x          {"logs":…, "begun":…, "ended":…, "bytes":…, "pieces":2, …}
 *   DOC_TRACE_PIECE  run_x/000001   {"events":[…]}     written once, in the same commit
 *                    run_x/000002   {"events":[…]}
 *
 * A span has two records: one when it begins, which shows it while it lasts, and one when it
 * ends. Both are kept, and count as one row. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/text.h"

/* Why a record was not kept. */
enum trace_loss {
    LOSS_LIMIT,  /* the run has as many as it may have */
    LOSS_MEMORY, /* too many of the project waited for the store */
    LOSS_QUOTA,  /* the project stores as much as it may */
    LOSS_SHARE,  /* runs that have not ended keep all the logs that it may keep */
    LOSS_KINDS
};

struct trace_counts {
    int64_t logs, begun, ended; /* records */
    int64_t bytes;              /* of all records */
    int64_t pieces;             /* stored documents; their numbers begin at 1 */
    int64_t lost[LOSS_KINDS];   /* records */
    int64_t removed;            /* rows that were removed to make room for newer runs */
    int64_t removed_at;         /* when; Unix ms; 0: never */
};

static inline int64_t trace_counts_rows(const struct trace_counts *counts)
{
    return counts->logs + (counts->begun > counts->ended ? counts->begun : counts->ended);
}

/* The body of the document. */
struct bytes *trace_counts_write(const struct trace_counts *counts);

/* Members that are missing or negative are 0. A document of an older gateway holds the events
 * itself, and no counts. */
void trace_counts_read(struct trace_counts *counts, struct slice body);

/* Adds the members "dropped" and "removed", each only if something was. */
void trace_counts_show(const struct trace_counts *counts, struct buf *out);

/* Writes the name of the piece; number 0 sorts before all pieces. */
void trace_piece_name(struct slice run_id, int64_t number, char name[ID_MAX]);
