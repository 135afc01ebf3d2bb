/* Connections that leave HTTP, and what a handler keeps with a connection. */
#include "tests/support/world/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/metrics.h"
#include "net/http/http_session.h"
#include "net/http/tunnel.h"
#include "net/http/ws_conn.h"
#include "tests/support/world/net_world.h"
#include "tests/support/world/ws_peer.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

/* A session counts the requests of its connection. */
struct visits {
    struct http_session session;
    int64_t count;
};

static struct scene {
    struct net_world world;
    struct tunnel *tunnel; /* NULL: closed */
    struct buf heard;
    unsigned closed, drained, sessions;
    bool pauses;
} scene;

static void on_bytes(struct tunnel *tunnel, struct slice bytes)
{
    assert_ptr_equal(tunnel_owner(tunnel), &scene);
    buf_add(&scene.heard, bytes);
    if (scene.pauses)
        tunnel_pause(tunnel, true);
}

static void on_drained(struct tunnel *tunnel)
{
    assert_ptr_equal(tunnel, scene.tunnel);
    scene.drained++;
}

static void on_closed(struct tunnel *tunnel)
{
    assert_ptr_equal(tunnel, scene.tunnel);
    scene.tunnel = NULL;
    scene.closed++;
}

static const struct tunnel_ops tunnel_ops = { on_bytes, on_drained, on_closed };

static void on_ws_message(struct ws *ws, struct slice message)
{
    (void)ws;
    (void)message;
}

static void on_ws_event(struct ws *ws)
{
    (void)ws;
}

static const struct ws_ops ws_ops = { .on_message = on_ws_message,
                                      .on_drained = on_ws_event,
                                      .on_closed = on_ws_event };

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    (void)x;
}

static void reply_count(struct exchange *x)
{
    struct http_session *session = http_session_of(x);
    if (!session) {
        struct visits *made = mem_new(struct visits);
        session = &made->session;
        http_session_begin(x, session);
        scene.sessions++;
    }
    struct buf text = { 0 };
    buf_print(&text, "visit %d.",
              (int)++container_of(session, struct visits, session)->count);
    x->is_last = slice_is(x->path, "/last");
    http_reply(x, 200, (struct slice){ 0 }, buf_slice(&text));
    buf_finish(&text);
    if (slice_is(x->path, "/cut"))
        http_session_close(session);
}

static void on_request(void *owner, struct exchange *x)
{
    (void)owner;
    if (slice_is(x->path, "/tunnel"))
        scene.tunnel =
            tunnel_accept(x, SLICE("upgrade: websocket\r\n"), &tunnel_ops, &scene);
    else if (slice_is(x->path, "/ws"))
        ws_accept(x, NULL, &ws_ops, NULL);
    else
        reply_count(x);
}

static void on_session_end(void *owner, struct http_session *session)
{
    (void)owner;
    scene.sessions--;
    free(container_of(session, struct visits, session));
}

static int open_scene(void **state)
{
    const struct server_options options = { .handler = { .on_head = on_head,
                                                         .on_request = on_request },
                                            .owner = &scene,
                                            .on_session_end = on_session_end };
    (void)state;
    scene = (struct scene){ 0 };
    net_world_open(&scene.world, options);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    net_world_close(&scene.world);
    assert_null(scene.tunnel);
    assert_int_equal(scene.sessions, 0);
    buf_finish(&scene.heard);
    return 0;
}

static void open_tunnel(struct peer *peer, const char *after)
{
    struct buf sent = { 0 };
    buf_print(&sent, GET("/tunnel") "%s", after);
    peer_open(&scene.world, peer);
    peer_send(&scene.world, peer, buf_slice(&sent));
    peer_await(&scene.world, peer, "\r\n\r\n");
    buf_finish(&sent);
}

static bool has_heard(void *owner)
{
    return scene.heard.len >= strlen(owner);
}

static void expect_heard(const char *text)
{
    net_world_until(&scene.world, has_heard, (void *)text);
    assert_true(slice_is(buf_slice(&scene.heard), text));
}

static bool is_over(void *owner)
{
    (void)owner;
    return scene.closed > 0;
}

/* ---- tunnels ---- */

static void bytes_go_both_ways(void **state)
{
    struct peer peer;
    (void)state;
    open_tunnel(&peer, "with it");
    assert_true(slice_is(buf_slice(&peer.got),
                         "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"));
    expect_heard("with it");
    peer_send(&scene.world, &peer, SLICE(" GET / HTTP/1.1\r\n\r\n"));
    expect_heard("with it GET / HTTP/1.1\r\n\r\n");
    assert_true(tunnel_send(scene.tunnel, SLICE("\x81\x01!")));
    peer_await(&scene.world, &peer, "\x81\x01!");
    assert_int_equal(metrics[M_WS_CONNECTIONS], 1);
    peer_close(&peer);
    net_world_until(&scene.world, is_over, NULL);
    assert_int_equal(metrics[M_WS_CONNECTIONS], 0);
}

