/* Finds valid and invalid JSON wherever the pieces end; spans keep their bytes. */
#include "tests/support/world/unit.h"

#include <stdlib.h>

#include "base/json/scan.h"

#define TEXT(literal)                                                                      \
    {                                                                                      \
        literal, sizeof(literal) - 1                                                       \
    }

/* clang-format off */
static const struct slice accepted[] = {
    /* structure */
    TEXT("null"), TEXT("true"), TEXT("false"), TEXT("0"), TEXT("\"\""), TEXT("[]"), TEXT("{}"),
    TEXT(" null "), TEXT("\t\r\n null\t\r\n "), TEXT("[ ]"), TEXT("{ }"), TEXT("[[]]"),
    TEXT("[[],[[]]]"), TEXT("[1,null,4,\"5\",{}]"), TEXT("[ 1 , 2 ]"), TEXT("[1\n]"),
    TEXT("{\"a\":1}"), TEXT("{\"a\":{\"b\":[{}]}}"), TEXT(" { \"a\" : 1 , \"b\" : 2 } "),
    TEXT("{\"a\":1,\"a\":1}"), TEXT("{\"\":0}"), TEXT("{\"a\":[]}"), TEXT("[{},{}]"),
    TEXT("{\"\\u0000\":1}"), TEXT("{\"min\":-1.0e+28,\"max\":1.0e+28}"),
    TEXT("[null,true,false]"), TEXT("[[[[[[[[[[1]]]]]]]]]]"), TEXT("{\"__proto__\":1}"),
    /* numbers */
    TEXT("-0"), TEXT("-1"), TEXT("10"), TEXT("-10"), TEXT("1.5"), TEXT("0.5"), TEXT("-0.0"),
    TEXT("1e5"), TEXT("1E5"), TEXT("1e+5"), TEXT("1e-5"), TEXT("0e1"), TEXT("0e+1"),
    TEXT("1.5e10"), TEXT("1e05"), TEXT("1e00"), TEXT("20e1"), TEXT("1.000000000000000005"),
    TEXT("12345678901234567890123456789"), TEXT("1e400"), TEXT("-1e400"), TEXT("1e-400"),
    TEXT("[0,1,-0,1.0]"), TEXT("1 "), TEXT("[1e1]"), TEXT("{\"a\":-0.1e-1}"),
    TEXT("0.00000000000000000000000000000000000000000000000001"),
    /* strings */
    TEXT("\"a\""), TEXT("\"a/b\""), TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), TEXT("\"\\u0041\""),
    TEXT("\"\\u0000\""), TEXT("\"\\uABCD\\uabcd\""), TEXT("\"\\\\u0041\""),
    TEXT("\"\\ud83d\\ude00\""), TEXT("\"\\uD83D\\uDE00\""), TEXT("\"\\uDBFF\\uDFFF\""),
    TEXT("\"\\uD800\\uDC00x\""),
    /* half of a surrogate pair without the other half */
    TEXT("\"\\ud800\""), TEXT("\"\\udbff\""), TEXT("\"\\udc00\""), TEXT("\"\\udfff\""),
    TEXT("\"\\ud800a\""), TEXT("\"\\ud800\\n\""), TEXT("\"\\ud800\\u0041\""),
    TEXT("\"\\ud800\\ud800\""), TEXT("\"\\udc00\\ud800\""), TEXT("\"\\ud800\\ud800\\udc00\""),
    TEXT("{\"\\ud800\":1}"), TEXT("[\"\\uD83D\",\"\\uDE00\"]"), TEXT("\"\\uDDDDddDD\\uDDDD\""),
    TEXT("\"\\uD7FF\""), TEXT("\"\\uE000\""), TEXT("\"\\uFFFF\""),
    TEXT("\"\x7f\""), TEXT("\"\xc2\x80\""), TEXT("\"\xdf\xbf\""), TEXT("\"\xe0\xa0\x80\""),
    TEXT("\"\xed\x9f\xbf\""), TEXT("\"\xee\x80\x80\""), TEXT("\"\xef\xbf\xbf\""),
    TEXT("\"\xe2\x80\xa8\xe2\x80\xa9\""), TEXT("\"\xf0\x90\x80\x80\""),
    TEXT("\"\xf4\x8f\xbf\xbf\""), TEXT("\"\xef\xbb\xbf\""), TEXT("\"[{,:}]\""),
    TEXT("\"a string of more than eight bytes, \xc3\xa4 and \\n within\""),
    TEXT("\"0123456\\\"0123456\\\\\""), TEXT("{\"\\\"}\":\"{\\\"\"}"), TEXT("\"'\""),
};

