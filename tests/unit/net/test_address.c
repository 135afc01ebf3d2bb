/* Addresses, ranges, X-Forwarded-For and the PROXY protocol: which address the client has. */
#include "tests/support/world/unit.h"

#include "net/proxy_header.h"

#define SLICE_INIT(literal)                                                                \
    {                                                                                      \
        "" literal, sizeof(literal) - 1                                                    \
    }

static struct address ip(const char *text)
{
    struct address address = { 0 };
    if (strcmp(text, "unix") != 0)
        assert_true(address_read(slice_of(text), &address));
    return address;
}

static void an_address_may_have_a_port(void **state)
{
    static const char *const cases[][2] = {
        { "192.0.2.1", "192.0.2.1" },
        { "192.0.2.1:80", "192.0.2.1" },
        { "2001:db8::1", "2001:db8::1" },
        { "[2001:db8::1]", "2001:db8::1" },
        { "[2001:db8::1]:80", "2001:db8::1" },
        { "::ffff:192.0.2.1", "192.0.2.1" },
        { "::", "::" },
        { "0.0.0.0:65535", "0.0.0.0" },
    };
    static const char *const wrong[] = {
        "",
        "unknown",
        "_hidden",
        "192.0.2.1:",
        "192.0.2.1:65536",
        "192.0.2.1:x",
        "192.0.2",
        "[::1",
        "[::1]80",
        "[192.0.2.1]",
        "::1]",
        "1:2:3",
        "[]",
        "[::1]:",
        "[::1]:x",
        "192.0.2.1 ",
        "fe80::1%lo",
        ":80",
    };
    char text[ADDRESS_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct address address = ip(cases[i][0]);
        address_print(&address, text);
        assert_string_equal(text, cases[i][1]);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct address address;
        if (address_read(slice_of(wrong[i]), &address))
            fail_msg("'%s' was read", wrong[i]);
    }
}

static void range_contains_addresses_with_its_prefix(void **state)
{
    static const struct {
        const char *ranges, *address;
        bool held;
    } cases[] = {
        { "10.0.0.0/8", "10.255.0.1", true },
        { "10.0.0.0/8", "11.0.0.0", false },
        { "10.0.0.0/8", "::a00:1", false },
        { "10.0.0.0/8", "::ffff:10.0.0.1", true },
        { "192.0.2.128/25", "192.0.2.127", false },
        { "192.0.2.128/25", "192.0.2.128", true },
        { "192.0.2.7/31", "192.0.2.6", true },
        { "192.0.2.7", "192.0.2.6", false },
        { "0.0.0.0/0", "203.0.113.9", true },
        { "0.0.0.0/0", "2001:db8::1", false },
        { "::/0", "203.0.113.9", true },
        { "2001:db8::/33", "2001:db8:7fff::", true },
        { "2001:db8::/33", "2001:db8:8000::", false },
        { "::1/128", "::1", true },
        { "10.0.0.0/8, 192.0.2.1\tunix", "192.0.2.1", true },
        { "10.0.0.0/8,unix", "unix", true },
        { "0.0.0.0/0 ::/0", "unix", false },
        { "", "127.0.0.1", false },
        { " , ", "127.0.0.1", false },
    };
    static const char *const wrong[][2] = {
        { "10.0.0.0/33", "10.0.0.0/33" },
        { "::/129", "::/129" },
        { "10.0.0.0/", "10.0.0.0/" },
        { "10.0.0.0/-1", "10.0.0.0/-1" },
        { "10.0.0.1, example.com", "example.com" },
        { "10.0.0.0:80", "10.0.0.0:80" },
        { "10/8", "10/8" },
        { "[::1]", "[::1]" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ranges ranges;
        struct slice bad;
        struct address address = ip(cases[i].address);
        assert_true(ranges_read(slice_of(cases[i].ranges), &ranges, &bad));
        if (ranges_hold(&ranges, &address) != cases[i].held)
            fail_msg("%s in %s", cases[i].address, cases[i].ranges);
        ranges_finish(&ranges);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ranges ranges;
        struct slice bad;
        assert_false(ranges_read(slice_of(wrong[i][0]), &ranges, &bad));
        assert_true(slice_is(bad, wrong[i][1]));
    }
}

static void x_forwarded_for_is_used_as_far_as_senders_are_trusted(void **state)
{
    static const struct {
        const char *sender, *header, *client;
        bool further;
    } cases[] = {
        { "10.0.0.1", "203.0.113.7", "203.0.113.7", false },
        { "10.0.0.1", "198.51.100.1, 203.0.113.7", "203.0.113.7", false },
        { "10.0.0.1", "198.51.100.1,203.0.113.7:55,10.0.0.9", "203.0.113.7", false },
        { "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3", true },
        { "203.0.113.9", "198.51.100.1", "203.0.113.9", false },
        { "10.0.0.1", "203.0.113.7, unknown", "10.0.0.1", false },
        { "10.0.0.1", "unknown, 10.0.0.2", "10.0.0.2", false },
        { "10.0.0.1", "203.0.113.7,", "10.0.0.1", false },
        { "10.0.0.1", "", "10.0.0.1", true },
        { "unix", " [2001:db8::5]:9 ", "2001:db8::5", false },
    };
    struct ranges trusted;
    struct slice bad;
    (void)state;
    assert_true(ranges_read(SLICE("10.0.0.0/8 unix"), &trusted, &bad));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[ADDRESS_TEXT];
        struct address client = ip(cases[i].sender);
        bool further = address_follow(slice_of(cases[i].header), &trusted, &client);
        address_print(&client, text);
        assert_string_equal(text, cases[i].client);
        assert_int_equal(further, cases[i].further);
    }
    ranges_finish(&trusted);
}

