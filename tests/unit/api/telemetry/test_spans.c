/* The spans of a run are found by their id, and are sorted by their start. */
#include "api/telemetry/spans.h"

#include <stdio.h>

#include "tests/support/world/unit.h"

enum { SPANS = 1000, FAR = 64 };

static struct trace_event span(int n, int64_t started_ms)
{
    struct trace_event event = { .started_ms = started_ms };
    snprintf(event.span, sizeof(event.span), "%016x", (unsigned)n * 2654435761u);
    event.json = bytes_create(slice_of(event.span));
    return event;
}

static void add(struct spans *spans, int n, int64_t started_ms)
{
    struct trace_event event = span(n, started_ms);
    spans_add(spans, &event);
}

static void assert_all_found(const struct spans *spans)
{
    for (int n = 0; n < SPANS; n++) {
        struct trace_event wanted = span(n, 0);
        const struct trace_event *found = spans_find(spans, wanted.span);
        assert_non_null(found);
        assert_string_equal(found->span, wanted.span);
        bytes_unref(wanted.json);
    }
    assert_null(spans_find(spans, "absent"));
}

static void spans_are_found_by_id_and_sorted_by_start(void **state)
{
    struct spans spans = { 0 };
    (void)state;
    assert_null(spans_find(&spans, "absent"));
    for (int n = 0; n < SPANS; n++)
        add(&spans, n, n * 617 % SPANS / 2); /* two with the same start */
    assert_all_found(&spans);
    spans_sort(&spans);
    for (size_t i = 1; i < spans.count; i++) {
        const struct trace_event *a = &spans.events[i - 1], *b = &spans.events[i];
        assert_true(a->started_ms < b->started_ms ||
                    (a->started_ms == b->started_ms && a->number < b->number));
    }
    assert_all_found(&spans);
    spans_finish(&spans);
}

/* An event costs the same, however many there are: it is not compared with all of them. */
static void an_event_is_compared_with_few_others(void **state)
{
    struct spans spans = { 0 };
    unsigned together = 0;
    (void)state;
    for (int n = 0; n < SPANS; n++)
        add(&spans, n, SPANS - n);
    for (size_t i = 0; i < 2 * spans.capacity; i++) {
        together = spans.slots[i] ? together + 1 : 0;
        assert_true(together < FAR);
    }
    for (size_t i = 0; i < spans.count; i++)
        assert_int_equal(spans.events[i].number, i + 1); /* nor moved for a later one */
    spans_finish(&spans);
}

static void replaced_event_is_found_in_its_place(void **state)
{
    struct spans spans = { 0 };
    (void)state;
    for (int n = 0; n < 3; n++)
        add(&spans, n, 5);
    struct trace_event ended = span(1, 5);
    ended.partial = true;
    spans_replace(&spans, spans_find(&spans, ended.span), &ended);
    spans_sort(&spans);
    assert_int_equal(spans.count, 3);
    assert_true(spans.events[1].partial);
    ended = span(1, 9);
    spans_replace(&spans, spans_find(&spans, ended.span), &ended);
    spans_sort(&spans);
    assert_string_equal(spans.events[2].span, ended.span);
    spans_finish(&spans);
}

static void end_of_a_span_replaces_only_its_beginning(void **state)
{
    (void)state;
    struct spans spans = { 0 };
    struct trace_event begins = span(1, 5), ends = span(1, 5), again = span(1, 6);
    begins.partial = true;
    spans_merge(&spans, &begins);
    spans_merge(&spans, &ends);
    spans_merge(&spans, &again);
    assert_int_equal(spans.count, 1);
    assert_ptr_equal(spans.events[0].json, ends.json);
    spans_finish(&spans);
}

static void first_events_are_split_off(void **state)
{
    (void)state;
    for (int count = 0; count <= SPANS; count += SPANS / 4) {
        struct spans spans = { 0 }, first = { 0 };
        for (int n = 0; n < SPANS; n++)
            add(&spans, n, n);
        spans_split(&spans, (size_t)count, &first);
        assert_int_equal(first.count, count);
        assert_int_equal(spans.count, SPANS - count);
        for (int n = 0; n < SPANS; n++) {
            struct trace_event wanted = span(n, 0);
            assert_true(!spans_find(&first, wanted.span) == (n >= count));
            assert_true(!spans_find(&spans, wanted.span) == (n < count));
            bytes_unref(wanted.json);
        }
        spans_finish(&spans);
        spans_finish(&first);
    }
}

static void events_are_freed_one_by_one(void **state)
{
    struct spans spans = { 0 };
    (void)state;
    assert_false(spans_drop_one(&spans));
    for (int n = 0; n < 3; n++)
        add(&spans, n, n);
    for (size_t left = 3; left; left--) {
        assert_int_equal(spans.count, left);
        assert_true(spans_drop_one(&spans));
    }
    assert_false(spans_drop_one(&spans));
    spans_finish(&spans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_found_by_id_and_sorted_by_start),
        cmocka_unit_test(an_event_is_compared_with_few_others),
        cmocka_unit_test(replaced_event_is_found_in_its_place),
        cmocka_unit_test(end_of_a_span_replaces_only_its_beginning),
        cmocka_unit_test(first_events_are_split_off),
        cmocka_unit_test(events_are_freed_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
