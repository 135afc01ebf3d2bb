/* Readers yield spans of valid JSON, and texts that own their bytes. */
#include "tests/support/world/unit.h"

#include "base/json/scan.h"

static void assert_slice(struct slice found, const char *expected)
{
    if (!slice_is(found, expected) || (found.ptr == NULL) != (expected == NULL))
        fail_msg("'%.*s' is not '%s'", SLICE_ARG(found), expected ? expected : "absent");
}

static void a_value_has_the_type_of_its_first_character(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum scan_type type;
    } cases[] = {
        { "null", SCAN_NULL },  { " true", SCAN_TRUE }, { "false", SCAN_FALSE },
        { "-1", SCAN_NUMBER },  { "0", SCAN_NUMBER },   { "\n\"a\"", SCAN_STRING },
        { "\t[]", SCAN_ARRAY }, { "{}", SCAN_OBJECT },  { "", SCAN_NONE },
        { " ", SCAN_NONE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(scan_type(slice_of(cases[i].text)), cases[i].type);
    assert_int_equal(scan_type((struct slice){ 0 }), SCAN_NONE);
}

static void elements_come_in_order_and_trimmed(void **state)
{
    (void)state;
    static const char *const expected[] = { "1",         "-0",
                                            "1e400",     "\"a,]\\\"\"",
                                            "[2 , [3]]", "{\"b\" : \"]}\"}",
                                            "null",      "12345678901234567890" };
    struct slice text =
        SLICE(" [ 1,-0 , 1e400,\"a,]\\\"\",[2 , [3]]\n,{\"b\" : \"]}\"} ,null,"
              "12345678901234567890 ] ");
    struct scan_members members = scan_members(text);
    struct slice value;
    assert_true(scan_is_json(text));
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        assert_true(scan_next_element(&members, &value));
        assert_slice(value, expected[i]);
    }
    assert_false(scan_next_element(&members, &value));
    assert_false(scan_next_element(&members, &value));
}

static void members_come_in_order_with_raw_keys(void **state)
{
    (void)state;
    struct scan_members members = scan_members(
        SLICE("{ \"a\" : 1 ,\"\":\"}\",\"\\u0062\\\"\":{\"c\":[]}, \"a\":null}"));
    static const char *const expected[][2] = {
        { "a", "1" }, { "", "\"}\"" }, { "\\u0062\\\"", "{\"c\":[]}" }, { "a", "null" }
    };
    struct slice key, value;
    for (size_t i = 0; i < 4; i++) {
        assert_true(scan_next_member(&members, &key, &value));
        assert_slice(key, expected[i][0]);
        assert_slice(value, expected[i][1]);
    }
    assert_false(scan_next_member(&members, &key, &value));
}

static void empty_or_scalar_value_has_no_members(void **state)
{
    (void)state;
    static const char *const cases[] = { "[]", "[ ]",     "{}", " { } ",
                                         "1",  "\"[1]\"", "",   NULL };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice key, value;
        struct scan_members members = scan_members(slice_of(cases[i]));
        assert_false(scan_next_element(&members, &value));
        members = scan_members(slice_of(cases[i]));
        assert_false(scan_next_member(&members, &key, &value));
    }
}

static void a_member_is_found_by_any_spelling_and_the_last_counts(void **state)
{
    (void)state;
    struct slice object = SLICE("{\"a\":1,\"b\":{\"a\":9},\"\\u0061\":2,\"\xc3\xa4\":3,"
                                "\"\\uD83D\\uDE00\":4,\"x\\/y\":5,\"n\\u0000\":6}");
    assert_slice(scan_member(object, "a"), "2");
    assert_slice(scan_member(object, "b"), "{\"a\":9}");
    assert_slice(scan_member(object, "\xc3\xa4"), "3");
    assert_slice(scan_member(object, "\xf0\x9f\x98\x80"), "4");
    assert_slice(scan_member(object, "x/y"), "5");
    assert_slice(scan_member(object, "n"), NULL);
    assert_slice(scan_member(object, "c"), NULL);
    assert_slice(scan_member(SLICE("[\"a\",1]"), "a"), NULL);
    assert_slice(scan_member((struct slice){ 0 }, "a"), NULL);
}

