/* A long OTLP body is divided into parts after records, wherever its pieces end. */
#include "tests/support/world/unit.h"

#include <stdio.h>
#include <string.h>

#include "api/telemetry/otlp.h"
#include "api/telemetry/otlp_parts.h"
#include "base/json/scan.h"

struct collected {
    struct otlp_parts parts;
    size_t count;       /* of parts */
    struct buf records; /* the records of all parts, a line each */
};

static void collect(struct collected *all, struct buf part)
{
    struct otlp otlp;
    struct slice record;
    assert_true(scan_is_json(buf_slice(&part)));
    otlp_begin(&otlp, buf_slice(&part), true);
    while (otlp_next(&otlp, &record))
        if (record.ptr) {
            buf_add(&all->records, record);
            buf_add_char(&all->records, '\n');
        }
    all->count++;
    buf_finish(&part);
}

/* Feeds the body in pieces of this length. */
static void divide(struct collected *all, struct slice body, size_t piece_len)
{
    *all = (struct collected){ 0 };
    while (body.len) {
        struct slice piece = { body.ptr, piece_len < body.len ? piece_len : body.len };
        body = slice_from(body, piece.len);
        while (piece.len)
            if (otlp_parts_take(&all->parts, &piece))
                collect(all, otlp_parts_cut(&all->parts));
    }
    collect(all, otlp_parts_end(&all->parts));
}

static void collected_finish(struct collected *all)
{
    otlp_parts_finish(&all->parts);
    buf_finish(&all->records);
}

/* Adds a record with a text of this length that contains brackets, quotes and backslashes. */
static void add_record(struct buf *body, struct buf *records, int number, size_t len)
{
    static const char odd[] = "}]},\\\"[{\\\\";
    struct buf record = { 0 };
    buf_print(&record, "{\"n\":%d,\"body\":{\"stringValue\":\"%s", number, odd);
    for (size_t i = 0; i < len; i++)
        buf_add_char(&record, 'x');
    buf_add_text(&record, "\"},\"attributes\":[{\"key\":\"a\",\"value\":{\"arrayValue\":"
                          "{\"values\":[{\"intValue\":1}]}}}]}");
    buf_add(body, buf_slice(&record));
    if (records) {
        buf_add(records, buf_slice(&record));
        buf_add_char(records, '\n');
    }
    buf_finish(&record);
}

#define RESOURCE                                                                           \
    "{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":{\"kvlistValue\":{"           \
    "\"values\":"                                                                          \
    "[{\"key\":\"[\",\"value\":{\"intValue\":1}}]}}}]},\"scopeLogs\":["
#define SCOPE "{\"scope\":{\"name\":\"s\\\"\"},\"logRecords\":["

/* Two resources of two scopes, with records of these lengths in each. */
static void make_body(struct buf *body, struct buf *records, const size_t *lens,
                      size_t count)
{
    int number = 0;
    buf_add_text(body, "{ \"resourceLogs\" : [");
    for (int resource = 0; resource < 2; resource++) {
        buf_add_text(body, resource ? "]},\n" RESOURCE : RESOURCE);
        for (int scope = 0; scope < 2; scope++) {
            buf_add_text(body, scope ? "," SCOPE : SCOPE);
            for (size_t i = 0; i < count; i++) {
                if (i)
                    buf_add_text(body, " ,\n ");
                add_record(body, lens[i] > OTLP_ITEM_MAX ? NULL : records, number++,
                           lens[i]);
            }
            buf_add_text(body, " ]}");
        }
    }
    buf_add_text(body, "]} ] }");
}

static void check_lengths(const size_t *lens, size_t count, size_t parts, size_t skipped)
{
    static const size_t pieces[] = { 7, 65536, SIZE_MAX };
    struct buf body = { 0 }, records = { 0 };
    make_body(&body, &records, lens, count);
    assert_true(scan_is_json(buf_slice(&body)));
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct collected all;
        divide(&all, buf_slice(&body), pieces[i]);
        assert_int_equal(all.count, parts);
        assert_int_equal(all.parts.skipped, skipped);
        assert_int_equal(all.records.len, records.len);
        assert_memory_equal(all.records.ptr, records.ptr, records.len);
        collected_finish(&all);
    }
    buf_finish(&body);
    buf_finish(&records);
}

static void a_short_body_is_one_part(void **state)
{
    (void)state;
    const size_t lens[] = { 10, 0, 300 };
    check_lengths(lens, 3, 1, 0);
    check_lengths(NULL, 0, 1, 0);
}