static const struct slice refused[] = {
    /* empty, or more than one value */
    TEXT(""), TEXT(" "), TEXT("\n"), TEXT("null null"), TEXT("1 2"), TEXT("[]]"), TEXT("[][]"),
    TEXT("{}}"), TEXT("{}x"), TEXT("\"a\"b"), TEXT("[1]x"), TEXT("nullx"), TEXT("true1"),
    TEXT(","), TEXT(":"), TEXT("]"), TEXT("}"), TEXT("\"a\",\"b\""), TEXT("null\0"), TEXT("\0"),
    TEXT("[]\0"), TEXT("\xef\xbb\xbfnull"), TEXT("\xef\xbb\xbf"), TEXT("\xfe\xff\0n"),
    TEXT("\xff"), TEXT("\xc3\xa4"), TEXT("//x\n1"), TEXT("/**/1"), TEXT("1/**/"), TEXT("#1"),
    /* white space that JSON does not allow */
    TEXT("\f1"), TEXT("\v1"), TEXT("[\xc2\xa0]"), TEXT("1\f"), TEXT("[\b]"), TEXT("\xe2\x81\xa0"),
    TEXT("[1,\xe2\x80\xa8 2]"), TEXT("[\x1f]"),
    /* structure */
    TEXT("["), TEXT("{"), TEXT("[1"), TEXT("[1,"), TEXT("[,"), TEXT("[,1]"), TEXT("[1,]"),
    TEXT("[1,,2]"), TEXT("[1 2]"), TEXT("[1:2]"), TEXT("[1}"), TEXT("{1}"), TEXT("{]"), TEXT("[}"),
    TEXT("{\"a\"}"), TEXT("{\"a\":}"), TEXT("{\"a\":1,}"), TEXT("{,}"), TEXT("{\"a\" 1}"),
    TEXT("{\"a\"::1}"), TEXT("{\"a\":1 \"b\":2}"), TEXT("{\"a\":1,,\"b\":2}"), TEXT("{a:1}"),
    TEXT("{'a':1}"), TEXT("{1:1}"), TEXT("{null:1}"), TEXT("{\"a\":1]"), TEXT("{\"a\",1}"),
    TEXT("{\"a\":"), TEXT("{\"a\""), TEXT("{\"a"), TEXT("{\"a\":1"), TEXT("{\"a\":1,"),
    TEXT("{\"a\":1:2}"), TEXT("[[]"), TEXT("[{}"), TEXT("[{]}"), TEXT("{[]:1}"), TEXT("[\"a\":1]"),
    TEXT("{\"a\":1,1}"), TEXT("{:1}"), TEXT("{\"a\":[}]"),
    /* words */
    TEXT("nul"), TEXT("tru"), TEXT("fals"), TEXT("n"), TEXT("Null"), TEXT("TRUE"), TEXT("nulk"),
    TEXT("truE"), TEXT("NaN"), TEXT("Infinity"), TEXT("-Infinity"), TEXT("undefined"),
    TEXT("[nul]"), TEXT("[tru,1]"), TEXT("n ull"), TEXT("tr\\u0075e"),
    /* numbers */
    TEXT("-"), TEXT("+1"), TEXT("01"), TEXT("00"), TEXT("-01"), TEXT("1."), TEXT(".5"), TEXT("-.5"),
    TEXT("1.e5"), TEXT("1e"), TEXT("1e+"), TEXT("1e-"), TEXT("1E"), TEXT("1ee5"), TEXT("1e5.5"),
    TEXT("1.5.5"), TEXT("--1"), TEXT("-+1"), TEXT("1+1"), TEXT("1-1"), TEXT("0x10"), TEXT("1_000"),
    TEXT("1a"), TEXT("0e"), TEXT("0.e1"), TEXT("1e+-5"), TEXT("- 1"), TEXT("1 000"), TEXT("1,5"),
    TEXT("[-]"), TEXT("[1.]"), TEXT("[1e]"), TEXT("-a"), TEXT("0.1."), TEXT("1\0"), TEXT("1n"),
    TEXT("\xef\xbc\x91"), TEXT("[-012]"), TEXT("1e1e1"),
    /* strings */
    TEXT("\""), TEXT("\"a"), TEXT("a\""), TEXT("'a'"), TEXT("\"a\nb\""), TEXT("\"a\tb\""),
    TEXT("\"\0\""), TEXT("\"\x1f\""), TEXT("\"\x01\""), TEXT("\"12345678\x1f\""), TEXT("\"\\\""),
    TEXT("\"\\"), TEXT("\"\\x41\""), TEXT("\"\\a\""), TEXT("\"\\'\""), TEXT("\"\\0\""),
    TEXT("\"\\U0041\""), TEXT("\"\\\n\""), TEXT("\"\\\0\""), TEXT("\"\\u\""), TEXT("\"\\u004\""),
    TEXT("\"\\u00g1\""), TEXT("\"\\u 041\""), TEXT("\"\\u+041\""), TEXT("\"\\u0041"),
    TEXT("\"\\\xc3\xa4\""), TEXT("\"\\u00\xc3\xa4\""), TEXT("\"\\uD83D\\u\""), TEXT("\\u0022a\""),
    /* half of a surrogate pair in an unfinished string, or as bytes */
    TEXT("\"\\ud800"), TEXT("\"\\ud800\\"), TEXT("\"\\ud80\""), TEXT("\"\\ud800\\x\""),
    TEXT("\"\\ud800\\u\""), TEXT("\"\\ud800\xed\xb0\x80\""),
    /* not UTF-8 */
    TEXT("\"\x80\""), TEXT("\"\xbf\""), TEXT("\"\xc0\xaf\""), TEXT("\"\xc1\xbf\""),
    TEXT("\"\xe0\x80\xaf\""), TEXT("\"\xe0\x9f\xbf\""), TEXT("\"\xed\xa0\x80\""),
    TEXT("\"\xed\xbf\xbf\""), TEXT("\"\xf0\x80\x80\xaf\""), TEXT("\"\xf0\x8f\xbf\xbf\""),
    TEXT("\"\xf4\x90\x80\x80\""), TEXT("\"\xf5\x80\x80\x80\""), TEXT("\"\xfe\""), TEXT("\"\xff\""),
    TEXT("\"\xc3\""), TEXT("\"\xe2\x82\""), TEXT("\"\xf0\x9f\x98\""), TEXT("\"\xc3\xc3\xa4\""),
    TEXT("\"\xe2\x82"), TEXT("\"1234567\xc3\""), TEXT("{\"\xff\":1}"), TEXT("\"\xe4\""),
    TEXT("\"\xfc\x83\xbf\xbf\xbf\xbf\""),
};
/* clang-format on */

