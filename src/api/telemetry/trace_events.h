/* trace_events.h - events of a trace: counts, limits, and the JSON of stored pieces. */
#pragma once

#include "api/telemetry/spans.h"
#include "api/telemetry/trace_counts.h"

enum {
    TRACE_PIECE_BYTES = 64 * 1024, /* size of a piece, unless a single record is longer */
};

/* Limits of one run. Further records are dropped. The end of a span whose beginning was
 * stored may exceed the bytes by an eighth, so that the span does not look unfinished. */
struct trace_limits {
    int64_t rows, bytes;
};

/* Adds one record to the counts. */
void trace_event_count(struct trace_counts *counts, const struct trace_event *event);

/* Returns true if the run may have this additional record. */
bool trace_limits_allow(const struct trace_limits *limits,
                        const struct trace_counts *counts, const struct trace_event *event);

/* Returns a log entry of the gateway itself, whose JSON the caller owns. */
struct trace_event trace_event_warning(int64_t unix_ms, unsigned attempt, const char *text);

/* Writes one piece, {"events":[…]}, which begins with the event at *from. There must be
 * one. Moves *from past the piece. Returns the caller's reference. */
struct bytes *trace_events_write(const struct spans *events, size_t *from);

/* Adds the events of a piece, or of a document of an older gateway. */
void trace_events_read(struct slice body, struct spans *events);
