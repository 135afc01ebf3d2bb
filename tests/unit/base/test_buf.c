/* A buffer holds everything that was added, in order, however it grew. */
#include "tests/support/world/unit.h"

#include <float.h>
#include <stdlib.h>

#include "base/buf.h"

static void assert_content(struct buf *buf, const char *expected)
{
    buf_add_char(buf, '\0');
    assert_string_equal(buf->ptr, expected);
    buf_clear(buf);
}

static void an_untouched_buffer_is_empty(void **state)
{
    (void)state;
    struct buf buf = { 0 };
    assert_int_equal(buf_slice(&buf).len, 0);
    assert_non_null(buf_slice(&buf).ptr);
    buf_add(&buf, (struct slice){ 0 });
    buf_drop(&buf, 0);
    assert_int_equal(buf.len, 0);
    buf_finish(&buf);
}

static void pieces_are_appended_in_order(void **state)
{
    (void)state;
    struct buf buf = { 0 };
    buf_add(&buf, SLICE("a"));
    buf_add_char(&buf, 'b');
    buf_add_text(&buf, "cd");
    buf_add_number(&buf, -12);
    buf_print(&buf, "%s=%d", "x", 3);
    assert_content(&buf, "abcd-12x=3");
    buf_finish(&buf);
}

static void any_64_bit_number_is_printed(void **state)
{
    (void)state;
    struct buf buf = { 0 };
    buf_add_number(&buf, INT64_MIN);
    buf_add_char(&buf, ' ');
    buf_add_number(&buf, INT64_MAX);
    buf_add_char(&buf, ' ');
    buf_add_number(&buf, 0);
    assert_content(&buf, "-9223372036854775808 9223372036854775807 0");
    buf_finish(&buf);
}

static void growing_loses_nothing(void **state)
{
    (void)state;
    struct buf buf = { 0 };
    for (int i = 0; i < 100000; i++)
        buf_add_char(&buf, (char)('a' + i % 26));
    for (int i = 0; i < 100000; i++)
        assert_int_equal(buf.ptr[i], 'a' + i % 26);
    buf_finish(&buf);
    assert_null(buf.ptr);
}

/* Lengths around the end of the reserved memory. */
static void printing_fits_at_every_length(void **state)
{
    (void)state;
    for (int before = 240; before < 260; before++) {
        struct buf buf = { 0 };
        for (int i = 0; i < before; i++)
            buf_add_char(&buf, '.');
        buf_print(&buf, "%s", "0123456789");
        assert_int_equal(buf.len, before + 10);
        assert_memory_equal(buf.ptr + before, "0123456789", 10);
        buf_finish(&buf);
    }
}

static void dropping_removes_bytes_from_the_front(void **state)
{
    (void)state;
    struct buf buf = { 0 };
    buf_add_text(&buf, "abcdef");
    buf_drop(&buf, 2);
    assert_true(slice_is(buf_slice(&buf), "cdef"));
    buf_drop(&buf, 4);
    assert_int_equal(buf.len, 0);
    buf_finish(&buf);
}

static void json_string_escapes_special_characters(void **state)
{
    (void)state;
    static const struct {
        struct slice content;
        const char *expected;
    } cases[] = {
        { { "", 0 }, "\"\"" },
        { { "plain", 5 }, "\"plain\"" },
        { { "\"\\/", 3 }, "\"\\\"\\\\/\"" },
        { { "\b\f\n\r\t", 5 }, "\"\\b\\f\\n\\r\\t\"" },
        { { "\0\x01\x1f\x7f", 4 }, "\"\\u0000\\u0001\\u001f\x7f\"" },
        { { "a\nb", 3 }, "\"a\\nb\"" },
        { { "\xc3\xa4\xf0\x9f\x98\x80", 6 }, "\"\xc3\xa4\xf0\x9f\x98\x80\"" },
    };
    struct buf buf = { 0 };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        buf_add_json(&buf, cases[i].content);
        assert_content(&buf, cases[i].expected);
    }
    buf_finish(&buf);
}