static void raw_key_matches_its_decoded_name(void **state)
{
    (void)state;
    static const struct {
        const char *raw;
        struct slice name;
        bool expected;
    } cases[] = {
        { "abc", { "abc", 3 }, true },
        { "abc", { "ab", 2 }, false },
        { "ab", { "abc", 3 }, false },
        { "", { "", 0 }, true },
        { "a\\u0062c", { "abc", 3 }, true },
        { "a\\u0062", { "abc", 3 }, false },
        { "a\\u0062cd", { "abc", 3 }, false },
        { "\\u00e4", { "\xc3\xa4", 2 }, true },
        { "\\u00E4", { "\xc3", 1 }, false },
        { "\\n\\t\\\\\\\"", { "\n\t\\\"", 4 }, true },
        { "\\u0000", { "\0", 1 }, true },
        { "\\u0000", { "", 0 }, false },
        { "\\ud83d", { "\xed\xa0\xbd", 3 }, true },
        { "\\uDE00\\uD83D", { "\xed\xb8\x80\xed\xa0\xbd", 6 }, true },
        { "\\ud83d\\uDE00", { "\xed\xa0\xbd\xed\xb8\x80", 6 }, false },
        { "\\ud83d\\uDE00", { "\xf0\x9f\x98\x80", 4 }, true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(scan_key_is(slice_of(cases[i].raw), cases[i].name),
                         cases[i].expected);
}

static void strings_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct slice expected;
    } cases[] = {
        { "\"\"", { "", 0 } },
        { " \"abc\" ", { "abc", 3 } },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", { "\"\\/\b\f\n\r\t", 8 } },
        { "\"\\u0041\\u00e4\\u20AC\"", { "A\xc3\xa4\xe2\x82\xac", 6 } },
        { "\"\\uD83D\\uDE00!\"", { "\xf0\x9f\x98\x80!", 5 } },
        { "\"\\uDBFF\\uDFFF\"", { "\xf4\x8f\xbf\xbf", 4 } },
        { "\"a\\u0000b\"", { "a\0b", 3 } },
        { "\"I am \\ud83d\"", { "I am \xed\xa0\xbd", 8 } },
        { "\"\\uDE00\\uD83D!\"", { "\xed\xb8\x80\xed\xa0\xbd!", 7 } },
        { "\"\\uD83D\\uD83D\\uDE00\"", { "\xed\xa0\xbd\xf0\x9f\x98\x80", 7 } },
        { "\"\\uD83D\\n\\uD83D\\u0041\"", { "\xed\xa0\xbd\n\xed\xa0\xbd\x41", 8 } },
        { "\"\\uD83D\\\\uDE00\"", { "\xed\xa0\xbd\\uDE00", 9 } },
        { "\"\xc3\xa4\\\\u0041\"", { "\xc3\xa4\\u0041", 8 } },
    };
    struct buf out = { 0 };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(scan_string(slice_of(cases[i].text), &out));
        assert_int_equal(out.len, cases[i].expected.len);
        assert_true(slice_equal(buf_slice(&out), cases[i].expected));
        buf_clear(&out);
    }
    buf_add_text(&out, "kept");
    assert_false(scan_string(SLICE("1"), &out));
    assert_false(scan_string(SLICE("[\"a\"]"), &out));
    assert_false(scan_string((struct slice){ 0 }, &out));
    assert_true(scan_string(SLICE("\"!\""), &out));
    assert_slice(buf_slice(&out), "kept!");
    buf_finish(&out);
}

