/* Any body of a webhook completes its token. */
#include "tests/support/world/unit.h"

#include "api/waitpoints/callback_body.h"
#include "base/json/scan.h"
#include "base/text.h"

static const char form[] = "application/x-www-form-urlencoded";
static const char parts[] = "multipart/form-data; boundary=b";

static void assert_output(const char *type, struct slice body, const char *expected)
{
    struct buf output = { 0 };
    struct failure why = { 0 };
    struct slice header = type ? slice_of(type) : (struct slice){ 0 };
    assert_int_equal(callback_body_read(header, body, &output, &why), OK);
    if (!slice_is(buf_slice(&output), expected))
        fail_msg("%s: %.*s gave %.*s", type ? type : "no type", SLICE_ARG(body),
                 SLICE_ARG(buf_slice(&output)));
    assert_true(scan_is_json(buf_slice(&output)));
    buf_finish(&output);
}

static void content_type_decides_the_output_of_a_body(void **state)
{
    (void)state;
    static const struct {
        const char *type, *body, *output;
    } cases[] = {
        { "application/json", " {\"a\": 1e400, \"a\": -0} ", "{\"a\": 1e400, \"a\": -0}" },
        { NULL, "[1]", "[1]" },
        { form, "5", "5" }, /* valid JSON is JSON, whatever the content type */
        { "application/json", "{\"a\":", "{}" },
        { "application/json", "", "{}" },
        { form, "  ", "{}" },
        { NULL, "", "{}" },
        { NULL, "hello", "{}" },
        { form, "a=1&b=x+y%21&c&=d&&e=%C3%A9&f=%zz%",
          "{\"a\":\"1\",\"b\":\"x "
          "y!\",\"c\":\"\",\"\":\"d\",\"e\":\"\xC3\xA9\",\"f\":\"%zz%\"}" },
        { form, "a=1&b=2&a=3&a=%22", "{\"a\":[\"1\",\"3\",\"\\\"\"],\"b\":\"2\"}" },
        { form, "a=%FF%00", "{\"a\":\"\xEF\xBF\xBD\\u0000\"}" },
        { "Application/X-WWW-Form-urlencoded ; charset=utf-8", "a=1", "{\"a\":\"1\"}" },
        { parts,
          "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n"
          "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\nno\r\n"
          "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n2\r\n"
          "--b--\r\n",
          "{\"a\":[\"1\",\"2\"]}" },
        { parts, "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1", "{}" },
        { "multipart/form-data", "--b--", "{}" },
        { "text/plain", " yes \"all\"\n", "\" yes \\\"all\\\"\\n\"" },
        { "text/html; charset=utf-8", "<p>", "\"<p>\"" },
        { "text/plain", "caf\xE9", "\"caf\xEF\xBF\xBD\"" },
        { "text/xml", "<a/>", "{}" },
        { "application/xml", "<a>", "{}" },
        { "application/octet-stream", "\x01\x02", "{}" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_output(cases[i].type, slice_of(cases[i].body), cases[i].output);
}

static void assert_too_large(const char *type, struct slice body, const char *says)
{
    struct buf output = { 0 };
    struct failure why = { 0 };
    assert_int_equal(callback_body_read(slice_of(type), body, &output, &why),
                     ERR_TOO_LARGE);
    assert_non_null(strstr(why.text, says));
    buf_finish(&output);
}

static void too_many_fields_or_bytes_are_rejected(void **state)
{
    (void)state;
    struct buf body = { 0 };
    for (int i = 0; i < CALLBACK_FIELDS_MAX; i++)
        buf_add_text(&body, "a=1&");
    struct buf output = { 0 };
    struct failure why = { 0 };
    assert_int_equal(callback_body_read(slice_of(form), buf_slice(&body), &output, &why),
                     OK);
    buf_finish(&output);
    buf_add_text(&body, "b=1");
    assert_too_large(form, buf_slice(&body), "too many fields (max 1000)");
    buf_clear(&body);
    memset(buf_reserve(&body, CALLBACK_OUTPUT_MAX / 2), '"', CALLBACK_OUTPUT_MAX / 2);
    body.len = CALLBACK_OUTPUT_MAX / 2;
    assert_too_large("text/plain", buf_slice(&body), "too large");
    buf_finish(&body);
}

static void too_many_parts_are_rejected(void **state)
{
    (void)state;
    struct buf body = { 0 };
    for (int i = 0; i <= CALLBACK_FIELDS_MAX; i++)
        buf_add_text(&body,
                     "--x\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n");
    buf_add_text(&body, "--x--\r\n");
    assert_too_large("multipart/form-data; boundary=x", buf_slice(&body),
                     "too many fields (max 1000)");
    buf_finish(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_type_decides_the_output_of_a_body),
        cmocka_unit_test(too_many_fields_or_bytes_are_rejected),
        cmocka_unit_test(too_many_parts_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
