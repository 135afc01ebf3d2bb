/* Replies at once and later, peers that leave or do not read, and closing the server. */
#include "tests/support/world/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/metrics.h"
#include "net/http/http_conn.h"
#include "net/http/server_state.h"
#include "net/http/ws_conn.h"
#include "tests/support/world/net_world.h"

enum { WAITING_MAX = 8 };

struct scene {
    struct net_world world;
    struct exchange *waiting[WAITING_MAX];
    unsigned waiting_count;
    unsigned requests, gone, drained;
    struct bytes *shared;
    struct deferred later;
    struct exchange *deferred; /* its reply comes at the end of the turn */
    bool close_in_handler, reply_when_gone;
    bool hurry; /* each call of on_drained uses up the turn's time, as /long does */
};

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    x->body_limit = 1 << 20;
}

static void on_later(struct deferred *later)
{
    struct scene *scene = container_of(later, struct scene, later);
    http_reply(scene->deferred, 200, (struct slice){ 0 }, SLICE("later"));
}

static void use_up_turn(const struct scene *scene)
{
    while (loop_time_left(scene->world.loop))
        ;
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    scene->requests++;
    if (slice_is(x->path, "/long"))
        use_up_turn(scene);
    if (scene->close_in_handler)
        server_close(scene->world.server, net_world_on_closed);
    if (slice_is(x->path, "/known"))
        http_trust(x);
    if (slice_is(x->path, "/wait") || slice_is(x->path, "/known")) {
        scene->waiting[scene->waiting_count++ % WAITING_MAX] = x;
    } else if (slice_is(x->path, "/later")) {
        scene->deferred = x;
        loop_defer(scene->world.loop, &scene->later);
    } else if (scene->shared) {
        http_reply_shared(x, 200, (struct slice){ 0 }, scene->shared);
    } else {
        http_reply(x, 200, (struct slice){ 0 }, SLICE("now"));
    }
}

static void on_gone(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    scene->gone++;
    assert_true(x->gone);
    if (scene->reply_when_gone)
        http_reply(x, 500, (struct slice){ 0 }, SLICE("too late"));
}

static void on_drained(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    (void)x;
    scene->drained++;
    if (scene->hurry)
        use_up_turn(scene);
}

static void open_scene(struct scene *scene, struct server_options options)
{
    *scene = (struct scene){ .later.fn = on_later };
    options.handler =
        (struct http_handler){ on_head, NULL, on_request, on_gone, on_drained, NULL };
    options.owner = scene;
    net_world_open(&scene->world, options);
}

