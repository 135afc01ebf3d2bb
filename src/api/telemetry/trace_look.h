/* trace_look.h - loads all events of one run, sorted by their start.
 *
 *   counts and pending events (traces.h) ─► pieces, page by page ─► merged, sorted ─► done
 *
 * All events of the run are in memory until trace_look_end, up to the bytes of
 * trace_limits. The caller accounts for them in the memory budget of its call
 * (api/request/quotas.h). */
#pragma once

#include "api/telemetry/traces.h"
#include "runcast/store.h"

struct trace_look {
    void (*done)(struct trace_look *look, enum err status);
    struct trace_counts counts;
    struct spans spans; /* valid until trace_look_end */

    struct environment *env;
    struct store *store;
    char run_id[ID_MAX];
    char from[ID_MAX]; /* name of the last piece read */
    struct trace_now now;
    struct store_scan scan;
    /* sorts in a separate turn, because that takes milliseconds */
    struct deferred deferred;
    int64_t left; /* pieces */
};

/* Begins to load. Calls done once, later. */
void trace_look_begin(struct traces *traces, struct environment *env, struct slice run_id,
                      struct trace_look *look,
                      void (*done)(struct trace_look *look, enum err status));
void trace_look_end(struct trace_look *look);
