/* spans.c - an array of events with a hash index by span id. */
#include "api/telemetry/spans.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"

enum { FIRST_EVENTS = 16 };

void spans_finish(struct spans *spans)
{
    for (size_t i = 0; i < spans->count; i++)
        bytes_unref(spans->events[i].json);
    free(spans->events);
    free(spans->slots);
    *spans = (struct spans){ 0 };
}

bool spans_drop_one(struct spans *spans)
{
    if (!spans->count)
        return false;
    bytes_unref(spans->events[--spans->count].json);
    return true;
}

/* Returns the slot of the span, or the free one where it belongs. */
static uint32_t *slot_of(const struct spans *spans, const char *span)
{
    size_t last = 2 * spans->capacity - 1; /* capacity is a power of two */
    size_t at = table_hash(slice_of(span)) & last;
    while (spans->slots[at] && strcmp(spans->events[spans->slots[at] - 1].span, span))
        at = (at + 1) & last;
    return &spans->slots[at];
}

static void index_all(struct spans *spans)
{
    memset(spans->slots, 0, 2 * spans->capacity * sizeof(uint32_t));
    for (size_t i = 0; i < spans->count; i++)
        *slot_of(spans, spans->events[i].span) = (uint32_t)(i + 1);
}

struct trace_event *spans_find(const struct spans *spans, const char *span)
{
    if (!spans->count)
        return NULL;
    uint32_t at = *slot_of(spans, span);
    return at ? &spans->events[at - 1] : NULL;
}

static void grow(struct spans *spans)
{
    spans->capacity = spans->capacity ? spans->capacity * 2 : FIRST_EVENTS;
    spans->events = mem_resize(spans->events, spans->capacity * sizeof(struct trace_event));
    spans->slots = mem_resize(spans->slots, 2 * spans->capacity * sizeof(uint32_t));
    index_all(spans);
}

void spans_add(struct spans *spans, const struct trace_event *event)
{
    assert(spans->count < UINT32_MAX);
    if (spans->count == spans->capacity)
        grow(spans);
    struct trace_event *added = &spans->events[spans->count++];
    *added = *event;
    added->number = spans->count;
    *slot_of(spans, added->span) = (uint32_t)spans->count;
    if (spans->count > 1 && added[-1].started_ms > added->started_ms)
        spans->unsorted = true;
}

void spans_replace(struct spans *spans, struct trace_event *known,
                   const struct trace_event *event)
{
    size_t number = known->number;
    if (known->started_ms != event->started_ms)
        spans->unsorted = true;
    bytes_unref(known->json);
    *known = *event;
    known->number = number;
}

void spans_merge(struct spans *spans, const struct trace_event *event)
{
    struct trace_event *known = spans_find(spans, event->span);
    if (!known)
        spans_add(spans, event);
    else if (known->partial)
        spans_replace(spans, known, event);
    else
        bytes_unref(event->json);
}

void spans_merge_all(struct spans *spans, const struct spans *others)
{
    for (size_t i = 0; i < others->count; i++) {
        bytes_ref(others->events[i].json);
        spans_merge(spans, &others->events[i]);
    }
}

void spans_split(struct spans *from, size_t count, struct spans *first)
{
    struct spans all = *from;
    *from = (struct spans){ 0 };
    if (count == all.count) {
        *first = all;
        return;
    }
    for (size_t i = 0; i < all.count; i++)
        spans_add(i < count ? first : from, &all.events[i]);
    free(all.events);
    free(all.slots);
}

static int by_start(const void *a, const void *b)
{
    const struct trace_event *x = a, *y = b;
    if (x->started_ms != y->started_ms)
        return x->started_ms < y->started_ms ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

void spans_sort(struct spans *spans)
{
    if (!spans->unsorted)
        return;
    qsort(spans->events, spans->count, sizeof(struct trace_event), by_start);
    index_all(spans);
    spans->unsorted = false;
}
