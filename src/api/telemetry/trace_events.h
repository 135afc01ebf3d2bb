/* trace_events.h - the events of a trace: counted, limited, and as JSON in the pieces that are
 * stored. */
#pragma once

#include "api/telemetry/spans.h"
#include "api/telemetry/trace_counts.h"

enum {
    TRACE_PIECE_BYTES = 64 * 1024, /* of a piece, unless one record alone is longer */
};

/* Limits of one run: records beyond are dropped. The end of a span that is shown as begun may
 * exceed the bytes by an eighth, so that the span does not look unfinished. */
struct trace_limits {
    int64_t rows, bytes;
};

/* Counts one more record. */
void trace_event_count(struct trace_counts *counts, const struct trace_event *event);

/* True if the run may have one more record, this one. */
bool trace_limits_allow(const struct trace_limits *limits,
                        const struct trace_counts *counts, const struct trace_event *event);

/* A log of the gateway's own. The text is the caller's. */
struct trace_event trace_event_warning(int64_t unix_ms, unsigned attempt, const char *text);

/* {"events":[…]}: the piece that begins with the event at *from, which moves to the one after
 * it. There is one. */
struct bytes *trace_events_write(const struct spans *events, size_t *from);

/* Adds each event of a piece, or of a document of an older gateway. */
void trace_events_read(struct slice body, struct spans *events);
