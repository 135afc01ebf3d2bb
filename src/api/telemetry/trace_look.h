/* trace_look.h - a look at all events of one run, in the order of their start.
 *
 *   counts and pending events (traces.h) ─► pieces, a page at a time ─► merged, sorted ─► done
 *
 * All events of the run are in memory during the look: as many bytes as trace_limits allows. The
 * caller counts them for the call that it looks for (api/request/rooms.h). */
#pragma once

#include "api/telemetry/traces.h"
#include "runcast/store.h"

struct trace_look {
    void (*done)(struct trace_look *look, enum err status);
    struct trace_counts counts;
    struct spans spans; /* until trace_look_end */

    struct environment *env;
    struct store *store;
    char run_id[ID_MAX];
    char from[ID_MAX]; /* the name of the last piece that was read */
    struct trace_now now;
    struct store_scan scan;
    struct deferred deferred; /* sorts, which takes milliseconds: not in the turn of done */
    int64_t left;             /* pieces */
};

/* done comes later. */
void trace_look_begin(struct traces *traces, struct environment *env, struct slice run_id,
                      struct trace_look *look,
                      void (*done)(struct trace_look *look, enum err status));
void trace_look_end(struct trace_look *look);
