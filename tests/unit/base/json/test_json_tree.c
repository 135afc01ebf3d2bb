/* A JSON tree holds and writes the same as JSON.parse and JSON.stringify. */
#include "tests/support/world/unit.h"

#include "base/json/json_tree.h"

static void a_tree_is_written_as_it_was_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *written; /* NULL: the same */
    } cases[] = {
        { "{\"a\":[1,-2,true,false,null,{}],\"b\":{\"c\":\"\"}}", NULL },
        { " { \"\\u0061\" : [ ] } ", "{\"a\":[]}" },
        { "\"I am \\ud83d\"", NULL },
        { "\"\\uD83D\\uDE00\\uDE00\"", "\"\xf0\x9f\x98\x80\\ude00\"" },
        { "{\"\\ud83d\":\"\\u0000\\\\\\\"\"}", NULL },
        { "9223372036854775807", NULL },
        { "9223372036854775808", "9223372036854776000" },
        { "1.5e3", "1500" },
        { "0.1", NULL },
        { "{\"a\":1,\"a\":2}", "{\"a\":2}" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why;
        struct buf out = { 0 };
        json_t *tree = json_tree_read(slice_of(cases[i].text), 0, &why);
        assert_non_null(tree);
        json_tree_write(tree, &out);
        assert_true(
            slice_is(buf_slice(&out), cases[i].written ? cases[i].written : cases[i].text));
        json_decref(tree);
        buf_finish(&out);
    }
}

static void text_that_cannot_be_a_tree_is_rejected_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned options;
        const char *reason;
    } cases[] = {
        { "", 0, "not JSON" },
        { "{\"a\":1", 0, "not JSON" },
        { "\"\xed\xa0\xbd\"", 0, "not JSON" },
        { "[{\"a\":1,\"\\u0061\":2}]", TREE_ONE_OF_EACH, "names a member twice" },
        { "{\"\\ud83d\":1,\"\\uD83D\":2}", TREE_ONE_OF_EACH, "names a member twice" },
        { "{\"a\":{\"b\\u0000\":1}}", 0, "the name of a member has a zero byte" },
        { "[-1e400]", 0, "a number is too large" },
        { "[[\"a\\u0000\"]]", TREE_NO_ZERO, "a text has a zero byte" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why = { 0 };
        assert_null(json_tree_read(slice_of(cases[i].text), cases[i].options, &why));
        assert_int_equal(why.code, ERR_INVALID);
        assert_non_null(strstr(why.text, cases[i].reason));
        assert_null(json_tree_read(slice_of(cases[i].text), cases[i].options, NULL));
    }
}

static void tree_depth_is_limited(void **state)
{
    (void)state;
    for (int depth = TREE_DEPTH_MAX; depth <= TREE_DEPTH_MAX + 1; depth++) {
        struct buf text = { 0 };
        for (int i = 0; i < depth; i++)
            buf_add_char(&text, '[');
        for (int i = 0; i < depth; i++)
            buf_add_char(&text, ']');
        json_t *tree = json_tree_read(buf_slice(&text), 0, NULL);
        assert_int_equal(tree != NULL, depth <= TREE_DEPTH_MAX);
        json_decref(tree);
        buf_finish(&text);
    }
}

static void numbers_become_reals_on_request(void **state)
{
    (void)state;
    json_t *tree = json_tree_read(SLICE("[1, 12345678901234567890]"), TREE_REALS, NULL);
    assert_true(json_is_real(json_array_get(tree, 0)));
    assert_true(json_real_value(json_array_get(tree, 1)) == 12345678901234567890.0);
    json_decref(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_written_as_it_was_read),
        cmocka_unit_test(text_that_cannot_be_a_tree_is_rejected_with_a_reason),
        cmocka_unit_test(tree_depth_is_limited),
        cmocka_unit_test(numbers_become_reals_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
