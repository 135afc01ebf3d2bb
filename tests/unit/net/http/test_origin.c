/* Which client is at the other end of a connection, and its limit of connections. */
#include "tests/support/world/unit.h"

#include "net/http/http_conn.h"
#include "net/http/server_state.h"
#include "tests/support/world/net_world.h"

enum { WAITING_MAX = 8 };

struct scene {
    struct net_world world;
    struct exchange *waiting[WAITING_MAX];
    unsigned count;
    char peer[ADDRESS_TEXT]; /* peer address of the last request */
};

static void on_head(void *owner, struct exchange *x)
{
    (void)owner, (void)x;
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    memcpy(scene->peer, x->peer, sizeof(scene->peer));
    if (slice_is(x->path, "/wait"))
        scene->waiting[scene->count++] = x;
    else
        http_reply(x, 200, (struct slice){ 0 }, SLICE("welcome"));
}

static void on_gone(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    for (unsigned i = 0; i < scene->count; i++)
        if (scene->waiting[i] == x)
            scene->waiting[i] = scene->waiting[--scene->count];
    http_reply(x, 499, (struct slice){ 0 }, SLICE(""));
}

static void open_scene(struct scene *scene, bool proxied, const char *trusted)
{
    struct listen_options address = { .host = "127.0.0.1", .proxied = proxied };
    struct server_options options = {
        .listeners = &address,
        .listener_count = 1,
        .trusted_proxies = trusted,
        .connections_per_address = 2,
        .handler = { .on_head = on_head, .on_request = on_request, .on_gone = on_gone },
        .owner = scene,
    };
    *scene = (struct scene){ 0 };
    net_world_open(&scene->world, options);
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define WAIT "GET /wait HTTP/1.1\r\nHost: a\r\n"

static void make_header(const char *client, struct buf *out)
{
    static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
    struct address address = { 0 };
    assert_true(address_read(slice_of(client), &address));
    bool four = address_is_ip4(&address);
    buf_add(out, (struct slice){ signature, sizeof(signature) - 1 });
    buf_add_char(out, 0x21);
    buf_add_char(out, four ? 0x11 : 0x21);
    buf_add_char(out, 0);
    buf_add_char(out, four ? 12 : 36);
    size_t len = four ? 4 : 16;
    buf_add(out, (struct slice){ (char *)address.ip + 16 - len, len });
    for (size_t i = 0; i < len + 4; i++)
        buf_add_char(out, 1);
}

/* Connects with the given client address and sends a request. */
static void come(struct scene *scene, struct peer *peer, const char *client,
                 const char *request)
{
    struct buf bytes = { 0 };
    make_header(client, &bytes);
    buf_add_text(&bytes, request);
    peer_open(&scene->world, peer);
    peer_send(&scene->world, peer, buf_slice(&bytes));
    buf_finish(&bytes);
}

static void a_proxy_header_may_come_in_pieces_and_names_the_client(void **state)
{
    struct scene scene;
    struct buf bytes = { 0 };
    (void)state;
    open_scene(&scene, true, NULL);
    make_header("198.51.100.7", &bytes);
    buf_add_text(&bytes, GET);
    for (size_t cut = 1; cut < bytes.len; cut += 3) {
        struct peer peer;
        scene.peer[0] = '\0';
        peer_open(&scene.world, &peer);
        peer_send(&scene.world, &peer, (struct slice){ bytes.ptr, cut });
        net_world_turn(&scene.world);
        peer_send(&scene.world, &peer, slice_from(buf_slice(&bytes), cut));
        peer_await(&scene.world, &peer, "welcome");
        assert_string_equal(scene.peer, "198.51.100.7");
        peer_send(&scene.world, &peer, SLICE(GET)); /* only the first has a header */
        peer_close(&peer);
        net_world_turn(&scene.world);
    }
    struct peer checking;
    peer_open(&scene.world, &checking); /* LOCAL: the proxy checks our health */
    peer_send(&scene.world, &checking, SLICE("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0" GET));
    peer_await(&scene.world, &checking, "welcome");
    assert_string_equal(scene.peer, "127.0.0.1");
    peer_close(&checking);
    buf_finish(&bytes);
    net_world_close(&scene.world);
}

static void connection_without_proxy_header_is_closed(void **state)
{
    static const struct slice beginnings[] = {
        { GET, sizeof(GET) - 1 },
        { "PROXY TCP4 198.51.100.1 10.0.0.1 4660 80\r\n" GET, 43 + sizeof(GET) - 1 },
        { "\r\n\r\n\0\r\nQUIT\n\x21\x11\xFF\xFF", 16 },
    };
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, true, NULL);
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
        peer_open(&scene.world, &peer);
        peer_send(&scene.world, &peer, beginnings[i]);
        peer_await_end(&scene.world, &peer);
        assert_int_equal(peer.got.len, 0);
        peer_close(&peer);
    }
    peer_open(&scene.world, &peer); /* half a header, then closed */
    peer_send(&scene.world, &peer, SLICE("\r\n\r\n"));
    peer_close(&peer);
    net_world_turn(&scene.world);
    assert_int_equal(scene.world.server->connection_count, 0);
    assert_string_equal(scene.peer, "");
    net_world_close(&scene.world);
}

