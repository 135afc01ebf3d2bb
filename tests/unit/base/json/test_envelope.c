/* A JSON object that arrives in pieces is read the same however it was cut. */
#include "tests/support/world/unit.h"

#include "base/json/envelope.h"

/* Feeds at most `size` bytes at a time. Returns OK, or the first error. */
static enum err feed(struct envelope *envelope, struct slice text, size_t size)
{
    while (text.len) {
        size_t len = text.len < size ? text.len : size;
        enum err err = envelope_feed(envelope, (struct slice){ text.ptr, len });
        if (err)
            return err;
        text = slice_from(text, len);
    }
    return OK;
}

static void members_are_found_however_the_text_is_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *value; /* NULL: absent */
    } cases[] = {
        { "{\"payload\":1}", "payload", "1" },
        { " { \"payload\" : [ 1 , {\"a\":2} ] , \"options\" : { } } ", "options", "{ }" },
        { " { \"payload\" : [ 1 , {\"a\":2} ] , \"options\" : { } } ", "payload",
          "[ 1 , {\"a\":2} ]" },
        { "{\"a\":{\"payload\":2}}", "payload", NULL },
        { "{\"a\":\"payload\",\"b\":3}", "payload", NULL },
        { "{\"a\":\"}\\\",\\\\\",\"b\":\"{[\"}", "b", "\"{[\"" },
        { "{\"a\":\"}\\\",\\\\\",\"b\":\"{[\"}", "a", "\"}\\\",\\\\\"" },
        { "{\"p\\u0061yload\":null}", "payload", "null" },
        { "{\"\":-0.0e+1}", "", "-0.0e+1" },
        { "{}", "payload", NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice text = slice_of(cases[i].text);
        for (size_t size = 1; size <= text.len; size++) {
            struct envelope envelope = { 0 };
            struct failure why;
            assert_int_equal(feed(&envelope, text, size), OK);
            assert_int_equal(envelope_close(&envelope, &why), OK);
            struct slice value = envelope_get(&envelope, cases[i].name);
            if (cases[i].value)
                assert_true(slice_is(value, cases[i].value));
            else
                assert_null(value.ptr);
            envelope_finish(&envelope);
        }
    }
}