static void string_in_pieces_is_decoded_like_a_whole_one(void **state)
{
    (void)state;
    struct slice whole = SLICE(
        "\"a\\n\\\"\\\\\\u0041\\u00e9\\ud83d\\uDE00z\\/\\u0000\\ud83dz\\ud83d\\n\\ud83d"
        "\\\\u\\ude00\\ud83d\\u0041\\ud83d\\ud83d\\ude00\\udbff\\udbff\\udbff\\udfff\\ud800"
        "\"");
    struct slice raw = { whole.ptr + 1, whole.len - 2 };
    struct buf expected = { 0 };
    assert_true(scan_string(whole, &expected));
    for (size_t cut = 0; cut <= raw.len; cut++) {
        struct scan_text text = { 0 };
        struct buf out = { 0 };
        scan_text_feed(&text, (struct slice){ raw.ptr, cut }, &out);
        for (size_t i = cut; i < raw.len; i++) /* the rest byte by byte */
            scan_text_feed(&text, (struct slice){ raw.ptr + i, 1 }, &out);
        scan_text_end(&text, &out);
        assert_true(slice_equal(buf_slice(&out), buf_slice(&expected)));
        assert_int_equal(text.len, 0);
        buf_finish(&out);
    }
    buf_finish(&expected);
}