static void a_json_time_has_quotes(void **state)
{
    (void)state;
    struct buf buf = { 0 };
    buf_add_json_time(&buf, INT64_C(1706691600123));
    assert_content(&buf, "\"2024-01-31T09:00:00.123Z\"");
    buf_finish(&buf);
}

/* The same as JSON.stringify writes, except for the sign of zero. */
static void a_double_is_written_as_javascript_writes_it(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *expected;
    } cases[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 1, "1" },
        { -1.5, "-1.5" },
        { 0.1, "0.1" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 1.0 / 3, "0.3333333333333333" },
        { 100, "100" },
        { 123456789012345680, "123456789012345680" },
        { 9007199254740993.0, "9007199254740992" },
        { 1e20, "100000000000000000000" },
        { 1e21, "1e+21" },
        { 1.5e300, "1.5e+300" },
        { 0.000001, "0.000001" },
        { 0.0000015, "0.0000015" },
        { 1e-7, "1e-7" },
        { 1.25e-9, "1.25e-9" },
        { DBL_MAX, "1.7976931348623157e+308" },
        { DBL_MIN, "2.2250738585072014e-308" },
        { 5e-324, "5e-324" },
        { -1e-310, "-1e-310" },
        { 5e-5, "0.00005" },
    };
    struct buf buf = { 0 };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        buf_add_json_double(&buf, cases[i].number);
        assert_content(&buf, cases[i].expected);
    }
    buf_finish(&buf);
}

static void every_double_is_read_back(void **state)
{
    (void)state;
    struct buf buf = { 0 };
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double number, again;
        memcpy(&number, &bits, sizeof(number));
        if (!(number - number == 0)) /* not finite */
            continue;
        buf_add_json_double(&buf, number);
        buf_add_char(&buf, '\0');
        again = strtod(buf.ptr, NULL);
        assert_memory_equal(&again, &number, sizeof(number));
        buf_clear(&buf);
    }
    buf_finish(&buf);
}

static void the_content_can_be_shared(void **state)
{
    (void)state;
    struct buf buf = { 0 };
    buf_add_text(&buf, "abc");
    struct bytes *bytes = buf_to_bytes(&buf);
    buf_finish(&buf);
    assert_string_equal(bytes->data, "abc");
    bytes_unref(bytes);
    bytes = buf_to_bytes(&buf);
    assert_non_null(bytes);
    assert_int_equal(bytes->len, 0);
    bytes_unref(bytes);
}

static void buffer_content_can_change_owner(void **state)
{
    (void)state;
    for (size_t len = 0; len < 600; len += 37) {
        struct buf buf = { 0 };
        for (size_t i = 0; i < len; i++)
            buf_add_char(&buf, (char)('a' + i % 26));
        struct bytes *copy = buf_to_bytes(&buf), *bytes = buf_take(&buf);
        assert_null(buf.ptr);
        assert_int_equal(bytes->refs, 1);
        assert_string_equal(bytes->data, copy->data);
        assert_int_equal(bytes->len, len);
        bytes_unref(bytes);
        bytes_unref(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_untouched_buffer_is_empty),
        cmocka_unit_test(pieces_are_appended_in_order),
        cmocka_unit_test(any_64_bit_number_is_printed),
        cmocka_unit_test(growing_loses_nothing),
        cmocka_unit_test(printing_fits_at_every_length),
        cmocka_unit_test(dropping_removes_bytes_from_the_front),
        cmocka_unit_test(json_string_escapes_special_characters),
        cmocka_unit_test(a_json_time_has_quotes),
        cmocka_unit_test(a_double_is_written_as_javascript_writes_it),
        cmocka_unit_test(every_double_is_read_back),
        cmocka_unit_test(the_content_can_be_shared),
        cmocka_unit_test(buffer_content_can_change_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
