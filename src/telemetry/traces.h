/* traces.h - the spans and logs of runs: kept in memory while they come, written to the
 * store behind them.
 *
 *   otlp ─► traces_add ─► events of the run ─► one document a run, once a second at most
 *   who reads ─► trace_look ─► the same events, from memory or from the document
 *
 * Bounded: TRACE_BYTES_MAX and TRACE_EVENTS_MAX of a run, TRACES_BYTES_MAX of what is in
 * memory. What is beyond is dropped and counted. A crash loses the last seconds: the state
 * of runs does not depend on them. */
#pragma once

#include "base/list.h"
#include "base/loop.h"
#include "telemetry/otlp.h"

enum {
    TRACE_BYTES_MAX = 256 * 1024,
    TRACE_EVENTS_MAX = 1000,
    TRACES_BYTES_MAX = 64 << 20,
};

struct engine;
struct environment;
struct trace;
struct traces;

struct traces *traces_create(struct engine *engine);
/* What is on its way to the store arrives there. NULL is fine. */
void traces_destroy(struct traces *traces);

/* What is not written yet is written now. */
void traces_write_all(struct traces *traces);

/* The same in stints, beginning with *at = 0: true when more is to do. One that changes
 * places meanwhile is left to its timer, or to traces_write_all. */
bool traces_write_some(struct traces *traces, size_t *at, struct stint *stint);

/* Takes over the event's text. False: dropped, and counted. The run is one of env's. */
bool traces_add(struct traces *traces, struct environment *env, struct slice run_id,
                struct trace_event *event);

/* Counts events that were dropped before they came here. */
void traces_drop(size_t count);

/* A look at the events of a run, in the order of their start; done comes later, and they
 * are borrowed until it returns. */
struct trace_look {
    void (*done)(struct trace_look *look, enum err status);
    const struct trace_event *events;
    size_t count;
    struct trace *trace;
    struct list link; // trace::looks
};

void trace_look_begin(struct traces *traces, struct environment *env, struct slice run_id,
                      struct trace_look *look,
                      void (*done)(struct trace_look *look, enum err status));
