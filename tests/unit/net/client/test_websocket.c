/* The client's side of a WebSocket over real sockets; the test plays the server. It covers
 * the handshake, messages, and everything that a server must not send. */
#include "tests/support/world/unit.h"

#include "tests/support/world/websocket_scene.h"

static void messages_go_both_ways(void **state)
{
    const struct http_header header = { SLICE("authorization"), SLICE("Bearer tr") };
    (void)state;
    play_begin((struct websocket_options){ .headers = &header,
                                           .header_count = 1,
                                           .protocol = "chat",
                                           .target = SLICE("/socket.io/?EIO=4") });
    play_accept("Sec-WebSocket-Protocol: chat\r\n");
    client_world_until(&world, play_has_opened, NULL);
    assert_int_equal(seen.opened, 1);
    assert_int_equal(websocket_send(ws, SLICE("hello"), false), OK);
    assert_int_equal(websocket_send(ws, SLICE("\1\2"), true), OK);
    assert_int_equal(websocket_send(ws, SLICE(""), false), OK);
    play_expect_said("T(hello)B(\1\2)T()");
    play_say(TEXT, "you");
    play_say(BINARY, "\xff");
    play_say(TEXT, "");
    play_expect_heard("T(you)B(\xff)T()");
}

static void request_contains_every_handshake_header(void **state)
{
    char accept[WS_ACCEPT_LEN + 1];
    const struct http_header header = { SLICE("authorization"), SLICE("Bearer tr") };
    (void)state;
    play_begin((struct websocket_options){ .headers = &header, .header_count = 1 });
    assert_int_equal(websocket_send(ws, SLICE("early"), false), ERR_CONFLICT);
    play_read_key(accept);
    assert_true(far_has(&far, "GET / HTTP/1.1\r\nhost: 127.0.0.1:"));
    assert_true(far_has(&far, "\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"));
    assert_true(far_has(&far, "\r\nsec-websocket-version: 13\r\n"));
    assert_true(far_has(&far, "\r\nauthorization: Bearer tr\r\n"));
    assert_false(far_has(&far, "content-length"));
}

/* %s stands for the right accept value for the key. */
static const struct {
    const char *answer;
    int status;
    const char *why;
} refusals[] = {
    { "HTTP/1.1 401 No\r\ncontent-length: 2\r\n\r\nno", 401, "status 401" },
    { "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 200, "status 200" },
    { "HTTP/1.1 101 Go\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: %s\r\n\r\n",
      0, "protocol other than WebSocket" },
    { "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n\r\n", 0,
      "protocol other than WebSocket" },
    { "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 0,
      "Sec-WebSocket-Accept" },
    { "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
      0, "Sec-WebSocket-Accept" },
    { "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Accept: a\r\n\r\n",
      0, "Sec-WebSocket-Accept" },
    { "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
      0, "extension" },
    { "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
      0, "protocol" },
    { "SSH-2.0-OpenSSH\r\n", 0, "not HTTP" },
};

static void invalid_handshake_response_is_rejected(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        char accept[WS_ACCEPT_LEN + 1], answer[400];
        const char *place = strstr(refusals[i].answer, "%s");
        int before = (int)(place ? place - refusals[i].answer : 400);
        memset(&seen, 0, sizeof(seen));
        play_begin((struct websocket_options){ 0 });
        play_read_key(accept);
        snprintf(answer, sizeof(answer), "%.*s%s%s", before, refusals[i].answer,
                 place ? accept : "", place ? place + 2 : "");
        far_say(&world, &far, answer);
        play_expect_end(ERR_BAD_ANSWER, refusals[i].why);
        assert_int_equal(seen.status, refusals[i].status);
        assert_int_equal(seen.opened, 0);
        far_close(&far);
    }
}