static void send_text(struct scene *scene, struct peer *peer, const char *text)
{
    peer_send(&scene->world, peer, slice_of(text));
    net_world_turn(&scene->world);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static bool is_gone(void *owner)
{
    return ((struct scene *)owner)->gone > 0;
}

static bool is_empty(void *owner)
{
    struct scene *scene = owner;
    return scene->world.server->connection_count == 0;
}

static struct connection *only_connection(struct scene *scene)
{
    assert_int_equal(scene->world.server->connection_count, 1);
    return container_of(scene->world.server->connections.next, struct connection, link);
}

static void reply_may_come_later(void **state)
{
    struct scene scene;
    struct peer peer;
    int64_t before = metrics[M_HTTP_2XX];
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait?q=1"));
    assert_int_equal(scene.world.server->open_exchanges, 1);
    struct exchange *x = scene.waiting[0];
    assert_true(slice_is(x->query, "q=1")); /* the query is borrowed until the reply */
    assert_false(x->admin);
    assert_string_equal(x->peer, "127.0.0.1");
    http_reply(x, 200, (struct slice){ 0 }, SLICE("at last"));
    assert_int_equal(scene.world.server->open_exchanges, 0);
    peer_await(&scene.world, &peer, "at last");
    send_text(&scene, &peer, GET("/"));
    peer_await(&scene.world, &peer, "now");
    assert_int_equal(metrics[M_HTTP_2XX] - before, 2);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void disconnect_is_noticed_once(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait"));
    peer_close(&peer);
    net_world_until(&scene.world, is_gone, &scene);
    net_world_turn(&scene.world);
    assert_int_equal(scene.gone, 1);
    assert_int_equal(scene.world.server->open_exchanges, 1);
    http_reply(scene.waiting[0], 200, (struct slice){ 0 }, SLICE("nowhere"));
    assert_int_equal(scene.world.server->open_exchanges, 0);
    net_world_until(&scene.world, is_empty, &scene);
    net_world_close(&scene.world);
}

static void reset(struct peer *peer)
{
    struct linger at_once = { .l_onoff = 1 };
    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    peer_close(peer);
}

static void reset_is_noticed_once(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    scene.reply_when_gone = true;
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait"));
    reset(&peer);
    net_world_until(&scene.world, is_empty, &scene);
    assert_int_equal(scene.gone, 1);
    net_world_close(&scene.world);
}

/* printf 'GET ...' | nc -N */
static void half_closed_peer_gets_its_answer(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait") GET("/"));
    shutdown(peer.fd, SHUT_WR);
    net_world_until(&scene.world, is_gone, &scene);
    http_reply(scene.waiting[0], 200, (struct slice){ 0 }, SLICE("still here"));
    peer_await_end(&scene.world, &peer);
    assert_true(peer_has(&peer, "still here"));
    assert_true(peer_has(&peer, "\r\n\r\nnow"));
    assert_int_equal(scene.gone, 1);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void truncated_body_ends_its_exchange(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    scene.reply_when_gone = true;
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    assert_int_equal(scene.world.server->open_exchanges, 1);
    peer_close(&peer);
    net_world_until(&scene.world, is_empty, &scene);
    assert_int_equal(scene.gone, 1);
    assert_int_equal(scene.requests, 0);
    net_world_close(&scene.world);
}

/* Sends until the kernel's buffers are full as well. */
static void flood(struct scene *scene, struct peer *peer, const char *text)
{
    struct buf many = { 0 };
    for (int i = 0; i < 2000; i++)
        buf_add_text(&many, text);
    for (unsigned refused = 0; refused < 3;) {
        refused = peer_try_send(peer, buf_slice(&many)) ? 0 : refused + 1;
        net_world_turn(&scene->world);
    }
    buf_finish(&many);
}

/* Floods the server after a request that waits, and checks how many bytes it keeps. */
static void assert_kept(const char *request, size_t least, size_t most)
{
    struct scene scene;
    struct peer peer;
    open_scene(&scene, (struct server_options){ .pipeline_bytes_max = 10000 });
    scene.reply_when_gone = true;
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, request);
    flood(&scene, &peer, GET("/"));
    assert_in_range(connection_kept(only_connection(&scene)).len, least, most);
    assert_in_range(only_connection(&scene)->pending->capacity, least, 2 * most);
    assert_int_equal(scene.requests, 1);
    reset(&peer);
    net_world_until(&scene.world, is_empty, &scene);
    assert_int_equal(scene.gone, 1);
    net_world_close(&scene.world);
}

static void pipelined_bytes_are_limited(void **state)
{
    (void)state;
    assert_kept(GET("/known"), 10000, 10000 + SERVER_INPUT);
}

static void pipelined_bytes_are_more_limited_without_a_credential(void **state)
{
    (void)state;
    assert_kept(GET("/wait"), UNAUTHENTICATED_INPUT, UNAUTHENTICATED_INPUT);
}

static void disconnect_is_noticed_when_nothing_more_is_read(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .pipeline_bytes_max = 10 });
    scene.reply_when_gone = true;
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait"));
    send_text(&scene, &peer, GET("/"));
    send_text(&scene, &peer, GET("/"));
    assert_true(only_connection(&scene)->paused);
    assert_int_equal(connection_kept(only_connection(&scene)).len, sizeof(GET("/")) - 1);
    peer_close(&peer);
    net_world_until(&scene.world, is_gone, &scene);
    net_world_until(&scene.world, is_empty, &scene);
    assert_int_equal(scene.gone, 1);
    net_world_close(&scene.world);
}

