/* trace_events.c - counts, limits, writes and reads events of traces.
 *
 * Events are stored as the JSON into which otlp.c converts them. */
#include "api/telemetry/trace_events.h"

#include <stdio.h>

#include "base/json/members.h"

void trace_event_count(struct trace_counts *counts, const struct trace_event *event)
{
    if (event->log)
        counts->logs++;
    else if (event->partial)
        counts->begun++;
    else
        counts->ended++;
    counts->bytes += (int64_t)event->json->len;
}

bool trace_limits_allow(const struct trace_limits *limits,
                        const struct trace_counts *counts, const struct trace_event *event)
{
    struct trace_counts next = *counts;
    trace_event_count(&next, event);
    bool ends = next.ended > counts->ended && counts->ended < counts->begun;
    return trace_counts_rows(&next) <= limits->rows &&
           next.bytes <= limits->bytes + (ends ? limits->bytes / 8 : 0);
}

struct trace_event trace_event_warning(int64_t unix_ms, unsigned attempt, const char *text)
{
    struct trace_event event = { .log = true, .started_ms = unix_ms };
    struct buf out = { 0 };
    text_random(event.span, OTLP_SPAN_LEN, "0123456789abcdef");
    buf_add_char(&out, '{');
    members_add_text(&out, "spanId", slice_of(event.span));
    members_add_number(&out, "at", event.started_ms);
    members_add_text(&out, "message", slice_of(text));
    members_add_number(&out, "ns", 0);
    members_add_text(&out, "level", SLICE("WARN"));
    members_add_number(&out, "attemptNumber", attempt);
    members_add_json(&out, "properties", SLICE("{}"));
    buf_add_char(&out, '}');
    event.json = buf_to_bytes(&out);
    buf_finish(&out);
    return event;
}

struct bytes *trace_events_write(const struct spans *events, size_t *from)
{
    struct buf body = { 0 };
    const char *before = "{\"events\":[";
    do {
        buf_add_text(&body, before);
        buf_add(&body, bytes_slice(events->events[(*from)++].json));
        before = ",";
    } while (*from < events->count &&
             body.len + events->events[*from].json->len < TRACE_PIECE_BYTES);
    buf_add_text(&body, "]}");
    struct bytes *text = buf_to_bytes(&body);
    buf_finish(&body);
    return text;
}

void trace_events_read(struct slice body, struct spans *events)
{
    struct scan_members all = scan_members(scan_member(body, "events"));
    struct slice one;
    while (scan_next_element(&all, &one)) {
        struct trace_event event = { .partial = members_is_true(one, "isPartial"),
                                     .log = !slice_is(scan_member(one, "level"),
                                                      "\"TRACE\"") };
        struct bytes *span = members_text(one, "spanId");
        snprintf(event.span, sizeof(event.span), "%s", span ? span->data : "");
        bytes_unref(span);
        members_number(one, "at", &event.started_ms);
        event.json = bytes_create(one);
        spans_merge(events, &event);
    }
}
