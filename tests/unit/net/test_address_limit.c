/* Which connection is closed when there are too many, and which clients never wait. */
#include "tests/support/world/unit.h"

#include "base/metrics.h"
#include "net/http/server_state.h"
#include "tests/support/world/net_world.h"

struct scene {
    struct net_world world;
    struct exchange *waiting;
};

/* Requests for /stranger have no valid credential; all others have one. */
#define STRANGER "GET /stranger HTTP/1.1\r\nHost: a\r\n\r\n"
#define KNOWN "GET /known HTTP/1.1\r\nHost: a\r\n\r\n"
#define WAITING "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    if (!slice_is(x->path, "/stranger"))
        http_trust(x);
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    if (slice_is(x->path, "/wait"))
        scene->waiting = x;
    else
        http_reply(x, 200, (struct slice){ 0 }, SLICE("welcome"));
}

static void open_scene(struct scene *scene, struct server_options options)
{
    *scene = (struct scene){ 0 };
    options.handler = (struct http_handler){ .on_head = on_head, .on_request = on_request };
    options.owner = scene;
    net_world_open(&scene->world, options);
}

static void ask(struct scene *scene, struct peer *peer, const char *request)
{
    buf_clear(&peer->got);
    peer_send(&scene->world, peer, slice_of(request));
    peer_await(&scene->world, peer, "welcome");
}

static bool has_ended(struct peer *peer)
{
    peer_read(peer);
    return peer->ended;
}

static void close_all(struct scene *scene, struct peer *peers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        peer_close(&peers[i]);
    net_world_close(&scene->world);
}

static void silent_connection_is_closed_before_an_idle_one(void **state)
{
    struct scene scene;
    struct peer peers[2];
    (void)state;
    open_scene(&scene, (struct server_options){ .head_timeout_ms = 100 });
    peer_open(&scene.world, &peers[0]);
    ask(&scene, &peers[0], STRANGER);
    peer_open(&scene.world, &peers[1]);
    peer_await_end(&scene.world, &peers[1]);
    assert_int_equal(peers[1].got.len, 0);
    assert_false(has_ended(&peers[0])); /* this one has 75 s */
    close_all(&scene, peers, 2);
}

static void empty_lines_do_not_begin_a_request(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .head_timeout_ms = 50 });
    peer_open(&scene.world, &peer);
    for (uint64_t end = uv_hrtime() + 20 * 1000000000ull;
         !has_ended(&peer) && uv_hrtime() < end;) {
        peer_try_send(&peer, SLICE("\r\n"));
        net_world_turn(&scene.world);
    }
    assert_true(peer.ended);
    close_all(&scene, &peer, 1);
}

/* The limit is 16: a connection is closed when there would be more than 14. */
static void oldest_unauthenticated_connection_is_closed_first(void **state)
{
    enum { ROOM = 14 };
    struct scene scene;
    struct peer peers[ROOM + 3];
    int64_t before = metrics[M_CONNECTIONS_EVICTED];
    (void)state;
    open_scene(&scene, (struct server_options){ .connections_max = 16 });
    for (int i = 0; i < ROOM; i++) {
        peer_open(&scene.world, &peers[i]);
        ask(&scene, &peers[i], i == 3 || i == 5 ? STRANGER : KNOWN);
    }
    ask(&scene, &peers[3], STRANGER); /* another request does not make it younger */
    for (int i = ROOM; i < ROOM + 3; i++) {
        peer_open(&scene.world, &peers[i]);
        ask(&scene, &peers[i], KNOWN);
    }
    for (int i = 0; i < ROOM + 3; i++)
        assert_int_equal(has_ended(&peers[i]), i == 3 || i == 5 || i == 0);
    assert_int_equal(metrics[M_CONNECTIONS_EVICTED] - before, 3);
    close_all(&scene, peers, ROOM + 3);
}

/* All are accepted in one turn, which frees none of the connections that it closes. */
static void many_connections_at_once_are_all_accepted(void **state)
{
    enum { MANY = 60 };
    struct scene scene;
    struct peer peers[MANY];
    (void)state;
    int64_t before = metrics[M_CONNECTIONS_EVICTED];
    open_scene(&scene, (struct server_options){ .connections_max = 16 });
    for (int i = 0; i < MANY; i++)
        peer_open(&scene.world, &peers[i]);
    for (int i = MANY - 14; i < MANY; i++)
        ask(&scene, &peers[i], KNOWN);
    for (int i = 0; i < MANY - 14; i++) {
        assert_true(has_ended(&peers[i]));
        assert_int_equal(peers[i].got.len, 0); /* closed without a response */
    }
    assert_int_equal(metrics[M_CONNECTIONS_EVICTED] - before, MANY - 14);
    close_all(&scene, peers, MANY);
}

static void least_recently_used_idle_connection_is_closed(void **state)
{
    enum { ROOM = 14 };
    struct scene scene;
    struct peer peers[ROOM + 2];
    (void)state;
    open_scene(&scene, (struct server_options){ .connections_max = 16 });
    for (int i = 0; i < ROOM; i++) {
        peer_open(&scene.world, &peers[i]);
        ask(&scene, &peers[i], KNOWN);
    }
    ask(&scene, &peers[0], KNOWN);
    peer_send(&scene.world, &peers[1], SLICE(WAITING)); /* not idle */
    net_world_turn(&scene.world);
    for (int i = ROOM; i < ROOM + 2; i++) {
        peer_open(&scene.world, &peers[i]);
        ask(&scene, &peers[i], KNOWN);
    }
    for (int i = 0; i < ROOM + 2; i++)
        assert_int_equal(has_ended(&peers[i]), i == 2 || i == 3);
    http_reply(scene.waiting, 200, (struct slice){ 0 }, SLICE("done"));
    peer_await(&scene.world, &peers[1], "done");
    close_all(&scene, peers, ROOM + 2);
}

static void flood_of_connections_closes_its_own(void **state)
{
    enum { ROOM = 14, FLOOD = 100 };
    struct scene scene;
    struct peer peers[ROOM], flood[FLOOD];
    (void)state;
    open_scene(&scene, (struct server_options){ .connections_max = 16 });
    for (int i = 0; i < ROOM; i++) {
        peer_open(&scene.world, &peers[i]);
        ask(&scene, &peers[i], KNOWN);
    }
    peer_open(&scene.world, &flood[0]); /* an idle connection is closed for it */
    for (int i = 1; i < FLOOD; i++)
        peer_open(&scene.world, &flood[i]);
    for (int i = 0; i < ROOM; i++)
        assert_int_equal(has_ended(&peers[i]), i == 0);
    for (int i = 0; i < FLOOD - 1; i++)
        peer_await_end(&scene.world, &flood[i]);
    assert_false(has_ended(&flood[FLOOD - 1]));
    for (int i = 0; i < FLOOD; i++)
        peer_close(&flood[i]);
    close_all(&scene, peers, ROOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent_connection_is_closed_before_an_idle_one),
        cmocka_unit_test(empty_lines_do_not_begin_a_request),
        cmocka_unit_test(oldest_unauthenticated_connection_is_closed_first),
        cmocka_unit_test(many_connections_at_once_are_all_accepted),
        cmocka_unit_test(least_recently_used_idle_connection_is_closed),
        cmocka_unit_test(flood_of_connections_closes_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