/* The number of requests makes neither the stack nor a turn grow. */
static void pipelined_requests_are_answered_one_by_one(void **state)
{
    enum { MANY = 20000 };
    struct scene scene;
    struct peer peer;
    struct buf bytes = { 0 };
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    for (int i = 0; i < MANY; i++)
        buf_add_text(&bytes, i % 40 ? GET("/") : GET("/later"));
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer, buf_slice(&bytes));
    shutdown(peer.fd, SHUT_WR);
    peer_await_end(&scene.world, &peer);
    assert_int_equal(scene.requests, MANY);
    assert_int_equal(peer_count(&peer, "HTTP/1.1 200 OK"), MANY);
    peer_close(&peer);
    buf_finish(&bytes);
    net_world_close(&scene.world);
}

/* No request is handled for a peer that does not read its replies. */
static void next_request_waits_until_the_reply_is_sent(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    scene.shared = bytes_create_empty(8 << 20);
    memset(scene.shared->data, '-', scene.shared->len);
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/") GET("/"));
    assert_int_equal(scene.requests, 1);
    assert_int_equal(scene.shared->refs, 2); /* shared, not copied */
    bool both = false;
    while (!both) {
        net_world_turn(&scene.world);
        peer_read(&peer);
        both = peer_count(&peer, "content-length: 8388608") == 2;
    }
    assert_int_equal(scene.requests, 2);
    shutdown(peer.fd, SHUT_WR);
    peer_await_end(&scene.world, &peer);
    assert_true(peer.got.len > 2u * scene.shared->len);
    assert_int_equal(scene.shared->refs, 1);
    bytes_unref(scene.shared);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void stream_reports_a_slow_reader(void **state)
{
    struct scene scene;
    struct peer peer;
    char piece[10000];
    size_t written = 0;
    (void)state;
    memset(piece, '.', sizeof(piece));
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait"));
    http_stream_begin(scene.waiting[0], 200, SLICE("content-type: text/event-stream\r\n"));
    do
        written += sizeof(piece);
    while (http_stream_write(scene.waiting[0], (struct slice){ piece, sizeof(piece) }));
    assert_in_range(written, 1 << 20, 64 << 20);
    http_stream_end(scene.waiting[0]);
    peer_await(&scene.world, &peer, "\r\n0\r\n\r\n");
    assert_int_equal(peer_count(&peer, "2710\r\n...."), written / sizeof(piece));
    send_text(&scene, &peer, GET("/"));
    peer_await(&scene.world, &peer, "now");
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* There is more than a slow reader may leave unsent. */
static void parts_that_belong_together_are_written_as_a_whole(void **state)
{
    struct scene scene;
    struct peer peer;
    struct bytes *part = bytes_create_empty(1 << 20), *parts[HTTP_PARTS_MAX];
    (void)state;
    memset(part->data, '.', part->len);
    for (size_t i = 0; i < HTTP_PARTS_MAX; i++)
        parts[i] = part;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait"));
    http_stream_begin(scene.waiting[0], 200, (struct slice){ 0 });
    assert_true(http_stream_write_parts(scene.waiting[0], parts, HTTP_PARTS_MAX, SLICE("|"),
                                        SLICE("behind")));
    assert_in_range(http_stream_unsent(scene.waiting[0]), 2 << 20, 64 << 20);
    assert_false(http_stream_write(scene.waiting[0], SLICE("too much")));
    http_stream_end(scene.waiting[0]);
    peer_await(&scene.world, &peer, ".behind\r\n8\r\ntoo much\r\n0\r\n\r\n");
    assert_int_equal(peer_count(&peer, "\r\n4000045\r\n...."), 1);
    assert_int_equal(peer_count(&peer, ".|."), HTTP_PARTS_MAX - 1);
    peer_close(&peer);
    net_world_close(&scene.world);
    assert_int_equal(part->refs, 1);
    bytes_unref(part);
}

static void writable_connections_take_turns(void **state)
{
    static const char piece[10000];
    struct scene scene;
    struct peer peers[WAITING_MAX];
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    for (int i = 0; i < WAITING_MAX; i++) {
        peer_open(&scene.world, &peers[i]);
        send_text(&scene, &peers[i], GET("/wait"));
        http_stream_begin(scene.waiting[i], 200, (struct slice){ 0 });
        while (!http_stream_unsent(scene.waiting[i]))
            http_stream_write(scene.waiting[i], (struct slice){ piece, sizeof(piece) });
    }
    scene.hurry = true;
    for (unsigned before = 0; before < WAITING_MAX; before = scene.drained) {
        for (int i = 0; i < WAITING_MAX; i++)
            peer_read(&peers[i]);
        uv_run(&scene.world.uv, UV_RUN_NOWAIT);
        assert_in_range(scene.drained, before, before + 1);
    }
    for (int i = 0; i < WAITING_MAX; i++) {
        http_stream_end(scene.waiting[i]);
        peer_close(&peers[i]);
    }
    net_world_until(&scene.world, is_empty, &scene);
    net_world_close(&scene.world);
}

/* Freeing the bytes that they have not read costs time. */
static void reset_connections_are_not_closed_in_a_turn_without_time_left(void **state)
{
    struct scene scene;
    struct peer peers[WAITING_MAX], busy;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    scene.reply_when_gone = true;
    peer_open(&scene.world, &busy);
    for (int i = 0; i < WAITING_MAX; i++) {
        peer_open(&scene.world, &peers[i]);
        send_text(&scene, &peers[i], GET("/wait"));
    }
    peer_send(&scene.world, &busy, SLICE(GET("/long")));
    for (int i = 0; i < WAITING_MAX; i++)
        reset(&peers[i]);
    uv_run(&scene.world.uv, UV_RUN_NOWAIT);
    assert_int_equal(scene.requests, WAITING_MAX + 1);
    assert_int_equal(scene.world.server->open_count, WAITING_MAX + 1);
    peer_close(&busy);
    net_world_until(&scene.world, is_empty, &scene);
    assert_int_equal(scene.gone, WAITING_MAX);
    net_world_close(&scene.world);
}

static void stream_reports_that_its_reader_disconnected(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait"));
    http_stream_begin(scene.waiting[0], 200, (struct slice){ 0 });
    assert_true(http_stream_write(scene.waiting[0], SLICE("hello")));
    peer_await(&scene.world, &peer, "5\r\nhello\r\n");
    peer_close(&peer);
    net_world_until(&scene.world, is_gone, &scene);
    assert_false(http_stream_write(scene.waiting[0], SLICE("hello?")));
    assert_int_equal(scene.world.server->open_exchanges, 1);
    http_stream_end(scene.waiting[0]);
    net_world_until(&scene.world, is_empty, &scene);
    net_world_close(&scene.world);
}

static void an_idle_connection_holds_no_parser(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/"));
    peer_await(&scene.world, &peer, "now");
    struct connection *c = only_connection(&scene);
    assert_null(container_of(c, struct http_conn, c)->request);
    assert_null(c->pending);
    assert_null(c->outbox.backlog);
    assert_true(sizeof(struct http_conn) <= 296 && sizeof(struct ws) <= 296);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void a_drain_lets_open_exchanges_finish(void **state)
{
    struct scene scene;
    struct peer idle, busy;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &idle);
    peer_open(&scene.world, &busy);
    send_text(&scene, &busy, GET("/wait"));
    server_drain(scene.world.server);
    send_text(&scene, &idle, GET("/")); /* gets its response, and "connection: close" */
    peer_await_end(&scene.world, &idle);
    assert_true(peer_has(&idle, "connection: close\r\n"));
    http_reply(scene.waiting[0], 200, (struct slice){ 0 }, SLICE("finished"));
    peer_await_end(&scene.world, &busy);
    assert_true(peer_has(&busy, "connection: close\r\n"));
    assert_true(peer_has(&busy, "finished"));
    peer_close(&idle);
    peer_close(&busy);
    net_world_until(&scene.world, is_empty, &scene);
    net_world_close(&scene.world);
}

/* An exchange ends once its response was handed to the connection. The bytes may wait there
 * for a long time, and closing the server then would cut them. */
static void drain_waits_for_an_answer_that_is_not_sent_yet(void **state)
{
    struct scene scene;
    struct peer slow;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    scene.shared = bytes_create_empty(8 << 20);
    memset(scene.shared->data, '-', scene.shared->len);
    peer_open(&scene.world, &slow);
    assert_true(server_is_idle(scene.world.server));
    server_drain(scene.world.server);
    send_text(&scene, &slow, GET("/"));
    assert_int_equal(scene.world.server->open_exchanges, 0);
    assert_false(server_is_idle(scene.world.server));
    peer_await_end(&scene.world, &slow);
    assert_true(slow.got.len > scene.shared->len);
    assert_true(server_is_idle(scene.world.server));
    bytes_unref(scene.shared);
    peer_close(&slow);
    net_world_close(&scene.world);
}

static bool is_closed(void *owner)
{
    return ((struct scene *)owner)->world.closed;
}

static void closing_waits_for_the_replies(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    send_text(&scene, &peer, GET("/wait"));
    server_close(scene.world.server, net_world_on_closed);
    peer_await_end(&scene.world, &peer);
    net_world_turn(&scene.world);
    assert_int_equal(scene.gone, 1);
    assert_false(scene.world.closed);
    http_reply(scene.waiting[0], 200, (struct slice){ 0 }, SLICE("nowhere"));
    net_world_until(&scene.world, is_closed, &scene);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void a_handler_may_close_the_server(void **state)
{
    static const char *const requests[] = { GET("/"), GET("/wait"), GET("/later"),
                                            GET("/") GET("/") };
    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct scene scene;
        struct peer peer;
        open_scene(&scene, (struct server_options){ 0 });
        scene.close_in_handler = true;
        scene.reply_when_gone = i == 1;
        peer_open(&scene.world, &peer);
        send_text(&scene, &peer, requests[i]);
        peer_await_end(&scene.world, &peer);
        net_world_until(&scene.world, is_closed, &scene);
        assert_int_equal(scene.requests, 1);
        peer_close(&peer);
        net_world_close(&scene.world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reply_may_come_later),
        cmocka_unit_test(disconnect_is_noticed_once),
        cmocka_unit_test(reset_is_noticed_once),
        cmocka_unit_test(half_closed_peer_gets_its_answer),
        cmocka_unit_test(truncated_body_ends_its_exchange),
        cmocka_unit_test(pipelined_bytes_are_limited),
        cmocka_unit_test(pipelined_bytes_are_more_limited_without_a_credential),
        cmocka_unit_test(disconnect_is_noticed_when_nothing_more_is_read),
        cmocka_unit_test(pipelined_requests_are_answered_one_by_one),
        cmocka_unit_test(next_request_waits_until_the_reply_is_sent),
        cmocka_unit_test(stream_reports_a_slow_reader),
        cmocka_unit_test(stream_reports_that_its_reader_disconnected),
        cmocka_unit_test(parts_that_belong_together_are_written_as_a_whole),
        cmocka_unit_test(writable_connections_take_turns),
        cmocka_unit_test(reset_connections_are_not_closed_in_a_turn_without_time_left),
        cmocka_unit_test(an_idle_connection_holds_no_parser),
        cmocka_unit_test(a_drain_lets_open_exchanges_finish),
        cmocka_unit_test(drain_waits_for_an_answer_that_is_not_sent_yet),
        cmocka_unit_test(closing_waits_for_the_replies),
        cmocka_unit_test(a_handler_may_close_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