enum {
    ACCEPTED_COUNT = sizeof(accepted) / sizeof(accepted[0]),
    REFUSED_COUNT = sizeof(refused) / sizeof(refused[0]),
};

/* Copies every piece into memory of exactly its size, so that ASan sees reads past its
 * end. */
static void feed_copy(struct scan *scan, struct slice piece)
{
    char *copy = malloc(piece.len + !piece.len);
    assert_non_null(copy);
    memcpy(copy, piece.ptr, piece.len);
    scan_feed(scan, (struct slice){ copy, piece.len });
    free(copy);
}

static void assert_verdict(struct scan *scan, struct slice text, bool expected)
{
    if ((scan_finish(scan) == OK) != expected)
        fail_msg("%s: %.*s", expected ? "refused" : "accepted", SLICE_ARG(text));
}

static void check_whole(struct slice text, bool expected)
{
    if (scan_is_json(text) != expected)
        fail_msg("%s whole: %.*s", expected ? "refused" : "accepted", SLICE_ARG(text));
}

static void check_byte_by_byte(struct slice text, bool expected)
{
    struct scan scan;
    scan_init(&scan);
    for (size_t i = 0; i < text.len; i++)
        feed_copy(&scan, (struct slice){ text.ptr + i, 1 });
    assert_verdict(&scan, text, expected);
}

/* An error is found at the same place wherever the pieces end. */
static void check_split(struct slice text, bool expected)
{
    struct scan whole, scan;
    scan_init(&whole);
    feed_copy(&whole, text);
    scan_finish(&whole);
    for (size_t at = 0; at <= text.len; at++) {
        scan_init(&scan);
        feed_copy(&scan, (struct slice){ text.ptr, at });
        feed_copy(&scan, slice_from(text, at));
        assert_int_equal(scan.offset, whole.offset);
        assert_verdict(&scan, text, expected);
    }
}

static void json_is_accepted_however_it_arrives(void **state)
{
    (void)state;
    for (size_t i = 0; i < ACCEPTED_COUNT; i++) {
        check_whole(accepted[i], true);
        check_byte_by_byte(accepted[i], true);
        check_split(accepted[i], true);
    }
}

static void invalid_json_is_rejected_however_it_arrives(void **state)
{
    (void)state;
    for (size_t i = 0; i < REFUSED_COUNT; i++) {
        check_whole(refused[i], false);
        check_byte_by_byte(refused[i], false);
        check_split(refused[i], false);
    }
}

