/* socket_packet: what either side of a Socket.IO connection may say. */
#include "supervisor/runners/socket_packet.h"
#include "tests/support/world/unit.h"

static const struct {
    const char *text;
    enum socket_packet_kind kind;
    const char *space, *name, *run;
} cases[] = {
    { "0{\"sid\":\"x\"}", SOCKET_OPEN, "", "", "" },
    { "1", SOCKET_CLOSE, "", "", "" },
    { "2", SOCKET_PING, "", "", "" },
    { "3probe", SOCKET_PONG, "", "", "" },
    { "5", SOCKET_IGNORED, "", "", "" },
    { "40/workload,", SOCKET_CONNECT, "/workload", "", "" },
    { "40/worker,{\"sid\":\"x\"}", SOCKET_CONNECT, "/worker", "", "" },
    { "40", SOCKET_CONNECT, "/", "", "" },
    { "41/worker,", SOCKET_DISCONNECT, "/worker", "", "" },
    { "44/worker,{\"message\":\"no\"}", SOCKET_REFUSED, "/worker", "", "" },
    { "43/w,12[]", SOCKET_IGNORED, "/w", "", "" },
    { "42/workload,7[\"run:start\",{\"version\":\"1\",\"run\":{\"friendlyId\":\"run_a\"},"
      "\"snapshot\":{\"friendlyId\":\"s\"}}]",
      SOCKET_EVENT, "/workload", "run:start", "run_a" },
    { "42[\"x\"]", SOCKET_EVENT, "/", "x", "" },
    { "42[\"x\",[1]]", SOCKET_EVENT, "/", "x", "" },
    { "42[\"x\",{\"run\":\"run_a\"}]", SOCKET_EVENT, "/", "x", "" },
    { "42[\"x\",{\"run\":{\"friendlyId\":\"a\\u0062\"}}]", SOCKET_EVENT, "/", "x", "" },
};

static void every_packet_is_read_as_what_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct socket_packet packet;
        assert_int_equal(socket_packet_read(slice_of(cases[i].text), &packet), OK);
        assert_int_equal(packet.kind, cases[i].kind);
        assert_true(slice_is(packet.space, cases[i].space));
        assert_true(slice_is(packet.name, cases[i].name));
        assert_true(slice_is(packet.run, cases[i].run));
    }
}

static void what_nobody_says_is_refused(void **state)
{
    static const char *const wrong[] = { "",        "7",         "4",    "451-[\"a\"]",
                                         "42/w,{}", "42",        "42[]", "42/w,[1]",
                                         "40/w,{",  "42[\"a\"]x" };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct socket_packet packet;
        assert_int_equal(socket_packet_read(slice_of(wrong[i]), &packet), ERR_INVALID);
    }
}

static void what_is_written_is_read_again(void **state)
{
    struct socket_packet packet;
    struct buf out = { 0 };
    (void)state;
    socket_packet_add_notice(&out, "/workload", SLICE("run_a"));
    assert_int_equal(socket_packet_read(buf_slice(&out), &packet), OK);
    assert_true(slice_is(packet.name, "run:notify") && slice_is(packet.run, "run_a"));
    buf_clear(&out);
    socket_packet_add_wish(&out, "/worker", "run:subscribe", SLICE("run_a"));
    assert_true(slice_is(buf_slice(&out), "42/worker,[\"run:subscribe\",{\"version\":\"1\","
                                          "\"runFriendlyIds\":[\"run_a\"]}]"));
    buf_clear(&out);
    socket_packet_add_open(&out, 25000, 20000);
    assert_int_equal(socket_packet_read(buf_slice(&out), &packet), OK);
    assert_int_equal(packet.kind, SOCKET_OPEN);
    buf_clear(&out);
    socket_packet_add_granted(&out, "/workload");
    assert_int_equal(socket_packet_read(buf_slice(&out), &packet), OK);
    assert_int_equal(packet.kind, SOCKET_CONNECT);
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_packet_is_read_as_what_it_is),
        cmocka_unit_test(what_nobody_says_is_refused),
        cmocka_unit_test(what_is_written_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
