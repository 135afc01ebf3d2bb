/* spans.h - the events of one run, found by span id and sorted by start on request.
 *
 *   events  [ a ][ b ][ c ][ d ]          in order of arrival, until spans_sort
 *   slots   [ 3 ][ - ][ 1 ][ - ][ 4 ] …   by the hash of the span: index in events + 1
 *
 * Events arrive in almost any order, and each is first looked up. Both are cheap; sorting
 * is left to callers that show or store the events in order. */
#pragma once

#include "api/telemetry/otlp.h"

struct spans {
    struct trace_event *events;
    size_t count, capacity;
    uint32_t *slots; /* 0: free; twice as many as capacity */
    bool unsorted;
};

void spans_finish(struct spans *spans);

/* Returns the event of a span; NULL if there is none. Valid until the next call of
 * spans_add or spans_sort. */
struct trace_event *spans_find(const struct spans *spans, const char *span);

/* Adds an event of a new span. Takes ownership of its text. */
void spans_add(struct spans *spans, const struct trace_event *event);

/* Replaces a known event, which keeps its number among events with the same start. Takes
 * ownership of the event's text. */
void spans_replace(struct spans *spans, struct trace_event *known,
                   const struct trace_event *event);

/* Adds an event. If its span is known, replaces a partial event and ignores a repetition.
 * Takes ownership of the event's text. */
void spans_merge(struct spans *spans, const struct trace_event *event);

/* Merges all events of others, each with a reference to its text. */
void spans_merge_all(struct spans *spans, const struct spans *others);

/* Moves the first count events to first, which is empty. from must never have been
 * sorted. */
void spans_split(struct spans *from, size_t count, struct spans *first);

/* Frees one event, for a caller that frees many in time slices. Returns false if none is
 * left. After the first call, only this and spans_finish may be called. */
bool spans_drop_one(struct spans *spans);

/* Sorts by start; events with the same start stay in order of arrival. */
void spans_sort(struct spans *spans);