static void a_closed_tunnel_sends_what_it_has(void **state)
{
    struct peer peer;
    (void)state;
    open_tunnel(&peer, "");
    tunnel_send(scene.tunnel, SLICE("last words"));
    tunnel_close(scene.tunnel);
    tunnel_close(scene.tunnel);
    tunnel_pause(scene.tunnel, true);
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "last words"));
    peer_close(&peer);
    net_world_until(&scene.world, is_over, NULL);
}

static void a_peer_that_does_not_read_holds_back_its_owner(void **state)
{
    struct peer peer;
    struct slice piece = { mem_alloc(64 * 1024), 64 * 1024 };
    size_t sent = 0;
    (void)state;
    open_tunnel(&peer, "");
    buf_clear(&peer.got);
    while (tunnel_send(scene.tunnel, piece))
        sent += piece.len;
    sent += piece.len;
    assert_int_equal(scene.drained, 0);
    while (!scene.drained || peer.got.len < sent) {
        net_world_turn(&scene.world);
        peer_read(&peer);
    }
    assert_int_equal(peer.got.len, sent);
    peer_close(&peer);
    net_world_until(&scene.world, is_over, NULL);
    free((char *)piece.ptr);
}

static void a_paused_tunnel_holds_back_its_peer(void **state)
{
    struct peer peer;
    char bytes[1024];
    size_t sent = 0, len;
    (void)state;
    memset(bytes, 'a', sizeof(bytes));
    open_tunnel(&peer, "");
    scene.pauses = true;
    peer_send(&scene.world, &peer, SLICE("a"));
    expect_heard("a");
    while ((len = peer_try_send(&peer, (struct slice){ bytes, sizeof(bytes) }))) {
        sent += len;
        net_world_turn(&scene.world);
    }
    assert_int_equal(scene.heard.len, 1);
    scene.pauses = false;
    tunnel_pause(scene.tunnel, false);
    while (scene.heard.len < sent + 1)
        net_world_turn(&scene.world);
    peer_close(&peer);
    net_world_until(&scene.world, is_over, NULL);
}

static void a_tunnel_ends_with_its_server(void **state)
{
    struct peer peer;
    (void)state;
    open_tunnel(&peer, "");
    server_close(scene.world.server, net_world_on_closed);
    net_world_until(&scene.world, is_over, NULL);
    peer_close(&peer);
}

/* ---- sessions ---- */

static void a_session_lasts_as_long_as_its_connection(void **state)
{
    struct peer peer, other;
    (void)state;
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE(GET("/") GET("/")));
    peer_await(&scene.world, &peer, "visit 2.");
    peer_open(&scene.world, &other);
    peer_send(&scene.world, &other, SLICE(GET("/")));
    peer_await(&scene.world, &other, "visit 1.");
    assert_int_equal(scene.sessions, 2);
    peer_close(&peer);
    while (scene.sessions > 1)
        net_world_turn(&scene.world);
    peer_send(&scene.world, &other, SLICE(GET("/cut")));
    peer_await_end(&scene.world, &other);
    while (scene.sessions)
        net_world_turn(&scene.world);
    peer_close(&other);
}

static void a_last_reply_closes_the_connection(void **state)
{
    struct peer peer;
    (void)state;
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE(GET("/") GET("/last") GET("/")));
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "connection: close\r\n"));
    assert_true(peer_has(&peer, "visit 2."));
    assert_false(peer_has(&peer, "visit 3."));
    peer_close(&peer);
}

static void a_websocket_ends_the_session(void **state)
{
    struct peer peer;
    (void)state;
    ws_peer_open(&scene.world, &peer, "/ws");
    peer_close(&peer);
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, SLICE(GET("/") GET("/tunnel")));
    peer_await(&scene.world, &peer, "101 Switching");
    assert_int_equal(scene.sessions, 0);
    peer_close(&peer);
    net_world_until(&scene.world, is_over, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_go_both_ways),
        TEST(a_closed_tunnel_sends_what_it_has),
        TEST(a_peer_that_does_not_read_holds_back_its_owner),
        TEST(a_paused_tunnel_holds_back_its_peer),
        TEST(a_tunnel_ends_with_its_server),
        TEST(a_session_lasts_as_long_as_its_connection),
        TEST(a_last_reply_closes_the_connection),
        TEST(a_websocket_ends_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