static void loopback_is_known_in_both_families(void **state)
{
    static const char *const near[] = { "127.0.0.1", "127.9.9.9", "::1",
                                        "::ffff:127.0.0.1" };
    static const char *const far[] = { "128.0.0.1", "::2", "::", "::ffff:126.0.0.1" };
    struct address local = { 0 };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct address one = ip(near[i]), other = ip(far[i]);
        assert_true(address_is_loopback(&one));
        assert_false(address_is_loopback(&other));
    }
    assert_false(address_is_loopback(&local)); /* a UNIX socket has no IP address */
}

/* ---- the PROXY protocol ---- */

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define IP4 "\xC6\x33\x64\x01\x0A\x00\x00\x01\x12\x34\x00\x50"
#define IP6                                                                                \
    "\x20\x01\x0D\xB8\0\0\0\0\0\0\0\0\0\0\0\x01"                                           \
    "\x20\x01\x0D\xB8\0\0\0\0\0\0\0\0\0\0\0\x02\x12\x34\x00\x50"

static const struct {
    struct slice bytes; /* a whole header */
    const char *client; /* NULL: the header names no client */
} headers[] = {
    { SLICE_INIT(SIGNATURE "\x21\x11\x00\x0C" IP4), "198.51.100.1" },
    { SLICE_INIT(SIGNATURE "\x21\x21\x00\x24" IP6), "2001:db8::1" },
    { SLICE_INIT(SIGNATURE "\x21\x12\x00\x0C" IP4), "198.51.100.1" },
    { SLICE_INIT(SIGNATURE "\x20\x00\x00\x00"), NULL },
    { SLICE_INIT(SIGNATURE "\x20\x11\x00\x0C" IP4), NULL },
    { SLICE_INIT(SIGNATURE "\x21\x00\x00\x05hello"), NULL },
    { SLICE_INIT(SIGNATURE "\x21\x11\x00\x14" IP4 "\x01\x00\x02h2\x04\x00\x00"),
      "198.51.100.1" },
};

static void proxy_header_names_the_client(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct proxy_header header;
        char longer[256], text[ADDRESS_TEXT];
        struct slice bytes = headers[i].bytes;
        for (size_t len = 0; len < bytes.len; len++)
            assert_int_equal(proxy_header_read((struct slice){ bytes.ptr, len }, &header),
                             PROXY_MORE);
        memcpy(longer, bytes.ptr, bytes.len);
        memcpy(longer + bytes.len, "GET /", 5);
        struct slice more = { longer, bytes.len + 5 };
        assert_int_equal(proxy_header_read(more, &header), PROXY_DONE);
        assert_int_equal(header.len, bytes.len);
        assert_int_equal(header.names_client, headers[i].client != NULL);
        if (!headers[i].client)
            continue;
        address_print(&header.client, text);
        assert_string_equal(text, headers[i].client);
    }
}

static void invalid_proxy_header_is_rejected_at_the_first_wrong_byte(void **state)
{
    static const struct slice wrong[] = {
        SLICE_INIT("G"),
        SLICE_INIT("PROXY TCP4 198.51.100.1 10.0.0.1 4660 80\r\n"),
        SLICE_INIT("\r\n\r\n\0\r\nQUIT\r"),
        SLICE_INIT(SIGNATURE "\x11\x11\x00\x0C" IP4), /* version 1 */
        SLICE_INIT(SIGNATURE "\x22\x11\x00\x0C" IP4), /* unknown command */
        SLICE_INIT(SIGNATURE "\x21\x41\x00\x0C" IP4), /* unknown family */
        SLICE_INIT(SIGNATURE "\x21\x13\x00\x0C" IP4), /* unknown transport */
        SLICE_INIT(SIGNATURE "\x21\x11\x00\x0B" IP4), /* too short for its addresses */
        SLICE_INIT(SIGNATURE "\x21\x21\x00\x0C" IP4),
        SLICE_INIT(SIGNATURE "\x21\x11\x10\x00"),                /* too long */
        SLICE_INIT(SIGNATURE "\x21\x11\x00\x0E" IP4 "\x01\x00"), /* half a TLV */
        SLICE_INIT(SIGNATURE "\x21\x11\x00\x10" IP4 "\x01\x00\x02h"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct proxy_header header;
        assert_int_equal(proxy_header_read(wrong[i], &header), PROXY_BAD);
    }
}

static void host_header_is_an_address_or_an_untrusted_name(void **state)
{
    (void)state;
    assert_true(address_is_of_host(SLICE("localhost")));
    assert_true(address_is_of_host(SLICE("localhost:9464")));
    assert_true(address_is_of_host(SLICE("127.0.0.1:9464")));
    assert_true(address_is_of_host(SLICE("[::1]:9464")));
    assert_false(address_is_of_host(SLICE("")));
    assert_false(address_is_of_host((struct slice){ 0 }));
    assert_false(address_is_of_host(SLICE("localhost.example")));
    assert_false(address_is_of_host(SLICE("127.0.0.1.example:9464")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_may_have_a_port),
        cmocka_unit_test(range_contains_addresses_with_its_prefix),
        cmocka_unit_test(x_forwarded_for_is_used_as_far_as_senders_are_trusted),
        cmocka_unit_test(loopback_is_known_in_both_families),
        cmocka_unit_test(proxy_header_names_the_client),
        cmocka_unit_test(invalid_proxy_header_is_rejected_at_the_first_wrong_byte),
        cmocka_unit_test(host_header_is_an_address_or_an_untrusted_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