static void nested_values_are_checked_like_outer_ones(void **state)
{
    (void)state;
    struct buf text = { 0 };
    for (size_t i = 0; i < ACCEPTED_COUNT; i++) {
        buf_add_text(&text, "{\"k\":[0,");
        buf_add(&text, accepted[i]);
        buf_add_text(&text, ",[],");
        buf_add(&text, accepted[i]);
        buf_add_text(&text, "]}");
        check_whole(buf_slice(&text), true);
        buf_clear(&text);
    }
    buf_finish(&text);
}

static void error_reports_its_position(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
    } cases[] = {
        { "[1,x]", 3 }, { "nulx", 3 },        { "\"a\n\"", 2 },     { "[1 2]", 3 },
        { "x", 0 },     { "\"ab\xc3(\"", 4 }, { "\"\\uD80x\"", 6 }, { "{\"a\" 1}", 5 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scan scan;
        scan_init(&scan);
        assert_int_equal(scan_feed(&scan, slice_of(cases[i].text)), ERR_INVALID);
        assert_int_equal(scan.offset, cases[i].offset);
    }
}

static void error_is_permanent(void **state)
{
    (void)state;
    struct scan scan;
    scan_init(&scan);
    assert_int_equal(scan_feed(&scan, SLICE("[x")), ERR_INVALID);
    assert_int_equal(scan_feed(&scan, SLICE("1]")), ERR_INVALID);
    assert_int_equal(scan_finish(&scan), ERR_INVALID);
}

/* Writes count levels of alternating kinds, or of arrays only. */
static void nest(struct buf *text, int count, bool objects)
{
    buf_clear(text);
    for (int i = 0; i < count; i++)
        buf_add_text(text, objects && i % 2 ? "{\"a\":" : "[");
    buf_add_text(text, "1");
    for (int i = count; i-- > 0;)
        buf_add_text(text, objects && i % 2 ? "}" : "]");
}

static void deep_nesting_is_accepted(void **state)
{
    (void)state;
    static const int depths[] = {
        63, 64, 65, 200, 201, 255, 256, 257, 767, 768, 769, 1100
    };
    struct buf text = { 0 };
    for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
        for (int objects = 0; objects < 2; objects++) {
            nest(&text, depths[i], objects);
            check_byte_by_byte(buf_slice(&text), true);
            check_whole(buf_slice(&text), true);
            assert_false(scan_deeper_than(buf_slice(&text), (unsigned)depths[i]));
            assert_true(scan_deeper_than(buf_slice(&text), (unsigned)depths[i] - 1));
            assert_true(scan_equal(buf_slice(&text), buf_slice(&text)));
            text.ptr[text.len - 1] ^= '}' ^ ']';
            check_whole(buf_slice(&text), false);
            text.len--;
            check_whole(buf_slice(&text), false);
        }
    nest(&text, 1000000, true);
    check_whole(buf_slice(&text), true);
    buf_finish(&text);
}

static void nesting_is_limited_to_a_megabyte_of_bits(void **state)
{
    (void)state;
    struct scan scan;
    struct failure why;
    struct buf text = { 0 };
    char *brackets = buf_reserve(&text, SCAN_DEPTH_MAX);
    memset(brackets, '[', SCAN_DEPTH_MAX);
    scan_init(&scan);
    assert_int_equal(scan_feed(&scan, (struct slice){ brackets, SCAN_DEPTH_MAX }), OK);
    assert_true(scan.far_words * sizeof(*scan.far) <= SCAN_FAR_MAX);
    assert_int_equal(scan_feed(&scan, SLICE("[")), ERR_INVALID);
    assert_int_equal(scan_explain(&scan, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "nested deeper than"));
    assert_int_equal(scan_finish(&scan), ERR_INVALID);
    buf_finish(&text);
}

static void finished_scan_accepts_no_more_input(void **state)
{
    (void)state;
    struct scan scan;
    struct buf text = { 0 };
    nest(&text, 300, true);
    scan_init(&scan);
    assert_int_equal(scan_feed(&scan, (struct slice){ text.ptr, text.len / 2 }), OK);
    assert_int_equal(scan_finish(&scan), ERR_INVALID);
    assert_int_equal(scan_feed(&scan, slice_from(buf_slice(&text), text.len / 2)),
                     ERR_INVALID);
    assert_int_equal(scan_finish(&scan), ERR_INVALID);
    buf_finish(&text);
}

