/* How a client's WebSocket ends, and its limits in time and memory. */
#include "tests/support/world/unit.h"

#include "tests/support/world/certificates.h"
#include "tests/support/world/websocket_scene.h"

static void client_closes_the_connection(void **state)
{
    (void)state;
    play_connect((struct websocket_options){ 0 });
    websocket_send(ws, SLICE("last"), false);
    websocket_close(ws, 1000, "bye");
    websocket_close(ws, 1001, "again");
    assert_int_equal(websocket_send(ws, SLICE("late"), false), ERR_CONFLICT);
    play_expect_said("T(last)X1000(bye)");
    play_say(TEXT, "unheard");
    play_say(CLOSE, "\x03\xe8");
    far_close(&far);
    far.fd = -1;
    play_expect_end(OK, "");
    assert_int_equal(seen.code, 1000);
    assert_int_equal(seen.heard.len, 0);
}

static void server_closes_the_connection(void **state)
{
    (void)state;
    play_connect((struct websocket_options){ 0 });
    play_say(TEXT, "last");
    play_say(CLOSE, "\x0f\xa1going");
    play_expect_said("X4001()");
    play_say(TEXT, "unheard");
    far_close(&far);
    far.fd = -1;
    play_expect_end(OK, "");
    assert_int_equal(seen.code, 4001);
    assert_string_equal(seen.reason, "going");
    play_expect_heard("T(last)");
}

static void connection_that_ends_without_close_is_lost(void **state)
{
    (void)state;
    play_connect((struct websocket_options){ 0 });
    far_close(&far);
    far.fd = -1;
    play_expect_end(ERR_LOST, "without a closing handshake");
    memset(&seen, 0, sizeof(seen));
    play_connect((struct websocket_options){ 0 });
    far_break(&far);
    far.fd = -1;
    play_expect_end(ERR_LOST, "lost");
}

static void silent_server_is_pinged_and_then_closed(void **state)
{
    (void)state;
    play_connect((struct websocket_options){ .ping_ms = 10, .silence_ms = 400 });
    play_expect_said("P()");
    play_say(PONG, "");
    play_expect_said("P()P()");
    play_expect_end(ERR_NO_ANSWER, "sent nothing in time");
}

static void handshake_with_a_slow_server_times_out(void **state)
{
    (void)state;
    play_begin((struct websocket_options){ .handshake_ms = 300 });
    far_accept(&world, &far);
    play_expect_end(ERR_NO_ANSWER, "timed out while waiting");
}

static void unsent_bytes_are_limited(void **state)
{
    enum { LEN = 1 << 20 };
    struct bytes *message = bytes_create_empty(LEN);
    unsigned sent = 0;
    (void)state;
    memset(message->data, '-', LEN);
    play_connect((struct websocket_options){ .unsent_max = 2 * LEN });
    while (websocket_send(ws, bytes_slice(message), false) == OK)
        assert_true(++sent < 100);
    assert_int_equal(websocket_send(ws, bytes_slice(message), false), ERR_BUSY);
    assert_true(websocket_unsent(ws) <= 2 * LEN);
    while (websocket_unsent(ws)) {
        far_read(&far);
        client_world_turn(&world);
    }
    assert_int_equal(websocket_send(ws, SLICE("end"), false), OK);
    struct buf said = { 0 };
    client_world_turn(&world);
    far_read(&far);
    play_print(&said);
    assert_int_equal(said.len, sent * (LEN + 3) + 6); /* each T(…), and T(end) */
    buf_finish(&said);
    bytes_unref(message);
}

/* Uses up the turn's time: messages that arrived after this one are read in later turns. */
static void be_busy(void)
{
    seen.late += !loop_time_left(world.loop);
    while (loop_time_left(world.loop))
        ;
}

static void many_messages_at_once_are_read_over_several_turns(void **state)
{
    struct buf all = { 0 }, expected = { 0 };
    (void)state;
    play_connect((struct websocket_options){ 0 });
    seen.on_message = be_busy;
    for (int i = 0; i < 50; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", i);
        play_add_frame(&all, TEXT, slice_of(text));
        buf_print(&expected, "T(%d)", i);
    }
    buf_add_char(&expected, 0);
    far_send(&world, &far, buf_slice(&all));
    play_expect_heard(expected.ptr);
    assert_true(seen.late < 25); /* all but one, if they were read in one turn */
    buf_finish(&all);
    buf_finish(&expected);
}

