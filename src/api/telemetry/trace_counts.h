/* trace_counts.h - counts of the records that a run's trace stores and has lost: the
 * trace's document.
 *
 *   DOC_TRACE        run_x          {"logs":…, "begun":…, "ended":…, "pieces":2, …}
 *   DOC_TRACE_PIECE  run_x/000001   {"events":[…]}     written once, in the same commit
 *                    run_x/000002   {"events":[…]}
 *
 * A span has two records: one when it begins, so that it is shown while it lasts, and one
 * when it ends. Both are stored, but count as one row. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/text.h"

/* Why a record was lost. */
enum trace_loss {
    LOSS_LIMIT,  /* the run has reached its limit */
    LOSS_MEMORY, /* too many bytes of the project were waiting for the store */
    LOSS_QUOTA,  /* the project has reached its storage quota */
    LOSS_SHARE,  /* logs of unfinished runs fill the share of the environment */
    LOSS_KINDS
};

struct trace_counts {
    int64_t logs, begun, ended; /* records */
    int64_t bytes;              /* of all records */
    int64_t pieces;             /* number of stored documents; they are numbered from 1 */
    int64_t lost[LOSS_KINDS];   /* records */
    int64_t removed;            /* rows removed to make room for newer runs */
    int64_t removed_at;         /* Unix ms; 0: never */
};

static inline int64_t trace_counts_rows(const struct trace_counts *counts)
{
    return counts->logs + (counts->begun > counts->ended ? counts->begun : counts->ended);
}

/* Returns the body of the document; the caller's reference. */
struct bytes *trace_counts_write(const struct trace_counts *counts);

/* Reads the counts. Missing or negative members become 0. A document of an older gateway
 * contains events instead of counts. */
void trace_counts_read(struct trace_counts *counts, struct slice body);

/* Adds the members "dropped" and "removed", each only if it is not zero. */
void trace_counts_show(const struct trace_counts *counts, struct buf *out);

/* Writes the name of a piece. Number 0 sorts before all pieces. */
void trace_piece_name(struct slice run_id, int64_t number, char name[ID_MAX]);