static void lone_surrogates_are_escaped_if_that_makes_valid_json(void **state)
{
    (void)state;
    static const struct {
        const char *text, *spelled; /* NULL: returns false */
    } cases[] = {
        { "\"\xed\xa0\xbd\"", "\"\\ud83d\"" },
        { "{\"\xed\xbf\xbf\":[\"a\xed\xa0\x80z\"]}", "{\"\\udfff\":[\"a\\ud800z\"]}" },
        { "\"\xed\x9f\xbf\xed\xb8\x80\"", "\"\xed\x9f\xbf\\ude00\"" },
        { "\"\xed\x9f\xbf\"", NULL },
        { "\xed\xa0\xbd", NULL },
        { "{\"a\":\"\xed\xa0\xbd\"", NULL },
        { "\"\xed\xa0\"", NULL },
        { "\"\\\xed\xa0\xbd\"", NULL },
        { "\"\xed\xa0\xbd\\\xed\xa0\xbd\"", NULL },
        { "\"\\\\\xed\xa0\xbd\"", "\"\\\\\\ud83d\"" },
        { "\"\xff\xed\xa0\xbd\"", NULL },
        { "1", NULL },
        { "", NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf out = { 0 };
        bool is_json = scan_spell_halves(slice_of(cases[i].text), &out);
        assert_int_equal(is_json, cases[i].spelled != NULL);
        assert_true(slice_is(buf_slice(&out), is_json ? cases[i].spelled : ""));
        buf_finish(&out);
    }
}

static void too_many_lone_surrogates_are_not_escaped(void **state)
{
    (void)state;
    struct buf text = { 0 }, out = { 0 };
    buf_add_char(&text, '"');
    for (int i = 0; i < 50000; i++)
        buf_add_text(&text, "\xed\xa0\xbd");
    buf_add_char(&text, '"');
    assert_true(scan_spell_halves(buf_slice(&text), &out));
    buf_clear(&out);
    text.len--;
    buf_add_text(&text, "\xed\xa0\xbd\"");
    assert_false(scan_spell_halves(buf_slice(&text), &out));
    assert_int_equal(out.len, 0);
    buf_finish(&text);
    buf_finish(&out);
}

/* The stack is limited: differences below SCAN_EQUAL_DEPTH are not found. */
static void values_are_compared_down_to_a_limited_depth(void **state)
{
    (void)state;
    for (int depth = SCAN_EQUAL_DEPTH - 1; depth <= SCAN_EQUAL_DEPTH + 1; depth++) {
        struct buf a = { 0 }, b = { 0 };
        for (int i = 0; i < depth; i++) {
            buf_add_char(&a, '[');
            buf_add_char(&b, '[');
        }
        buf_add_text(&a, "1");
        buf_add_text(&b, "1.0");
        for (int i = 0; i < depth; i++) {
            buf_add_char(&a, ']');
            buf_add_char(&b, ']');
        }
        assert_int_equal(scan_equal(buf_slice(&a), buf_slice(&b)),
                         depth <= SCAN_EQUAL_DEPTH);
        assert_true(scan_equal(buf_slice(&a), buf_slice(&a)));
        buf_finish(&a);
        buf_finish(&b);
    }
}

static void json_string_is_read_back(void **state)
{
    (void)state;
    struct buf text = { 0 }, back = { 0 };
    char all[256];
    for (int c = 0; c < 128; c++)
        all[c] = (char)c;
    struct slice content = { all, 128 };
    buf_add_json(&text, content);
    assert_true(scan_is_json(buf_slice(&text)));
    assert_true(scan_string(buf_slice(&text), &back));
    assert_true(slice_equal(buf_slice(&back), content));
    buf_finish(&text);
    buf_finish(&back);
}

/* Special characters at each place, alone and in runs, in strings of every length. */
static void string_of_any_length_is_read_back(void **state)
{
    (void)state;
    static const char *const units[] = { "\"", "\\", "\n", "\x01", "a", "\xc3\xa9" };
    enum { UNITS = sizeof(units) / sizeof(units[0]) };
    struct buf content = { 0 }, text = { 0 }, back = { 0 };
    for (unsigned usual = 0; usual < UNITS; usual++)
        for (unsigned odd = 0; odd < UNITS; odd++)
            for (int at = 0; at < 20; at++) {
                buf_clear(&content);
                for (int i = 0; i < 20 + at; i++)
                    buf_add_text(&content, units[i == at ? odd : usual]);
                buf_clear(&text);
                buf_clear(&back);
                buf_add_text(&text, "{\"a\":");
                buf_add_json(&text, buf_slice(&content));
                buf_add_text(&text, ",\"b\":1}");
                assert_true(scan_is_json(buf_slice(&text)));
                assert_true(scan_string(scan_member(buf_slice(&text), "a"), &back));
                assert_true(slice_equal(buf_slice(&back), buf_slice(&content)));
                assert_slice(scan_member(buf_slice(&text), "b"), "1");
            }
    buf_finish(&content);
    buf_finish(&text);
    buf_finish(&back);
}

static void equal_values_may_be_spelled_differently(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool expected;
    } cases[] = {
        { "1", " 1 ", true },
        { "1", "1.0", true },
        { "100", "1e2", true },
        { "0", "-0", true },
        { "1e400", "1e500", true },
        { "9007199254740992", "9007199254740993", true }, /* the same double */
        { "1", "2", false },
        { "1", "\"1\"", false },
        { "null", "false", false },
        { "true", "true ", true },
        { "\"a\"", "\"\\u0061\"", true },
        { "\"/\"", "\"\\/\"", true },
        { "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"", true },
        { "\"a\"", "\"a\\u0000\"", false },
        { "\"a\"", "\"b\"", false },
        { "[]", "[ ]", true },
        { "[1,2]", "[1, 2.0]", true },
        { "[1,2]", "[2,1]", false },
        { "[1]", "[1,1]", false },
        { "[1,1]", "[1]", false },
        { "[]", "{}", false },
        { "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true },
        { "{\"a\":1,\"a\":2}", "{\"a\":2}", true }, /* the last one counts */
        { "{\"a\":1,\"\\u0061\":2}", "{\"a\":2}", true },
        { "{\"a\":2,\"a\":1}", "{\"a\":2}", false },
        { "{\"a\":1}", "{\"b\":1}", false },
        { "{\"a\":1}", "{\"a\":1,\"b\":1}", false },
        { "{\"a\":{\"x\":[{}]}}", "{ \"a\" : { \"x\" : [ { } ] } }", true },
        { "{}", "{ }", true },
        { "", "", true },
        { "", "null", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice a = slice_of(cases[i].a), b = slice_of(cases[i].b);
        if (scan_equal(a, b) != cases[i].expected || scan_equal(b, a) != cases[i].expected)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    }
}

/* Comparing objects as large as metadata may be must not stop the loop. */
static void many_members_are_compared_in_reasonable_time(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    struct buf up = { 0 }, down = { 0 };
    for (int i = 0; i < COUNT; i++) {
        buf_print(&up, "%c\"%d\":%d", i ? ',' : '{', i, i);
        buf_print(&down, "%c\"%d\":%d", i ? ',' : '{', COUNT - 1 - i, COUNT - 1 - i);
    }
    buf_add_char(&up, '}');
    buf_add_char(&down, '}');
    assert_true(scan_equal(buf_slice(&up), buf_slice(&down)));
    assert_false(scan_has_duplicate(buf_slice(&up)));
    buf_finish(&up);
    buf_finish(&down);
}

static void comparison_stops_when_its_time_is_up(void **state)
{
    (void)state;
    struct slice a = SLICE("{\"a\":{\"b\":[1,{\"c\":\"d\"}]},\"e\":1}");
    struct slice b = SLICE("{\"e\":1,\"a\":{\"b\":[1,{\"c\":\"\\u0064\"}]}}");
    uint64_t plenty = 1000000, left = plenty;
    assert_true(scan_equal_within(a, b, &left));
    uint64_t needed = plenty - left;
    assert_in_range(needed, a.len, 10000);
    for (uint64_t given = 0; given <= needed; given++) {
        left = given;
        scan_equal_within(a, b, &left);
        assert_int_equal(left, 0);
    }
}

static void depth_counts_containers_but_not_strings(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned depth;
    } cases[] = {
        { "1", 0 },
        { "\"[[[\"", 0 },
        { "[]", 1 },
        { "[[],[],{}]", 2 },
        { "{\"[\":[{\"\\\"[\":1}]}", 3 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice text = slice_of(cases[i].text);
        assert_false(scan_deeper_than(text, cases[i].depth));
        if (cases[i].depth)
            assert_true(scan_deeper_than(text, cases[i].depth - 1));
    }
}

static void members_of_all_objects_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t members;
    } cases[] = {
        { "1", 0 },
        { "{}", 0 },
        { "[[1,2],\"a:b\",\"\\\":\"]", 0 },
        { "{\"a:\":1}", 1 },
        { "{\"a\" : [{\"b\":1},{\"b\":{\"c\":\":\"}}]}", 4 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice text = slice_of(cases[i].text);
        assert_false(scan_has_more_members(text, cases[i].members));
        if (cases[i].members)
            assert_true(scan_has_more_members(text, cases[i].members - 1));
    }
}

static void repeated_name_is_found(void **state)
{
    (void)state;
    assert_true(scan_has_duplicate(SLICE("{\"a\":1,\"b\":2,\"a\":3}")));
    assert_true(scan_has_duplicate(SLICE("{\"a\":1,\"\\u0061\":1}")));
    assert_false(scan_has_duplicate(SLICE("{\"a\":1,\"b\":{\"a\":1,\"a\":2}}")));
    assert_false(scan_has_duplicate(SLICE("{}")));
    assert_false(scan_has_duplicate(SLICE("[1,1]")));
    assert_false(scan_has_duplicate((struct slice){ 0 }));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_has_the_type_of_its_first_character),
        cmocka_unit_test(elements_come_in_order_and_trimmed),
        cmocka_unit_test(members_come_in_order_with_raw_keys),
        cmocka_unit_test(empty_or_scalar_value_has_no_members),
        cmocka_unit_test(a_member_is_found_by_any_spelling_and_the_last_counts),
        cmocka_unit_test(raw_key_matches_its_decoded_name),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(string_in_pieces_is_decoded_like_a_whole_one),
        cmocka_unit_test(lone_surrogates_are_escaped_if_that_makes_valid_json),
        cmocka_unit_test(too_many_lone_surrogates_are_not_escaped),
        cmocka_unit_test(values_are_compared_down_to_a_limited_depth),
        cmocka_unit_test(json_string_is_read_back),
        cmocka_unit_test(string_of_any_length_is_read_back),
        cmocka_unit_test(equal_values_may_be_spelled_differently),
        cmocka_unit_test(many_members_are_compared_in_reasonable_time),
        cmocka_unit_test(comparison_stops_when_its_time_is_up),
        cmocka_unit_test(depth_counts_containers_but_not_strings),
        cmocka_unit_test(members_of_all_objects_are_counted),
        cmocka_unit_test(repeated_name_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
