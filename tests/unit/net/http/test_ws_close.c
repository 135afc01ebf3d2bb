/* How a WebSocket begins late and ends: handshakes, and what is left of a connection. */
#include "tests/support/world/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/metrics.h"
#include "net/http/server_state.h"
#include "tests/support/world/ws_scene.h"

static void references_are_released_when_the_peer_disconnects(void **state)
{
    struct ws_scene scene;
    struct peer peers[10];
    struct bytes *frame = ws_scene_big_frame(8 << 20);
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    for (int i = 0; i < 10; i++) {
        ws_peer_open(&scene.world, &peers[i], "/");
        assert_false(ws_scene_send(&scene, frame));
    }
    assert_int_equal(frame->refs, 11);
    for (int i = 0; i < 10; i++)
        peer_close(&peers[i]);
    scene.closed = 0;
    net_world_until(&scene.world, ws_scene_has_closed, &scene);
    while (frame->refs > 1)
        net_world_turn(&scene.world);
    bytes_unref(frame);
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 10);
}

/* A send finds that the peer has reset the connection, but reports it later. With a ring,
 * the data has not been sent yet at that point. */
static void lost_peer_is_reported_later(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    struct linger at_once = { .l_onoff = 1 };
    struct bytes *frame = ws_frame(SLICE("hello"), false);
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    peer_close(&peer);
    bool by_ring = scene.world.ring;
    assert_int_equal(ws_scene_send(&scene, frame), by_ring);
    assert_int_equal(ws_scene_send(&scene, frame), by_ring);
    assert_int_equal(ws_closing(scene.ws), !by_ring);
    ws_close(scene.ws, 1000, "too late");
    assert_true(ws_closing(scene.ws));
    net_world_until(&scene.world, ws_scene_has_closed, &scene);
    assert_int_equal(scene.closed, 1);
    bytes_unref(frame);
    net_world_close(&scene.world);
}

static void close_waits_for_the_peers_close_frame(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    struct bytes *frame = ws_frame(SLICE("late"), false);
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_false(ws_closing(scene.ws));
    ws_close(scene.ws, 4200, "drain");
    ws_close(scene.ws, 1000, "again");
    assert_true(ws_closing(scene.ws));
    assert_false(ws_scene_send(&scene, frame));
    ws_peer_await(&scene.world, &peer, "X4200");
    assert_true(ws_scene_ends_with(&peer,
                                   "\x88\x07\x10\x68"
                                   "drain",
                                   9));
    ws_scene_say(&scene, &peer, TEXT, "was under way");
    ws_scene_say(&scene, &peer, PING, "was under way");
    net_world_turn(&scene.world);
    assert_int_equal(scene.messages, 0);
    assert_false(peer.ended);
    ws_scene_say(&scene, &peer, CLOSE, "\x10\x68");
    peer_await_end(&scene.world, &peer);
    assert_true(ws_peer_said(&peer, "X4200"));
    peer_close(&peer);
    net_world_until(&scene.world, ws_scene_has_closed, &scene);
    bytes_unref(frame);
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 1);
}

