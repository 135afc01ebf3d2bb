/* Limits of TLS handshakes and records: time, turns, and slots for connections. */
#include "tests/support/world/unit.h"

#include <openssl/ssl.h>

#include "net/http/secure.h"
#include "net/http/server_state.h"
#include "net/tls.h"
#include "tests/support/world/tls_scene.h"

static void slow_handshake_times_out(void **state)
{
    struct tls_scene scene;
    struct peer silent, half;
    char room[4096];
    (void)state;
    tls_scene_open_with(&scene, (struct server_options){ .head_timeout_ms = 50 },
                        (struct listen_options){ 0 });
    struct slice hello = tls_scene_hello(scene.clients, room, sizeof(room));
    peer_connect(&scene.world, &silent);
    peer_connect(&scene.world, &half);
    peer_send(&scene.world, &half, (struct slice){ hello.ptr, hello.len / 2 });
    peer_await_end(&scene.world, &silent);
    peer_await_end(&scene.world, &half);
    peer_close(&silent);
    peer_close(&half);
    tls_scene_close(&scene);
}

/* Any client may start handshakes; established connections wait only for a few of them. */
static void a_turn_takes_few_handshakes(void **state)
{
    enum { PEERS = 200 };
    static struct peer peers[PEERS];
    struct tls_scene scene;
    struct peer early;
    char room[4096];
    (void)state;
    tls_scene_open(&scene);
    struct server *server = scene.world.server;
    struct slice hello = tls_scene_hello(scene.clients, room, sizeof(room));
    tls_scene_open_peer(&scene, &early);
    for (int i = 0; i < PEERS; i++)
        peer_connect(&scene.world, &peers[i]);
    for (int i = 0; i < PEERS; i++)
        peer_send(&scene.world, &peers[i], hello);
    uv_run(&scene.world.uv, UV_RUN_NOWAIT); /* they are queued */
    peer_send(&scene.world, &early, SLICE(TLS_SCENE_GET("/")));
    size_t most = 0, before = 0;
    while (!peer_has(&early, "hello")) {
        uv_run(&scene.world.uv, UV_RUN_NOWAIT);
        most = server->begun_count - before > most ? server->begun_count - before : most;
        before = server->begun_count;
    }
    assert_in_range(most, 1, PEERS / 4);
    assert_in_range(server->begun_count, 1, PEERS / 2); /* did not wait for all of them */
    while (server->begun_count < PEERS)
        net_world_turn(&scene.world);
    for (int i = 0; i < PEERS; i++)
        peer_close(&peers[i]);
    peer_close(&early);
    while (server->begun_count)
        net_world_turn(&scene.world);
    tls_scene_close(&scene);
}

static void oldest_of_too_many_handshakes_is_closed(void **state)
{
    static struct peer peers[HANDSHAKES_MAX + 2];
    struct tls_scene scene;
    (void)state;
    tls_scene_open(&scene);
    for (int i = 0; i < HANDSHAKES_MAX; i++) {
        peer_connect(&scene.world, &peers[i]);
        peer_send(&scene.world, &peers[i], SLICE("\x16\x03\x01"));
    }
    while (scene.world.server->begun_count < HANDSHAKES_MAX)
        net_world_turn(&scene.world);
    struct peer *late = &peers[HANDSHAKES_MAX];
    tls_scene_open_peer(&scene, late);
    tls_scene_expect_answer(&scene, late);
    peer_await_end(&scene.world, &peers[0]);
    peer_read(&peers[1]);
    assert_false(peers[1].ended);
    for (int i = 0; i <= HANDSHAKES_MAX; i++)
        peer_close(&peers[i]);
    while (scene.world.server->begun_count)
        net_world_turn(&scene.world);
    tls_scene_close(&scene);
}

/* Counts the turns until the server has sent data that begins with text. */
static int turns_until(struct tls_scene *scene, struct peer *peer, const char *text)
{
    int turns = 0;
    for (; !peer_has(peer, text) && turns < 10000; turns++) {
        uv_run(&scene->world.uv, UV_RUN_NOWAIT);
        peer_read(peer);
    }
    return turns;
}

/* OpenSSL reads records until one carries application data. A peer that sends only other
 * records would occupy the loop. */
static void endless_key_updates_are_handled_a_few_per_turn(void **state)
{
    enum { UPDATES = 2000, A_TURN = 16 };
    struct tls_scene scene;
    struct peer peer;
    (void)state;
    tls_scene_open(&scene);
    tls_scene_open_peer(&scene, &peer);
    for (int i = 0; i < UPDATES; i++) {
        assert_true(SSL_key_update(tls_ssl(peer.tls), SSL_KEY_UPDATE_NOT_REQUESTED));
        assert_int_equal(tls_handshake(peer.tls), TLS_DONE);
    }
    peer_send(&scene.world, &peer, SLICE(TLS_SCENE_GET("/")));
    assert_in_range(turns_until(&scene, &peer, "hello"), UPDATES / A_TURN, 9999);
    tls_scene_expect_answer(&scene, &peer);
    peer_close(&peer);
    tls_scene_close(&scene);
}

static void client_hello_in_tiny_records_is_handled_a_few_per_turn(void **state)
{
    enum { HEAD = 5, A_TURN = 16 };
    struct tls_scene scene;
    struct peer peer;
    struct buf records = { 0 };
    char room[4096];
    (void)state;
    tls_scene_open(&scene);
    struct slice hello = tls_scene_hello(scene.clients, room, sizeof(room));
    for (size_t i = HEAD; i < hello.len; i++) {
        buf_add(&records, (struct slice){ "\x16\x03\x01\x00\x01", HEAD });
        buf_add_char(&records, hello.ptr[i]);
    }
    peer_connect(&scene.world, &peer);
    peer_send(&scene.world, &peer, buf_slice(&records));
    assert_in_range(turns_until(&scene, &peer, "\x16\x03\x03"), hello.len / A_TURN, 9999);
    peer_close(&peer);
    while (scene.world.server->begun_count)
        net_world_turn(&scene.world);
    buf_finish(&records);
    tls_scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_handshake_times_out),
        cmocka_unit_test(a_turn_takes_few_handshakes),
        cmocka_unit_test(oldest_of_too_many_handshakes_is_closed),
        cmocka_unit_test(endless_key_updates_are_handled_a_few_per_turn),
        cmocka_unit_test(client_hello_in_tiny_records_is_handled_a_few_per_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
