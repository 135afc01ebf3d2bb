/* URLs from operators: how they are read, and why a bad one is rejected. */
#include "tests/support/world/unit.h"

#include "net/client/url.h"

static const struct {
    const char *text, *host;
    unsigned port;
    const char *prefix, *authority;
    bool secure;
} good[] = {
    { "http://a", "a", 80, "", "a", false },
    { "https://Gateway.Example", "gateway.example", 443, "", "gateway.example", true },
    { "HTTPS://a:8443/", "a", 8443, "", "a:8443", true },
    { "ws://a:80", "a", 80, "", "a", false },
    { "wss://a/b/c/", "a", 443, "/b/c", "a", true },
    { "http://127.0.0.1:3030", "127.0.0.1", 3030, "", "127.0.0.1:3030", false },
    { "http://[::1]:3030/x%20y", "::1", 3030, "/x%20y", "[::1]:3030", false },
    { "http://[0:0:0:0:0:0:0:1]", "::1", 80, "", "[::1]", false },
    { "http://my_service.a-b.internal", "my_service.a-b.internal", 80, "",
      "my_service.a-b.internal", false },
    { "http://1a.b2c", "1a.b2c", 80, "", "1a.b2c", false },
};

/* A part of the reason. */
static const struct {
    struct slice text;
    const char *reason;
} bad[] = {
    { SLICE(""), "begin with" },
    { SLICE("a"), "begin with" },
    { SLICE("ftp://a"), "begin with" },
    { SLICE("http:/a"), "begin with" },
    { SLICE("http://"), "no host" },
    { SLICE("http://:80"), "no host" },
    { SLICE("http:///a"), "no host" },
    { SLICE("http://user:secret@a"), "password" },
    { SLICE("http://a:0"), "port" },
    { SLICE("http://a:65536"), "port" },
    { SLICE("http://a:"), "port" },
    { SLICE("http://a:8a"), "port" },
    { SLICE("http://a:-1"), "port" },
    { SLICE("http://a:80:80"), "port" },
    { SLICE("http://a..b"), "host" },
    { SLICE("http://a."), "host" },
    { SLICE("http://-a"), "host" },
    { SLICE("http://a b"), "host" },
    { SLICE("http://a%41"), "host" },
    { SLICE("http://\xc3\xa9"), "host" },
    { SLICE("http://a\0b"), "must be escaped" },
    { SLICE("http://1.2.3"), "IPv4" },
    { SLICE("http://1.2.3.256"), "IPv4" },
    { SLICE("http://0x7f.1"), "IPv4" },
    { SLICE("http://2130706433"), "IPv4" },
    { SLICE("http://::1"), "host" },
    { SLICE("http://[::1"), "host" },
    { SLICE("http://[::1]a"), "between" },
    { SLICE("http://[::1%25eth0]"), "IPv6" },
    { SLICE("http://[]"), "IPv6" },
    { SLICE("http://[127.0.0.1]"), "IPv6" },
    { SLICE("http://a?b"), "query" },
    { SLICE("http://a/b?c"), "query" },
    { SLICE("http://a/#b"), "query" },
    { SLICE("http://a/b c"), "escaped" },
    { SLICE("http://a/%4"), "escaped" },
    { SLICE("http://a\\b"), "escaped" },
    { SLICE("http://a/b\r\nc"), "escaped" },
    { SLICE("http://a/../b"), "contains" },
    { SLICE("http://a/./b"), "contains" },
};

static void url_is_split_into_its_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct url url;
        struct failure why;
        struct buf authority = { 0 };
        if (url_read(slice_of(good[i].text), &url, &why))
            fail_msg("%s: %s", good[i].text, why.text);
        url_add_authority(&authority, &url);
        assert_string_equal(url.host, good[i].host);
        assert_int_equal(url.port, good[i].port);
        assert_string_equal(url.prefix, good[i].prefix);
        assert_true(slice_is(buf_slice(&authority), good[i].authority));
        assert_int_equal(url.secure, good[i].secure);
        buf_finish(&authority);
    }
}

static void invalid_url_is_rejected_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct url url = { .port = 7 };
        struct failure why = { 0 };
        if (url_read(bad[i].text, &url, &why) != ERR_INVALID ||
            !strstr(why.text, bad[i].reason))
            fail_msg("%.*s: %s", SLICE_ARG(bad[i].text), why.text);
        assert_int_equal(url.port, 7);
        assert_null(strstr(why.text, "secret"));
    }
}

static void too_long_url_is_rejected(void **state)
{
    char text[1000];
    struct url url;
    struct failure why;
    (void)state;
    for (int dots = 0; dots < 2; dots++) {
        memcpy(text, "http://", 7);
        for (size_t i = 7; i < 7 + 300; i++)
            text[i] = dots && i % 10 == 0 ? '.' : 'a';
        assert_int_equal(url_read((struct slice){ text, 307 }, &url, &why), ERR_INVALID);
    }
    memset(text, 'a', sizeof(text));
    memcpy(text, "http://a/", 9);
    assert_int_equal(url_read((struct slice){ text, 9 + 254 }, &url, &why), OK);
    assert_int_equal(url_read((struct slice){ text, 9 + 255 }, &url, &why), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(url_is_split_into_its_parts),
        cmocka_unit_test(invalid_url_is_rejected_with_a_reason),
        cmocka_unit_test(too_long_url_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
