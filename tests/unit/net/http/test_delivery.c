/* A reply's delivery is reported once, whatever the peer does. */
#include "tests/support/world/unit.h"

#include <sys/socket.h>

#include "net/http/http.h"
#include "tests/support/world/net_world.h"

struct scene {
    struct net_world world;
    struct delivery delivery;
    struct exchange *waiting;
    struct bytes *body; /* body of the reply */
    unsigned told;
    enum delivery_end end;
};

static void on_told(struct delivery *delivery, enum delivery_end end)
{
    struct scene *scene = container_of(delivery, struct scene, delivery);
    scene->told++;
    scene->end = end;
}

static void on_head(void *owner, struct exchange *x)
{
    (void)owner, (void)x;
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    if (slice_is(x->path, "/wait"))
        scene->waiting = x;
    else
        http_reply(x, 200, (struct slice){ 0 }, SLICE("next"));
}

static void on_gone(void *owner, struct exchange *x)
{
    (void)owner, (void)x;
}

static void reply(struct scene *scene)
{
    assert_true(http_follow_reply(scene->waiting, &scene->delivery));
    http_reply_shared(scene->waiting, 200, (struct slice){ 0 }, scene->body);
    assert_int_equal(scene->told, 0);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void open_scene(struct scene *scene, struct peer *peer, size_t len)
{
    struct server_options options = { .owner = scene };
    options.handler =
        (struct http_handler){ on_head, NULL, on_request, on_gone, NULL, NULL };
    *scene = (struct scene){ .delivery.done = on_told };
    char *text = test_malloc(len);
    memset(text, 'x', len);
    text[len - 1] = '.';
    scene->body = bytes_create((struct slice){ text, len });
    test_free(text);
    net_world_open(&scene->world, options);
    peer_open(&scene->world, peer);
    peer_send(&scene->world, peer, SLICE(GET("/wait")));
    net_world_turn(&scene->world);
    assert_non_null(scene->waiting);
}

static void close_scene(struct scene *scene)
{
    net_world_close(&scene->world);
    bytes_unref(scene->body);
}

static bool is_told(void *owner)
{
    return ((struct scene *)owner)->told > 0;
}

static void reply_is_delivered_if_the_peer_sends_another_request(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, &peer, 10);
    reply(&scene);
    peer_await(&scene.world, &peer, "x.");
    peer_send(&scene.world, &peer, SLICE(GET("/")));
    net_world_until(&scene.world, is_told, &scene);
    peer_close(&peer);
    close_scene(&scene);
    assert_int_equal(scene.told, 1);
    assert_int_equal(scene.end, DELIVERY_TAKEN);
}

static void reply_is_delivered_if_the_peer_reads_it_and_closes(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, &peer, 10);
    reply(&scene);
    peer_await(&scene.world, &peer, "x.");
    peer_close(&peer);
    net_world_until(&scene.world, is_told, &scene);
    close_scene(&scene);
    assert_int_equal(scene.told, 1);
    assert_int_equal(scene.end, DELIVERY_TAKEN);
}

/* The peer closed before the reply was written, but the server had not noticed yet. Its
 * kernel answers the reply with a reset; so may that of a peer that has read everything. */
static void delivery_is_unknown_if_the_peer_had_closed(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, &peer, 10);
    peer_close(&peer);
    reply(&scene);
    net_world_until(&scene.world, is_told, &scene);
    close_scene(&scene);
    assert_int_equal(scene.told, 1);
    assert_int_equal(scene.end, DELIVERY_UNKNOWN);
}

static void delivery_is_unknown_if_the_peer_closes_without_reading(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, &peer, 10);
    reply(&scene);
    peer_close(&peer);
    net_world_until(&scene.world, is_told, &scene);
    close_scene(&scene);
    assert_int_equal(scene.told, 1);
    assert_int_equal(scene.end, DELIVERY_UNKNOWN);
}

/* Proxies end connections to a server in this way when they no longer need them. */
static void delivery_is_unknown_after_a_reset(void **state)
{
    struct scene scene;
    struct peer peer;
    struct linger at_once = { 1, 0 };
    (void)state;
    open_scene(&scene, &peer, 10);
    reply(&scene);
    peer_await(&scene.world, &peer, "x.");
    assert_int_equal(setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
                     0);
    peer_close(&peer);
    net_world_until(&scene.world, is_told, &scene);
    close_scene(&scene);
    assert_int_equal(scene.told, 1);
    assert_int_equal(scene.end, DELIVERY_UNKNOWN);
}

static void reply_is_not_delivered_if_the_peer_closes_in_the_middle(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, &peer, 32 << 20); /* more than the kernel buffers */
    reply(&scene);
    peer_await(&scene.world, &peer, "xxx");
    peer_close(&peer);
    net_world_until(&scene.world, is_told, &scene);
    close_scene(&scene);
    assert_int_equal(scene.told, 1);
    assert_int_not_equal(scene.end, DELIVERY_TAKEN);
}

static void no_delivery_is_reported_after_the_connection_ended(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, &peer, 10);
    struct linger at_once = { 1, 0 };
    assert_int_equal(setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
                     0);
    peer_close(&peer);
    while (!scene.waiting->gone)
        net_world_turn(&scene.world);
    assert_false(http_follow_reply(scene.waiting, &scene.delivery));
    http_reply(scene.waiting, 200, (struct slice){ 0 }, SLICE("x"));
    close_scene(&scene);
    assert_int_equal(scene.told, 0);
}

static void closing_the_server_reports_the_delivery(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, &peer, 10);
    reply(&scene);
    peer_await(&scene.world, &peer, "x.");
    close_scene(&scene);
    peer_close(&peer);
    assert_int_equal(scene.told, 1);
    assert_int_equal(scene.end, DELIVERY_TAKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reply_is_delivered_if_the_peer_sends_another_request),
        cmocka_unit_test(reply_is_delivered_if_the_peer_reads_it_and_closes),
        cmocka_unit_test(delivery_is_unknown_if_the_peer_had_closed),
        cmocka_unit_test(delivery_is_unknown_if_the_peer_closes_without_reading),
        cmocka_unit_test(delivery_is_unknown_after_a_reset),
        cmocka_unit_test(reply_is_not_delivered_if_the_peer_closes_in_the_middle),
        cmocka_unit_test(no_delivery_is_reported_after_the_connection_ended),
        cmocka_unit_test(closing_the_server_reports_the_delivery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
