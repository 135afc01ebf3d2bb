/* spans.h - the events of one run: found by their span, and shown in the order of their start.
 *
 *   events  [ a ][ b ][ c ][ d ]          as they came, until spans_sort
 *   slots   [ 3 ][ - ][ 1 ][ - ][ 4 ] …   by the hash of the span: index in events + 1
 *
 * They come in almost any order, and each is looked for first: both are cheap, and only who
 * wants them in order, to show or to store them, sorts. */
#pragma once

#include "api/telemetry/otlp.h"

struct spans {
    struct trace_event *events;
    size_t count, capacity;
    uint32_t *slots; /* 0: free; twice as many as there is room for events */
    bool unsorted;
};

void spans_finish(struct spans *spans);

/* NULL: there is none. Borrowed until the next call of spans_add or spans_sort. */
struct trace_event *spans_find(const struct spans *spans, const char *span);

/* Takes over the event's text. Its span is not there yet. */
void spans_add(struct spans *spans, const struct trace_event *event);

/* A known event is replaced, and keeps its number among those that started with it. Takes
 * over the event's text. */
void spans_replace(struct spans *spans, struct trace_event *known,
                   const struct trace_event *event);

/* An event of a span that is there replaces it if that had only begun; any other is a repetition
 * and is left out. Takes over the event's text. */
void spans_merge(struct spans *spans, const struct trace_event *event);

/* Merges all events of another one, each with a reference to its text. */
void spans_merge_all(struct spans *spans, const struct spans *others);

/* Moves the first events, as they came, to an empty one; from was never sorted. */
void spans_split(struct spans *from, size_t count, struct spans *first);

/* Frees one event, for a caller that frees many in stints. False: there is none left. From the
 * first call on only this and spans_finish may be called. */
bool spans_drop_one(struct spans *spans);

/* By their start; those of one start as they came. */
void spans_sort(struct spans *spans);