static void connections_per_address_are_limited(void **state)
{
    static const struct {
        const char *client;
        bool served;
    } comers[] = {
        { "198.51.100.1", true },     { "198.51.100.1", true },
        { "198.51.100.1", false },    { "198.51.100.2", true },
        { "2001:db8:0:1::1", true },  { "2001:db8:0:1:ffff::2", true },
        { "2001:db8:0:1::9", false }, { "2001:db8:0:2::1", true },
        { "127.0.0.1", true },        { "127.0.0.1", true },
        { "127.0.0.1", true },        { "10.0.0.1", true },
        { "10.0.0.1", true },         { "10.0.0.1", true },
    };
    enum { COMERS = sizeof(comers) / sizeof(comers[0]) };
    struct scene scene;
    struct peer peers[COMERS], again;
    (void)state;
    open_scene(&scene, true, "10.0.0.0/8");
    for (size_t i = 0; i < COMERS; i++) {
        come(&scene, &peers[i], comers[i].client, GET);
        peer_await(&scene.world, &peers[i], comers[i].served ? "welcome" : "HTTP/1.1 503 ");
    }
    peer_close(&peers[0]);
    net_world_turn(&scene.world);
    come(&scene, &again, "198.51.100.1", GET); /* a freed slot is used again */
    peer_await(&scene.world, &again, "welcome");
    peer_close(&again);
    for (size_t i = 1; i < COMERS; i++)
        peer_close(&peers[i]);
    net_world_turn(&scene.world);
    assert_int_equal(scene.world.server->addresses.counts.count, 0);
    net_world_close(&scene.world);
}

static void client_of_a_trusted_proxy_counts_while_its_request_lasts(void **state)
{
    static const char waiting[] = WAIT "X-Forwarded-For: 203.0.113.1\r\n"
                                       "X-Forwarded-For: 198.51.100.1, 10.0.0.2\r\n\r\n";
    struct scene scene;
    struct peer peers[3];
    (void)state;
    open_scene(&scene, false, "10.0.0.0/8 127.0.0.1");
    for (int i = 0; i < 3; i++) {
        peer_open(&scene.world, &peers[i]);
        peer_send(&scene.world, &peers[i], slice_of(waiting));
    }
    peer_await(&scene.world, &peers[2], "HTTP/1.1 429 ");
    assert_int_equal(scene.count, 2);
    assert_string_equal(scene.peer, "198.51.100.1");
    peer_close(&peers[2]);
    http_reply(scene.waiting[0], 200, (struct slice){ 0 }, SLICE("done"));
    scene.waiting[0] = scene.waiting[--scene.count];
    peer_open(&scene.world, &peers[2]);
    peer_send(&scene.world, &peers[2], slice_of(waiting));
    net_world_turn(&scene.world);
    assert_int_equal(scene.count, 2); /* the one before has ended, its connection is idle */
    for (int i = 0; i < 3; i++)
        peer_close(&peers[i]);
    net_world_turn(&scene.world);
    assert_int_equal(scene.world.server->addresses.counts.count, 0);
    net_world_close(&scene.world);
}

/* As if the connection came from that address, because all peers here are on loopback. */
static void come_unnamed(struct scene *scene, struct peer *peer, const char *address,
                         const char *request)
{
    struct list *connections = &scene->world.server->connections;
    come(scene, peer, address, "");
    net_world_turn(&scene->world);
    struct connection *newest = container_of(connections->prev, struct connection, link);
    container_of(newest, struct http_conn, c)->named = false;
    peer_send(&scene->world, peer, slice_of(request));
}

static void unknown_proxy_may_have_more_connections_but_is_not_trusted(void **state)
{
    static const char forwarded[] = "GET / HTTP/1.1\r\nHost: a\r\n"
                                    "X-Forwarded-For: 203.0.113.1\r\n\r\n";
    struct scene scene;
    struct peer peers[4];
    (void)state;
    open_scene(&scene, true, NULL);
    for (int i = 0; i < 4; i++) {
        come_unnamed(&scene, &peers[i], "198.51.100.1", forwarded);
        peer_await(&scene.world, &peers[i], "welcome");
        assert_string_equal(scene.peer, "198.51.100.1");
    }
    assert_true(scene.world.server->forwarded_logged);
    for (int i = 0; i < 4; i++)
        peer_close(&peers[i]);
    net_world_close(&scene.world);
}

static void expect_no_excuse(bool named, const char *trusted)
{
    static const char forwarded[] = "GET / HTTP/1.1\r\nHost: a\r\n"
                                    "X-Forwarded-For: 203.0.113.1\r\n\r\n";
    struct scene scene;
    struct peer peers[3];
    open_scene(&scene, true, trusted);
    for (int i = 0; i < 3; i++) {
        (named ? come : come_unnamed)(&scene, &peers[i], "198.51.100.1", forwarded);
        peer_await(&scene.world, &peers[i], i < 2 ? "welcome" : "HTTP/1.1 503 ");
    }
    assert_false(scene.world.server->forwarded_logged);
    for (int i = 0; i < 3; i++)
        peer_close(&peers[i]);
    net_world_close(&scene.world);
}

/* Some proxies are trusted, but not this one, which sends the header all the same. */
static void untrusted_proxy_header_does_not_lift_the_limit(void **state)
{
    (void)state;
    expect_no_excuse(false, "10.0.0.0/8");
}

static void client_named_by_a_proxy_header_cannot_lift_its_limit(void **state)
{
    (void)state;
    expect_no_excuse(true, "10.0.0.0/8");
    expect_no_excuse(true, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proxy_header_may_come_in_pieces_and_names_the_client),
        cmocka_unit_test(connection_without_proxy_header_is_closed),
        cmocka_unit_test(connections_per_address_are_limited),
        cmocka_unit_test(client_of_a_trusted_proxy_counts_while_its_request_lasts),
        cmocka_unit_test(unknown_proxy_may_have_more_connections_but_is_not_trusted),
        cmocka_unit_test(untrusted_proxy_header_does_not_lift_the_limit),
        cmocka_unit_test(client_named_by_a_proxy_header_cannot_lift_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