/* Puts a special byte at each place of an eight-byte word, after each kind of neighbor. */
static void a_forbidden_byte_is_found_at_every_place(void **state)
{
    (void)state;
    static const unsigned char forbidden[] = { 0x00, 0x01, 0x1F, 0x80, 0xFF, '\n' };
    static const char neighbours[] = " !#[]~\x7f";
    char text[40];
    for (const char *neighbour = neighbours; *neighbour; neighbour++) {
        memset(text, *neighbour, sizeof(text));
        text[0] = text[39] = '"';
        check_whole((struct slice){ text, 40 }, true);
        for (size_t at = 1; at < 39; at++)
            for (size_t i = 0; i < sizeof(forbidden); i++) {
                text[at] = (char)forbidden[i];
                check_whole((struct slice){ text, 40 }, false);
                text[at] = *neighbour;
            }
    }
}

/* Writes a string of count characters: `odd` at place `at`, `usual` everywhere else. */
static void put_string(struct buf *text, struct slice usual, int count, struct slice odd,
                       int at)
{
    buf_clear(text);
    buf_add_char(text, '"');
    for (int i = 0; i < count; i++)
        buf_add(text, i == at ? odd : usual);
    buf_add_char(text, '"');
}

/* Long runs are skipped quickly; a character that must not be skipped is found in them. */
static void special_character_is_found_anywhere_in_a_run(void **state)
{
    (void)state;
    static const struct slice good[] = { TEXT("a"),
                                         TEXT("\\n"),
                                         TEXT("\\\""),
                                         TEXT("\\\\"),
                                         TEXT("\\u00e9"),
                                         TEXT("\\ud83d\\ude00"),
                                         TEXT("\\ud800"),
                                         TEXT("\\udc00"),
                                         TEXT("\xc3\xa9"),
                                         TEXT("\xe5\xad\x97"),
                                         TEXT("\xed\x9f\xbf"),
                                         TEXT("\xf0\x9f\x98\x80") };
    static const struct slice bad[] = {
        TEXT("\""),
        TEXT("\n"),
        TEXT("\\x"),
        TEXT("\\u12g4"),
        TEXT("\\u-123"),
        TEXT("\\ud80-"),
        TEXT("\\ud800\\x"),
        TEXT("\x80"),
        TEXT("\xc0\x80"),
        TEXT("\xc3("),
        TEXT("\xe0\x80\x80"),
        TEXT("\xe5\xad("),
        TEXT("\xed\xa0\x80"),
        TEXT("\xf0\x80\x80\x80"),
        TEXT("\xf0\x9f\x98("),
        TEXT("\xf4\x90\x80\x80"),
        TEXT("\xf5\x80\x80\x80"),
    };
    enum { COUNT = 12, GOOD = sizeof(good) / sizeof(good[0]) };
    struct buf text = { 0 };
    for (size_t usual = 0; usual < GOOD; usual++)
        for (int at = 0; at < COUNT; at++) {
            for (size_t i = 0; i < GOOD; i++) {
                put_string(&text, good[usual], COUNT, good[i], at);
                check_split(buf_slice(&text), true);
            }
            for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                put_string(&text, good[usual], COUNT, bad[i], at);
                check_split(buf_slice(&text), false);
            }
        }
    buf_finish(&text);
}

static void bytes_are_checked_for_json_once(void **state)
{
    (void)state;
    struct bytes *json = bytes_create(SLICE("[1]")), *text = bytes_create(SLICE("[1"));
    assert_int_equal(json->json, BYTES_UNKNOWN);
    for (int again = 0; again < 2; again++) {
        assert_true(scan_bytes_are_json(json));
        assert_false(scan_bytes_are_json(text));
    }
    assert_int_equal(json->json, BYTES_JSON);
    assert_int_equal(text->json, BYTES_NO_JSON);
    assert_false(scan_bytes_are_json(NULL));
    bytes_unref(json);
    bytes_unref(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_accepted_however_it_arrives),
        cmocka_unit_test(invalid_json_is_rejected_however_it_arrives),
        cmocka_unit_test(nested_values_are_checked_like_outer_ones),
        cmocka_unit_test(error_reports_its_position),
        cmocka_unit_test(error_is_permanent),
        cmocka_unit_test(deep_nesting_is_accepted),
        cmocka_unit_test(nesting_is_limited_to_a_megabyte_of_bits),
        cmocka_unit_test(finished_scan_accepts_no_more_input),
        cmocka_unit_test(a_forbidden_byte_is_found_at_every_place),
        cmocka_unit_test(special_character_is_found_anywhere_in_a_run),
        cmocka_unit_test(bytes_are_checked_for_json_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