static void close_without_an_answer_times_out(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .closing_timeout_ms = 40 });
    ws_peer_open(&scene.world, &peer, "/");
    ws_close(scene.ws, 1001, NULL);
    ws_peer_await(&scene.world, &peer, "X1001");
    net_world_until(&scene.world, ws_scene_has_closed, &scene);
    peer_await_end(&scene.world, &peer);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void long_close_reason_is_truncated(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    char reason[201];
    (void)state;
    memset(reason, 'r', sizeof(reason));
    reason[sizeof(reason) - 1] = 0;
    ws_scene_open(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    ws_close(scene.ws, 4000, reason);
    ws_peer_await(&scene.world, &peer, "X4000");
    assert_int_equal(peer.got.len, 2 + 125);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void close_it(struct ws_scene *scene, struct ws *ws)
{
    (void)scene;
    ws_close(ws, 4000, "as you like");
}

static void close_server(struct ws_scene *scene, struct ws *ws)
{
    (void)ws;
    server_close(scene->world.server, net_world_on_closed);
}

static bool world_is_closed(void *owner)
{
    return ((struct ws_scene *)owner)->world.closed;
}

static void message_handler_may_close_the_websocket(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct ws_scene scene;
        struct peer peer;
        struct buf frames = { 0 };
        ws_scene_open(&scene, (struct server_options){ 0 });
        scene.on_message = i ? close_server : close_it;
        ws_peer_open(&scene.world, &peer, "/");
        for (int n = 0; n < 3; n++)
            ws_peer_add_frame(&frames, TEXT, SLICE("a"));
        peer_send(&scene.world, &peer, buf_slice(&frames));
        if (i)
            net_world_until(&scene.world, world_is_closed, &scene);
        else
            ws_peer_await(&scene.world, &peer, "X4000");
        assert_int_equal(scene.messages, 1);
        peer_close(&peer);
        buf_finish(&frames);
        net_world_close(&scene.world);
        assert_int_equal(scene.closed, 1);
    }
}

static void idle_websocket_holds_no_message_memory(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_null(scene.ws->input);
    ws_scene_say(&scene, &peer, TEXT_BEGIN, "half");
    net_world_turn(&scene.world);
    assert_non_null(scene.ws->input);
    ws_scene_say(&scene, &peer, END, "");
    net_world_turn(&scene.world);
    assert_int_equal(scene.messages, 1);
    assert_null(scene.ws->input);
    assert_null(scene.ws->c.outbox.backlog);
    assert_null(scene.ws->c.pending);
    assert_int_equal(scene.world.server->input_count, 1);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void unfinished_message_is_freed_at_the_end(void **state)
{
    static const char *const parts[] = { "\x81", "\x81\x85\1\2", "\x81\x85\0\0\0\0hel",
                                         "\x01\x83\0\0\0\0xyz", "\x89\x83\0\0\0\0a" };
    static const size_t lens[] = { 1, 4, 9, 9, 7 };
    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct ws_scene scene;
        struct peer peer;
        ws_scene_open(&scene, (struct server_options){ 0 });
        ws_peer_open(&scene.world, &peer, "/");
        peer_send(&scene.world, &peer, (struct slice){ parts[i], lens[i] });
        net_world_turn(&scene.world);
        peer_close(&peer);
        net_world_until(&scene.world, ws_scene_has_closed, &scene);
        net_world_close(&scene.world);
    }
}

/* The token of a handshake may have to be looked up: the response comes later. Messages that
 * the client sends meanwhile are not lost. */
static void the_handshake_may_be_answered_later(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
    ws_scene_say(&scene, &peer, TEXT, "hello");
    net_world_turn(&scene.world);
    scene.ws = ws_accept(scene.waiting, "runs.v1.json", &ws_scene_ops, &scene);
    assert_non_null(scene.ws);
    assert_int_equal(scene.messages, 0); /* not called from within ws_accept */
    peer_await(&scene.world, &peer, "sec-websocket-protocol: runs.v1.json\r\n");
    net_world_turn(&scene.world);
    assert_int_equal(scene.messages, 1);
    assert_true(server_is_idle(scene.world.server));
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void peer_that_disconnected_during_the_handshake_is_not_accepted(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
    net_world_turn(&scene.world);
    peer_close(&peer);
    while (!scene.waiting->gone)
        net_world_turn(&scene.world);
    assert_null(ws_accept(scene.waiting, NULL, &ws_scene_ops, &scene));
    assert_true(server_is_idle(scene.world.server));
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(references_are_released_when_the_peer_disconnects),
        cmocka_unit_test(lost_peer_is_reported_later),
        cmocka_unit_test(close_waits_for_the_peers_close_frame),
        cmocka_unit_test(close_without_an_answer_times_out),
        cmocka_unit_test(long_close_reason_is_truncated),
        cmocka_unit_test(message_handler_may_close_the_websocket),
        cmocka_unit_test(idle_websocket_holds_no_message_memory),
        cmocka_unit_test(unfinished_message_is_freed_at_the_end),
        cmocka_unit_test(the_handshake_may_be_answered_later),
        cmocka_unit_test(peer_that_disconnected_during_the_handshake_is_not_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
