/* Headers of forwarded calls and of their responses: those of one connection do not pass. */
#include "tests/support/world/unit.h"

#include "api/router/forwarded_headers.h"
#include "net/http/relayed.h"

#define UNTAKEN RELAYED_UNTAKEN ": 1\r\n"
#define UNSURE RELAYED_UNSURE ": 1\r\n"

static void the_line_about_the_fate_of_a_call_is_cut(void **state)
{
    static const struct {
        const char *lines, *kept;
        enum forwarded_fate fate;
    } cases[] = {
        { "", "", FATE_KNOWN },
        { "a: b\r\n", "a: b\r\n", FATE_KNOWN },
        { UNTAKEN, "", FATE_UNTAKEN },
        { "retry-after: 1\r\n" UNTAKEN, "retry-after: 1\r\n", FATE_UNTAKEN },
        { UNTAKEN "a: b\r\n", "a: b\r\n", FATE_UNTAKEN },
        { "a: b\r\n" UNTAKEN "c: d\r\n", "a: b\r\nc: d\r\n", FATE_UNTAKEN },
        { "a: b\r\n" UNSURE "c: d\r\n", "a: b\r\nc: d\r\n", FATE_UNSURE },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf kept = { 0 };
        assert_int_equal(forwarded_headers_keep_lines(&kept, slice_of(cases[i].lines)),
                         cases[i].fate);
        assert_true(slice_is(buf_slice(&kept), cases[i].kept));
        buf_finish(&kept);
    }
}

static void a_response_loses_headers_of_its_connection(void **state)
{
    static const struct http_header headers[] = {
        { SLICE("Date"), SLICE("today") },        { SLICE("X-A"), SLICE("b") },
        { SLICE("Connection"), SLICE("close") },  { SLICE("Content-Length"), SLICE("12") },
        { SLICE("upgrade"), SLICE("websocket") }, { SLICE(RELAYED_UNTAKEN), SLICE("1") },
        { SLICE(RELAYED_UNSURE), SLICE("1") },
    };
    struct buf lines = { 0 };
    uint64_t length;
    (void)state;
    assert_true(forwarded_headers_length(headers, 6, &length));
    assert_int_equal(length, 12);
    assert_false(forwarded_headers_length(headers, 3, &length));
    assert_int_equal(forwarded_headers_keep(&lines, 200, headers, 5), FATE_KNOWN);
    assert_true(slice_is(buf_slice(&lines), "X-A: b\r\n"));
    buf_clear(&lines);
    assert_int_equal(forwarded_headers_keep(&lines, 503, headers, 6), FATE_UNTAKEN);
    assert_true(slice_is(buf_slice(&lines), "X-A: b\r\n"));
    buf_clear(&lines);
    assert_int_equal(forwarded_headers_keep(&lines, 503, headers + 6, 1), FATE_UNSURE);
    assert_int_equal(lines.len, 0);
    assert_int_equal(forwarded_headers_keep(&lines, 101, headers + 4, 1), FATE_KNOWN);
    assert_true(slice_is(buf_slice(&lines), "upgrade: websocket\r\n"));
    buf_finish(&lines);
}

static size_t choose(struct exchange *x, const char *made_key,
                     struct http_header out[FORWARDED_HEADERS_MAX])
{
    struct api_call call = { .x = x };
    snprintf(call.made_key, sizeof(call.made_key), "%s", made_key);
    size_t count = forwarded_headers_choose(&call, out);
    if (count && *made_key)
        assert_true(slice_is(out[count - 1].value, made_key));
    return count;
}

static void a_request_loses_headers_of_its_connection(void **state)
{
    static const struct http_header headers[] = {
        { SLICE("Host"), SLICE("a") },
        { SLICE("TE"), SLICE("trailers") },
        { SLICE("X-Forwarded-For"), SLICE("192.0.2.1") },
        { SLICE("Transfer-Encoding"), SLICE("chunked") },
        { SLICE("Upgrade"), SLICE("websocket") },
        { SLICE("Connection"), SLICE("upgrade") },
        { SLICE("X-Trigger-Request-Idempotency-Key"), SLICE("") },
        { SLICE("tea"), SLICE("b") },
    };
    struct http_header out[FORWARDED_HEADERS_MAX];
    struct exchange x = { .headers = headers, .header_count = 8 };
    (void)state;
    assert_int_equal(choose(&x, "", out), 3); /* host, the key, tea */
    assert_true(slice_is(out[2].name, "tea"));
    assert_int_equal(choose(&x, "made", out), 3);
    assert_true(slice_is(out[1].name, "tea"));
    x.wants_upgrade = true;
    assert_int_equal(choose(&x, "", out), 5);
    assert_true(slice_is(out[4].value, "Upgrade"));
    x = (struct exchange){ .headers = headers + 7, .header_count = 1 };
    assert_int_equal(choose(&x, "", out), 2); /* HTTP/1.0 may come without a host */
    assert_true(slice_is(out[1].value, "localhost"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_about_the_fate_of_a_call_is_cut),
        cmocka_unit_test(a_response_loses_headers_of_its_connection),
        cmocka_unit_test(a_request_loses_headers_of_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