static void frames_may_follow_the_handshake_response_at_once(void **state)
{
    char accept[WS_ACCEPT_LEN + 1];
    struct buf all = { 0 };
    (void)state;
    play_begin((struct websocket_options){ 0 });
    play_read_key(accept);
    buf_print(&all,
              "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              "Sec-WebSocket-Accept: %s\r\n\r\n",
              accept);
    play_add_frame(&all, TEXT_BEGIN, SLICE("on"));
    play_add_frame(&all, PING, SLICE("p"));
    play_add_frame(&all, GO_ON, SLICE(""));
    play_add_frame(&all, END, SLICE("e"));
    far_send(&world, &far, buf_slice(&all));
    play_expect_heard("T(one)");
    buf_clear(&far.got);
    buf_clear(&all);
    play_add_frame(&all, BINARY, SLICE("two"));
    for (size_t i = 0; i < all.len; i++)
        far_send(&world, &far, (struct slice){ all.ptr + i, 1 });
    play_expect_heard("T(one)B(two)");
    buf_finish(&all);
}

static void a_ping_is_answered(void **state)
{
    (void)state;
    play_connect((struct websocket_options){ 0 });
    play_say(PING, "are you there");
    play_expect_said("O(are you there)");
    play_say(PONG, "unasked");
    play_say(PING, "");
    play_expect_said("O(are you there)O()");
}

/* Bytes that a server must not send, and the code with which the client then closes. */
static const struct {
    const char *name;
    struct slice bytes;
    char *said;
    enum err error;
} faults[] = {
    { "masked", SLICE("\x81\x81\1\2\3\4a"), "X1002(frames of a server must not be masked)",
      ERR_BAD_ANSWER },
    { "too large", SLICE("\x81\x65"), "X1009(the message is too large)", ERR_TOO_LARGE },
    { "endless", SLICE("\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"),
      "X1009(the message is too large)", ERR_TOO_LARGE },
    { "not UTF-8", SLICE("\x81\x01\xff"), "X1007(the text is not UTF-8)", ERR_BAD_ANSWER },
    { "reserved bits",
      SLICE("\xc1\x01"
            "a"),
      "X1002(reserved bits are set without an extension)", ERR_BAD_ANSWER },
    { "a long ping", SLICE("\x89\x7e\x00\x7e"),
      "X1002(control frames hold at most 125 bytes)", ERR_BAD_ANSWER },
    { "no message to go on", SLICE("\x80\x00"), "X1002(a continuation without a message)",
      ERR_BAD_ANSWER },
    { "a wrong close", SLICE("\x88\x01\x03"), "X1002(the close code is cut off)",
      ERR_BAD_ANSWER },
};

static void forbidden_frame_of_the_server_closes_the_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        memset(&seen, 0, sizeof(seen));
        play_connect((struct websocket_options){ .message_max = 100 });
        far_send(&world, &far, faults[i].bytes);
        far_await_end(&world, &far);
        play_expect_said(faults[i].said);
        play_expect_end(faults[i].error, "");
        far_close(&far);
    }
}

static void fragments_count_towards_the_message_limit(void **state)
{
    (void)state;
    play_connect((struct websocket_options){ .message_max = 10 });
    play_say(TEXT_BEGIN, "123456");
    play_say(GO_ON, "78901");
    play_expect_end(ERR_TOO_LARGE, "too large");
}

static void too_many_fragments_close_the_connection(void **state)
{
    (void)state;
    play_connect((struct websocket_options){ .fragments_max = 3 });
    play_say(TEXT_BEGIN, "");
    play_say(GO_ON, "");
    play_say(GO_ON, "");
    play_say(GO_ON, "");
    play_expect_end(ERR_BAD_ANSWER, "fragments");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, play_open, play_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(messages_go_both_ways),
        TEST(request_contains_every_handshake_header),
        TEST(invalid_handshake_response_is_rejected),
        TEST(frames_may_follow_the_handshake_response_at_once),
        TEST(a_ping_is_answered),
        TEST(forbidden_frame_of_the_server_closes_the_connection),
        TEST(fragments_count_towards_the_message_limit),
        TEST(too_many_fragments_close_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
