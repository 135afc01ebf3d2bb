/* socket_packet: the packets that either side of a Socket.IO connection may send. */
#include "net/socket_packet.h"
#include "tests/support/world/unit.h"

static const struct {
    const char *text;
    enum socket_packet_kind kind;
    const char *space, *name, *body;
} cases[] = {
    { "0{\"sid\":\"x\"}", SOCKET_OPEN, "", "", "" },
    { "1", SOCKET_CLOSE, "", "", "" },
    { "2", SOCKET_PING, "", "", "" },
    { "3probe", SOCKET_PONG, "", "", "" },
    { "5", SOCKET_IGNORED, "", "", "" },
    { "6", SOCKET_IGNORED, "", "", "" },
    { "40/workload,", SOCKET_CONNECT, "/workload", "", "" },
    { "40/worker,{\"sid\":\"x\"}", SOCKET_CONNECT, "/worker", "", "" },
    { "40", SOCKET_CONNECT, "/", "", "" },
    { "40{\"token\":\"x\"}", SOCKET_CONNECT, "/", "", "" },
    { "40/dev-worker", SOCKET_CONNECT, "/dev-worker", "", "" },
    { "40/dev-worker?a=1,{}", SOCKET_CONNECT, "/dev-worker", "", "" },
    { "41/worker,", SOCKET_DISCONNECT, "/worker", "", "" },
    { "44/worker,{\"message\":\"no\"}", SOCKET_REFUSED, "/worker", "", "" },
    { "43/w,12[]", SOCKET_IGNORED, "/w", "", "" },
    { "42/workload,7[\"run:start\",{\"version\":\"1\",\"run\":{\"friendlyId\":\"run_a\"}}]",
      SOCKET_EVENT, "/workload", "run:start",
      "{\"version\":\"1\",\"run\":{\"friendlyId\":\"run_a\"}}" },
    { "42[\"x\"]", SOCKET_EVENT, "/", "x", "" },
    { "42[\"x\",[1]]", SOCKET_EVENT, "/", "x", "[1]" },
    { "42[\"x\",{},2]", SOCKET_EVENT, "/", "x", "{}" },
    { "42[\"\\u0078\",null]", SOCKET_EVENT, "/", "\\u0078", "null" },
};

static void every_packet_type_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct socket_packet packet;
        assert_int_equal(socket_packet_read(slice_of(cases[i].text), &packet), OK);
        assert_int_equal(packet.kind, cases[i].kind);
        assert_true(slice_is(packet.space, cases[i].space));
        assert_true(slice_is(packet.name, cases[i].name));
        assert_true(slice_is(packet.body, cases[i].body));
    }
}

static void ping_keeps_its_payload_for_the_pong(void **state)
{
    struct socket_packet packet;
    struct buf out = { 0 };
    (void)state;
    assert_int_equal(socket_packet_read(SLICE("2probe"), &packet), OK);
    assert_true(slice_is(packet.data, "probe"));
    socket_packet_add_pong(&out, packet.data);
    assert_true(slice_is(buf_slice(&out), "3probe"));
    buf_finish(&out);
}

static void packets_of_server_and_client_are_distinguished(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct socket_packet packet;
        assert_int_equal(socket_packet_read(slice_of(cases[i].text), &packet), OK);
        assert_int_equal(socket_packet_is_servers(&packet),
                         cases[i].kind == SOCKET_OPEN || cases[i].kind == SOCKET_REFUSED);
    }
}

static void invalid_packets_are_rejected(void **state)
{
    static const char *const wrong[] = {
        "",
        "7",
        "x",
        "4",
        "451-[\"a\"]",
        "46/w,1[]",
        "42",
        "42/w,",
        "42/w,{}",
        "42[]",
        "42/w,[]",
        "42/w,[1]",
        "42/w,[\"a\"",
        "42/w,[\"a\"]x",
        "42[\"a\"]x",
        "40/w,{",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct socket_packet packet;
        assert_int_equal(socket_packet_read(slice_of(wrong[i]), &packet), ERR_INVALID);
    }
}

static void written_packets_are_read_again(void **state)
{
    struct socket_packet packet;
    struct buf out = { 0 };
    (void)state;
    socket_packet_begin_event(&out, "/worker", "run:notify");
    buf_add_text(&out, "{\"run\":1}");
    socket_packet_end_event(&out);
    assert_true(slice_is(buf_slice(&out), "42/worker,[\"run:notify\",{\"run\":1}]"));
    assert_int_equal(socket_packet_read(buf_slice(&out), &packet), OK);
    assert_true(slice_is(packet.name, "run:notify") &&
                slice_is(packet.body, "{\"run\":1}"));
    buf_clear(&out);
    socket_packet_add_open(&out, 25000, 20000, 1000);
    assert_int_equal(socket_packet_read(buf_slice(&out), &packet), OK);
    assert_int_equal(packet.kind, SOCKET_OPEN);
    assert_non_null(memmem(out.ptr, out.len,
                           "\"pingInterval\":25000,\"pingTimeout\":20000,"
                           "\"maxPayload\":1000}",
                           59));
    buf_clear(&out);
    socket_packet_add_granted(&out, "/workload");
    assert_int_equal(socket_packet_read(buf_slice(&out), &packet), OK);
    assert_int_equal(packet.kind, SOCKET_CONNECT);
    buf_clear(&out);
    socket_packet_add_refused(&out, SLICE("/w"), "no \"such\"");
    assert_true(slice_is(buf_slice(&out), "44/w,{\"message\":\"no \\\"such\\\"\"}"));
    buf_clear(&out);
    socket_packet_add_refused(&out, SLICE("/"), "no");
    assert_true(slice_is(buf_slice(&out), "44{\"message\":\"no\"}"));
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_packet_type_is_read),
        cmocka_unit_test(ping_keeps_its_payload_for_the_pong),
        cmocka_unit_test(packets_of_server_and_client_are_distinguished),
        cmocka_unit_test(invalid_packets_are_rejected),
        cmocka_unit_test(written_packets_are_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