static void string_payload_is_decoded_while_it_arrives(void **state)
{
    (void)state;
    static const struct {
        const char *text, *payload; /* NULL: not a string */
    } cases[] = {
        { "{\"payload\":\"\"}", "" },
        { "{\"payload\":\"plain \xC3\xA9\"}", "plain \xC3\xA9" },
        { "{\"payload\":\"{\\\"json\\\":{\\\"a\\\":1}}\"}", "{\"json\":{\"a\":1}}" },
        { "{\"payload\":\"\\b\\f\\n\\r\\t\\/\\\\\\\"\"}", "\b\f\n\r\t/\\\"" },
        { "{\"payload\":\"\\u00e9\\uD83D\\uDE80\\u0041\"}", "\xC3\xA9\xF0\x9F\x9A\x80"
                                                            "A" },
        { "{\"payload\":\"I am \\ud83d\"}", "I am \xed\xa0\xbd" },
        { "{\"payload\":\"\\ude00\\ud83d\\\\\"}", "\xed\xb8\x80\xed\xa0\xbd\\" },
        { "{\"context\":\"no\",\"payload\" : \"yes\",\"options\":{\"payload\":\"no\"}}",
          "yes" },
        { "{\"payload\":{\"payload\":\"no\"}}", NULL },
        { "{\"payload\":[\"no\"]}", NULL },
        { "{\"options\":\"no\"}", NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice text = slice_of(cases[i].text);
        for (size_t size = 1; size <= text.len; size++) {
            struct envelope envelope = { 0 };
            assert_int_equal(feed(&envelope, text, size), OK);
            struct slice payload = envelope_payload_text(&envelope);
            if (cases[i].payload)
                assert_true(slice_is(payload, cases[i].payload));
            else
                assert_null(payload.ptr);
            envelope_finish(&envelope);
        }
    }
}

static void string_payload_that_is_json_is_recognized(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_json;
    } cases[] = {
        { "{\"payload\":\"{\\\"a\\\":[1,\\u0032]}\"}", true },
        { "{\"payload\":\" 12 \"}", true },
        { "{\"payload\":\"\\\"text\\\"\"}", true },
        { "{\"payload\":\"\\\"\\\\ud83d\\\"\"}", true },
        { "{\"payload\":\"\\\"\\ud83d\\\"\"}", false },
        { "{\"payload\":\"text\"}", false },
        { "{\"payload\":\"{\\\"a\\\":1\"}", false },
        { "{\"payload\":\"1 2\"}", false },
        { "{\"payload\":\"\"}", false },
        { "{\"payload\":{\"a\":\"1\"}}", false },
        { "{\"options\":\"1\"}", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice text = slice_of(cases[i].text);
        for (size_t size = 1; size <= text.len; size++) {
            struct envelope envelope = { 0 };
            struct failure why;
            assert_int_equal(feed(&envelope, text, size), OK);
            assert_int_equal(envelope_close(&envelope, &why), OK);
            assert_int_equal(envelope_payload_is_json(&envelope), cases[i].is_json);
            envelope_finish(&envelope);
        }
    }
}

static void nul_character_is_kept(void **state)
{
    (void)state;
    struct envelope envelope = { 0 };
    assert_int_equal(feed(&envelope, SLICE("{\"payload\":\"a\\u0000b\"}"), 3), OK);
    assert_true(slice_equal(envelope_payload_text(&envelope), SLICE("a\0b")));
    envelope_finish(&envelope);
}

static void non_object_is_rejected_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "empty" },
        { "  \n", "empty" },
        { "{\"a\":1", "too early" },
        { "[{\"payload\":1}]", "must be a JSON object" },
        { "\"payload\"", "must be a JSON object" },
        { "{\"a\":1,\"b\":2,\"a\":3}", "twice" },
        { "{\"a\":1,\"\\u0061\":3}", "twice" },
        { "{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,"
          "\"10\":0,\"11\":0,\"12\":0,\"13\":0,\"14\":0,\"15\":0,\"16\":0,\"17\":0,"
          "\"18\":0,\"19\":0,\"20\":0,\"21\":0,\"22\":0,\"23\":0,\"24\":0,\"25\":0,"
          "\"26\":0,\"27\":0,\"28\":0,\"29\":0,\"30\":0,\"31\":0,\"32\":0,\"33\":0}",
          "more than 32" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct envelope envelope = { 0 };
        struct failure why = { 0 };
        assert_int_equal(feed(&envelope, slice_of(cases[i].text), 7), OK);
        assert_int_equal(envelope_close(&envelope, &why), ERR_INVALID);
        assert_non_null(strstr(why.text, cases[i].says));
        envelope_finish(&envelope);
    }
}

static void invalid_json_is_rejected_at_its_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
    } cases[] = {
        { "{not json}", 1 },
        { "{\"a\":1}}", 7 },
        { "{\"a\":\"\xFF\"}", 6 },
        { "{\"a\":\"\xC3(\"}", 7 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct envelope envelope = { 0 };
        assert_int_equal(feed(&envelope, slice_of(cases[i].text), 1), ERR_INVALID);
        assert_int_equal(envelope.scan.offset, cases[i].offset);
        envelope_finish(&envelope);
    }
}

static void cleared_envelope_starts_again(void **state)
{
    (void)state;
    struct envelope envelope = { 0 };
    struct failure why;
    feed(&envelope, SLICE("{\"payload\":\"old\",\"options\":{\"a\":"), 4);
    envelope_clear(&envelope);
    assert_int_equal(feed(&envelope, SLICE("{\"task\":\"t\"}"), 4), OK);
    assert_int_equal(envelope_close(&envelope, &why), OK);
    assert_true(slice_is(envelope_get(&envelope, "task"), "\"t\""));
    assert_null(envelope_payload_text(&envelope).ptr);
    assert_null(envelope_get(&envelope, "options").ptr);
    envelope_finish(&envelope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_however_the_text_is_cut),
        cmocka_unit_test(string_payload_is_decoded_while_it_arrives),
        cmocka_unit_test(string_payload_that_is_json_is_recognized),
        cmocka_unit_test(nul_character_is_kept),
        cmocka_unit_test(non_object_is_rejected_with_a_reason),
        cmocka_unit_test(invalid_json_is_rejected_at_its_byte),
        cmocka_unit_test(cleared_envelope_starts_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