static void parts_have_each_record_once_and_in_order(void **state)
{
    (void)state;
    const size_t lens[] = { 800000, 10, 1400000, 20, 3000000 };
    check_lengths(lens, 5, 13, 0);
}

static void a_record_that_is_too_long_is_skipped(void **state)
{
    (void)state;
    const size_t first[] = { OTLP_ITEM_MAX + 1, 5, 6 };
    const size_t middle[] = { 5, OTLP_ITEM_MAX + 1, OTLP_ITEM_MAX + 1, 6 };
    const size_t last[] = { 5, OTLP_ITEM_MAX + 1 };
    const size_t alone[] = { OTLP_ITEM_MAX + 1 };
    check_lengths(first, 3, 1, 4);
    check_lengths(middle, 4, 1, 8);
    check_lengths(last, 2, 1, 4);
    check_lengths(alone, 1, 1, 4);
}

static void the_surroundings_of_records_are_limited(void **state)
{
    (void)state;
    struct otlp_parts parts = { 0 };
    struct failure why;
    struct buf body = { 0 };
    buf_add_text(&body, "{\"resourceLogs\":[{\"resource\":{\"a\":\"");
    for (size_t i = 0; i <= OTLP_AROUND_MAX; i++)
        buf_add_char(&body, 'x');
    struct slice piece = buf_slice(&body);
    assert_int_equal(otlp_parts_check(&parts, &why), OK);
    assert_false(otlp_parts_take(&parts, &piece));
    assert_int_equal(otlp_parts_check(&parts, &why), ERR_TOO_LARGE);
    assert_string_equal(why.text,
                        "The resources and scopes of the telemetry are too long (max 512 "
                        "KiB)");
    otlp_parts_finish(&parts);
    buf_finish(&body);
}

/* Takes a body of this beginning and this text many times. */
static void take_repeated(struct otlp_parts *parts, const char *beginning, const char *text)
{
    struct buf body = { 0 };
    buf_add_text(&body, beginning);
    while (body.len <= OTLP_ITEM_MAX + 1000)
        buf_add_text(&body, text);
    struct slice piece = buf_slice(&body);
    assert_false(otlp_parts_take(parts, &piece));
    buf_finish(&body);
}

static void brackets_and_commas_are_limited_like_text(void **state)
{
    (void)state;
    struct otlp_parts parts = { 0 };
    struct failure why;
    take_repeated(&parts, "{\"a\":[{\"b\":[{\"c\":[{\"d\":[", "[],");
    assert_int_equal(parts.skipped, 1);
    assert_true(parts.text.len < 100);
    otlp_parts_finish(&parts);
    take_repeated(&parts, "{\"a\":[{\"b\":[{\"c\":[", "1,");
    assert_int_equal(otlp_parts_check(&parts, &why), ERR_TOO_LARGE);
    assert_string_equal(
        why.text, "The telemetry has text between two records that is too long (max 4 "
                  "MiB); a list of records contains only objects");
    otlp_parts_finish(&parts);
}

/* As otlp_parts.h specifies. */
static void resource_after_its_records_is_in_the_last_part_only(void **state)
{
    (void)state;
    struct otlp_parts parts = { 0 };
    struct buf body = { 0 };
    unsigned count = 0;
    buf_add_text(&body, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[");
    for (int i = 0; i < 3; i++) {
        buf_add_text(&body, i ? "," : "");
        add_record(&body, NULL, i, OTLP_PART_BYTES);
    }
    buf_add_text(&body, "]}],\"resource\":{\"a\":1}}]}");
    for (struct slice piece = buf_slice(&body); piece.len; count++) {
        bool more = otlp_parts_take(&parts, &piece);
        struct buf part = more ? otlp_parts_cut(&parts) : otlp_parts_end(&parts);
        assert_int_equal(memmem(part.ptr, part.len, "\"resource\":", 11) != NULL, !more);
        buf_finish(&part);
    }
    assert_int_equal(count, 4);
    otlp_parts_finish(&parts);
    buf_finish(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_body_is_one_part),
        cmocka_unit_test(parts_have_each_record_once_and_in_order),
        cmocka_unit_test(a_record_that_is_too_long_is_skipped),
        cmocka_unit_test(the_surroundings_of_records_are_limited),
        cmocka_unit_test(brackets_and_commas_are_limited_like_text),
        cmocka_unit_test(resource_after_its_records_is_in_the_last_part_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
