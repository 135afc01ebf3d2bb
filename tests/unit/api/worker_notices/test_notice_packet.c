/* notice_packet: what a worker may say on its notification socket. */
#include "api/worker_notices/notice_packet.h"
#include "tests/support/world/unit.h"

static const struct {
    const char *text;
    enum notice_packet_kind kind;
    const char *space;
    const char *ids; /* joined by spaces */
} cases[] = {
    { "1", NOTICE_CLOSE, "", "" },
    { "2", NOTICE_PING, "", "" },
    { "3probe", NOTICE_PONG, "", "" },
    { "5", NOTICE_IGNORED, "", "" },
    { "6", NOTICE_IGNORED, "", "" },
    { "40", NOTICE_CONNECT, "/", "" },
    { "40{\"token\":\"x\"}", NOTICE_CONNECT, "/", "" },
    { "40/dev-worker", NOTICE_CONNECT, "/dev-worker", "" },
    { "40/dev-worker,", NOTICE_CONNECT, "/dev-worker", "" },
    { "40/dev-worker?a=1,{}", NOTICE_CONNECT, "/dev-worker", "" },
    { "41/worker,", NOTICE_DISCONNECT, "/worker", "" },
    { "43/w,12[]", NOTICE_IGNORED, "/w", "" },
    { "42/w,[\"run:subscribe\",{\"version\":\"1\",\"runFriendlyIds\":[\"a\",\"b\"]}]",
      NOTICE_SUBSCRIBE, "/w", "a b " },
    { "42/w,7[\"run:unsubscribe\",{\"runFriendlyIds\":[\"run_a\"]}]", NOTICE_UNSUBSCRIBE,
      "/w", "run_a " },
    { "42[\"run:subscribe\",{\"runFriendlyIds\":[1,null,\"\",[\"x\"],\"a\\u0062\",\"c\"]}]",
      NOTICE_SUBSCRIBE, "/", "c " },
    { "42[\"run:subscribe\",{\"runFriendlyIds\":[]}]", NOTICE_SUBSCRIBE, "/", "" },
    { "42[\"run:subscribe\",{\"runFriendlyIds\":\"run_a\"}]", NOTICE_IGNORED, "/", "" },
    { "42[\"run:subscribe\",[\"run_a\"]]", NOTICE_IGNORED, "/", "" },
    { "42[\"run:subscribe\"]", NOTICE_IGNORED, "/", "" },
    { "42[\"run:sing\",{\"runFriendlyIds\":[\"run_a\"]}]", NOTICE_IGNORED, "/", "" },
};

static void every_packet_is_read_as_what_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct notice_packet packet;
        struct buf ids = { 0 };
        struct slice id;
        assert_int_equal(notice_packet_read(slice_of(cases[i].text), &packet), OK);
        assert_int_equal(packet.kind, cases[i].kind);
        assert_true(slice_is(packet.space, cases[i].space));
        while (notice_packet_next(&packet, &id)) {
            buf_add(&ids, id);
            buf_add_char(&ids, ' ');
        }
        assert_true(slice_is(buf_slice(&ids), cases[i].ids));
        buf_finish(&ids);
    }
}

static void a_ping_keeps_what_its_pong_repeats(void **state)
{
    struct notice_packet packet;
    (void)state;
    assert_int_equal(notice_packet_read(SLICE("2probe"), &packet), OK);
    assert_true(slice_is(packet.data, "probe"));
}

static void what_no_client_says_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",         "0{}",         "7",           "x",
        "4",        "44/w,{}",     "451-[\"a\"]", "46/w,1[]",
        "42",       "42/w,",       "42/w,{}",     "42/w,[]",
        "42/w,[1]", "42/w,[\"a\"", "40/w,{",      "42/w,[\"a\"]x",
    };
    struct notice_packet packet;
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(notice_packet_read(slice_of(wrong[i]), &packet), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_packet_is_read_as_what_it_is),
        cmocka_unit_test(a_ping_keeps_what_its_pong_repeats),
        cmocka_unit_test(what_no_client_says_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