static void cut_itself(void)
{
    websocket_cut(ws);
}

static void message_callback_may_cut_the_connection(void **state)
{
    struct buf all = { 0 };
    (void)state;
    play_connect((struct websocket_options){ 0 });
    seen.on_message = cut_itself;
    play_add_frame(&all, TEXT, SLICE("1"));
    play_add_frame(&all, TEXT, SLICE("2"));
    far_send(&world, &far, buf_slice(&all));
    play_expect_end(ERR_CANCELED, "cut");
    play_expect_heard("T(1)");
    buf_finish(&all);
}

static void connection_can_be_cut_in_each_state(void **state)
{
    (void)state;
    play_begin((struct websocket_options){ 0 }); /* while the name is resolved */
    websocket_cut(ws);
    play_expect_end(ERR_CANCELED, "");
    memset(&seen, 0, sizeof(seen));
    play_begin((struct websocket_options){ 0 }); /* before it is accepted */
    far_accept(&world, &far);
    far_await(&world, &far, "\r\n\r\n");
    websocket_close(ws, 1000, "");
    play_expect_end(ERR_CANCELED, "");
    far_close(&far);
    memset(&seen, 0, sizeof(seen));
    play_connect((struct websocket_options){ 0 }); /* while it closes */
    websocket_close(ws, 1000, "");
    websocket_cut(ws);
    websocket_cut(ws);
    play_expect_end(ERR_CANCELED, "");
}

static void refused_connection_is_unreachable(void **state)
{
    (void)state;
    world.url.port = 1;
    play_begin((struct websocket_options){ 0 });
    play_expect_end(ERR_UNREACHABLE, "127.0.0.1");
}

static void malformed_options_are_rejected(void **state)
{
    const struct http_header header = { SLICE("a"), SLICE("b\r\nc: d") };
    struct websocket_options options = { .url = &world.url, .target = SLICE("/") };
    struct failure why;
    (void)state;
    seen.closed = 1;
    options.headers = &header;
    options.header_count = 1;
    assert_int_equal(websocket_open(world.loop, &options, &play_ops, &seen, &ws, &why),
                     ERR_INVALID);
    options.header_count = 0;
    options.protocol = "a\r\nb";
    assert_int_equal(websocket_open(world.loop, &options, &play_ops, &seen, &ws, &why),
                     ERR_INVALID);
    options.protocol = NULL;
    world.url.secure = true;
    assert_int_equal(websocket_open(world.loop, &options, &play_ops, &seen, &ws, &why),
                     ERR_INVALID);
    assert_int_equal(seen.opened, 0);
}

static void websocket_works_over_tls(void **state)
{
    struct certificate authority, server;
    struct trust *trust;
    struct failure why;
    char name[] = "/tmp/test_websocket.XXXXXX";
    (void)state;
    certificate_init(&authority, NULL, NULL, -3600, 3600);
    certificate_init(&server, &authority, "DNS:localhost", -3600, 3600);
    certificate_write(&authority, name);
    assert_int_equal(trust_create(name, &trust, &why), OK);
    remove(name);
    client_world_secure(&world, &server, "localhost");
    play_connect((struct websocket_options){ .trust = trust });
    assert_int_equal(websocket_send(ws, SLICE("hello"), false), OK);
    play_expect_said("T(hello)");
    play_say(TEXT, "you");
    play_expect_heard("T(you)");
    websocket_cut(ws);
    play_expect_end(ERR_CANCELED, "");
    trust_destroy(trust);
    certificate_finish(&authority);
    certificate_finish(&server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, play_open, play_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(client_closes_the_connection),
        TEST(server_closes_the_connection),
        TEST(connection_that_ends_without_close_is_lost),
        TEST(silent_server_is_pinged_and_then_closed),
        TEST(handshake_with_a_slow_server_times_out),
        TEST(unsent_bytes_are_limited),
        TEST(many_messages_at_once_are_read_over_several_turns),
        TEST(message_callback_may_cut_the_connection),
        TEST(connection_can_be_cut_in_each_state),
        TEST(refused_connection_is_unreachable),
        TEST(malformed_options_are_rejected),
        TEST(websocket_works_over_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
