/* Members are written with the commas that they need, and read back unchanged. */
#include "tests/support/world/unit.h"

#include "base/json/members.h"
#include "base/json/scan.h"

static void assert_written(struct buf *out, const char *expected)
{
    assert_true(scan_is_json(buf_slice(out)));
    buf_add_char(out, '\0');
    assert_string_equal(out->ptr, expected);
    buf_finish(out);
}

static void every_member_except_the_first_has_a_comma(void **state)
{
    (void)state;
    struct buf out = { 0 };
    buf_add_char(&out, '{');
    members_add_text(&out, "id", SLICE("run_1"));
    members_add_name(&out, "inner");
    buf_add_char(&out, '{');
    members_add_number(&out, "a", -7);
    members_add_bool(&out, "b", true);
    buf_add_char(&out, '}');
    members_add_json(&out, "list", SLICE("[]"));
    members_add_time(&out, "at", 1700000000000);
    buf_add_char(&out, '}');
    assert_written(&out, "{\"id\":\"run_1\",\"inner\":{\"a\":-7,\"b\":true},\"list\":[],"
                         "\"at\":\"2023-11-14T22:13:20.000Z\"}");
}

static void absent_members_are_omitted_and_empty_ones_kept(void **state)
{
    (void)state;
    struct buf out = { 0 };
    buf_add_char(&out, '{');
    members_add_text(&out, "absent", (struct slice){ 0 });
    members_add_json(&out, "absent", (struct slice){ 0 });
    members_add_time(&out, "absent", 0);
    members_add_text(&out, "empty", SLICE(""));
    members_add_texts(&out, "none", NULL, 0);
    buf_add_char(&out, '}');
    assert_written(&out, "{\"empty\":\"\",\"none\":[]}");
}

static void string_that_ends_with_a_bracket_is_followed_by_a_comma(void **state)
{
    (void)state;
    struct bytes *texts[] = { bytes_create(SLICE("{")), bytes_create(SLICE("\"[")) };
    struct buf out = { 0 };
    buf_add_char(&out, '{');
    members_add_texts(&out, "texts", texts, 2);
    members_add_text(&out, "last", SLICE("["));
    members_add_number(&out, "n", 0);
    buf_add_char(&out, '}');
    assert_written(&out, "{\"texts\":[\"{\",\"\\\"[\"],\"last\":\"[\",\"n\":0}");
    bytes_unref(texts[0]);
    bytes_unref(texts[1]);
}

static void written_members_are_read_back(void **state)
{
    (void)state;
    struct slice object =
        SLICE("{\"text\":\"a\\u0000\\\"\",\"number\":-9007199254740993,\"yes\":true}");
    struct bytes *text = members_text(object, "text");
    int64_t number = 1;
    assert_int_equal(text->len, 3);
    assert_memory_equal(text->data, "a\0\"", 3);
    assert_true(members_number(object, "number", &number));
    assert_true(number == -9007199254740993);
    assert_true(members_is_true(object, "yes"));
    bytes_unref(text);
}

static void missing_member_or_wrong_type_is_not_read(void **state)
{
    (void)state;
    static const char *const objects[] = { "{}", "{\"it\":null}", "{\"it\":[1]}",
                                           "{\"it\":1.5}", "{\"it\":false}" };
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        int64_t number = 42;
        assert_null(members_text(slice_of(objects[i]), "it"));
        assert_false(members_number(slice_of(objects[i]), "it", &number));
        assert_false(members_is_true(slice_of(objects[i]), "it"));
        assert_int_equal(number, 42);
    }
}

static void several_members_are_found_in_one_walk(void **state)
{
    (void)state;
    static const char *const names[] = { "a", "b", "c" };
    struct slice values[3] = { SLICE("from"), SLICE("before"), SLICE("") };
    members_find(SLICE("{\"\\u0062\":[1],\"x\":{\"c\":0},\"a\":1,\"a\":2}"), names, 3,
                 values);
    assert_true(slice_is(values[0], "2"));
    assert_true(slice_is(values[1], "[1]"));
    assert_null(values[2].ptr);
    members_find(SLICE("[]"), names, 3, values);
    assert_null(values[0].ptr);
}

static void too_many_members_are_rejected(void **state)
{
    (void)state;
    static const char *const names[] = { "a" };
    struct slice three = SLICE("{\"a\":1,\"a\":2,\"b\":3}"), value;
    assert_true(members_find_few(three, 3, names, 1, &value));
    assert_true(slice_is(value, "2"));
    assert_false(members_find_few(three, 2, names, 1, &value));
    assert_true(scan_has_at_most(three, 3));
    assert_false(scan_has_at_most(three, 2));
    assert_true(scan_has_at_most(SLICE("[\"a\",\"b\"]"), 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_except_the_first_has_a_comma),
        cmocka_unit_test(absent_members_are_omitted_and_empty_ones_kept),
        cmocka_unit_test(string_that_ends_with_a_bracket_is_followed_by_a_comma),
        cmocka_unit_test(written_members_are_read_back),
        cmocka_unit_test(several_members_are_found_in_one_walk),
        cmocka_unit_test(too_many_members_are_rejected),
        cmocka_unit_test(missing_member_or_wrong_type_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
