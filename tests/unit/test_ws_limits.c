/* WebSockets under pressure: floods, slow and silent peers, and how they end. */
#include "tests/support/unit.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/metrics.h"
#include "net/server_state.h"
#include "net/ws_conn.h"
#include "tests/support/ws_peer.h"

enum {
    TEXT = 0x81,
    TEXT_BEGIN = 0x01,
    GO_ON = 0x00,
    CLOSE = 0x88,
    PING = 0x89,
    PONG = 0x8A
};

struct scene {
    struct net_world world;
    struct ws *ws; /* the newest one; NULL: closed */
    struct exchange *waiting;
    unsigned opened, closed, messages, drained;
    bool sending; /* inside ws_send */
    void (*on_message)(struct scene *scene, struct ws *ws);
};

static void on_message(struct ws *ws, struct slice message)
{
    struct scene *scene = ws_owner(ws);
    (void)message;
    scene->messages++;
    if (scene->on_message)
        scene->on_message(scene, ws);
}

static void on_drained(struct ws *ws)
{
    struct scene *scene = ws_owner(ws);
    assert_false(scene->sending);
    assert_int_equal(ws_unsent(ws), 0);
    scene->drained++;
}

static void on_closed(struct ws *ws)
{
    struct scene *scene = ws_owner(ws);
    assert_false(scene->sending);
    scene->closed++;
    if (scene->ws == ws)
        scene->ws = NULL;
}

static const struct ws_ops ops = { on_message, on_drained, on_closed };

static void on_head(void *owner, struct exchange *x)
{
    (void)owner;
    (void)x;
}

static void on_request(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    scene->opened++;
    if (slice_is(x->path, "/wait"))
        scene->waiting = x;
    else
        scene->ws = ws_accept(x, NULL, &ops, scene);
}

static void on_gone(void *owner, struct exchange *x)
{
    struct scene *scene = owner;
    assert_ptr_equal(scene->waiting, x);
}

static void open_scene(struct scene *scene, struct server_options options)
{
    options.handler = (struct http_handler){ on_head, NULL, on_request, on_gone };
    options.owner = scene;
    *scene = (struct scene){ 0 };
    net_world_open(&scene->world, options);
}

static void say(struct scene *scene, struct peer *peer, unsigned char first,
                const char *text)
{
    struct buf frame = { 0 };
    ws_peer_add_frame(&frame, first, slice_of(text));
    peer_send(&scene->world, peer, buf_slice(&frame));
    buf_finish(&frame);
}

static bool send_frame(struct scene *scene, struct bytes *frame)
{
    scene->sending = true;
    bool sent = ws_send(scene->ws, &frame, 1);
    scene->sending = false;
    return sent;
}

static struct bytes *big_frame(size_t len)
{
    struct bytes *payload = bytes_create_empty(len);
    memset(payload->data, '-', len);
    struct bytes *frame = ws_frame(bytes_slice(payload), false);
    bytes_unref(payload);
    return frame;
}

static bool has_closed(void *owner)
{
    return ((struct scene *)owner)->closed > 0;
}

/* The stream of the peer ends with this. */
static bool ends_with(const struct peer *peer, const char *bytes, size_t len)
{
    return peer->got.len >= len &&
           memcmp(peer->got.ptr + peer->got.len - len, bytes, len) == 0;
}

static void more_fragments_than_allowed_are_refused(void **state)
{
    static const char *const contents[] = { "a", "" }; /* empty ones count as well */
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene scene;
        struct peer peer;
        open_scene(&scene, (struct server_options){ 0 });
        ws_peer_open(&scene.world, &peer, "/");
        say(&scene, &peer, TEXT_BEGIN, contents[i]);
        for (int n = 0; n < 63; n++)
            say(&scene, &peer, GO_ON, contents[i]);
        net_world_turn(&scene.world);
        assert_false(ws_peer_said(&peer, "X1008"));
        say(&scene, &peer, GO_ON, contents[i]);
        ws_peer_await(&scene.world, &peer, "X1008");
        peer_await_end(&scene.world, &peer);
        assert_true(peer_has(&peer, "too many fragments"));
        peer_close(&peer);
        net_world_close(&scene.world);
        assert_int_equal(scene.closed, 1);
    }
}

static void a_flood_of_messages_is_overload(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .ws_messages_per_s = 1 });
    ws_peer_open(&scene.world, &peer, "/");
    for (int i = 0; i < 202; i++)
        say(&scene, &peer, TEXT, "a");
    ws_peer_await(&scene.world, &peer, "X4103");
    peer_await_end(&scene.world, &peer);
    assert_in_range(scene.messages, 200, 201);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void credit_for_messages_comes_back(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .ws_messages_per_s = 1000,
                                                .ws_messages_burst = 5 });
    ws_peer_open(&scene.world, &peer, "/");
    for (int i = 0; i < 50; i++) {
        uint64_t next = uv_hrtime() + 2 * 1000000u;
        say(&scene, &peer, TEXT, "a");
        while (uv_hrtime() < next)
            net_world_turn(&scene.world);
    }
    assert_int_equal(scene.messages, 50);
    assert_true(ws_peer_said(&peer, ""));
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* A peer that pings and does not read costs one pong, and gets the newest. */
static void only_the_newest_pong_waits(void **state)
{
    struct scene scene;
    struct peer peer;
    struct bytes *frame = big_frame(8 << 20);
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_false(send_frame(&scene, frame));
    say(&scene, &peer, PING, "one");
    say(&scene, &peer, PING, "two");
    say(&scene, &peer, PING, "three");
    net_world_turn(&scene.world);
    assert_true(slice_is(bytes_slice(scene.ws->pong), "three"));
    assert_int_equal(outbox_pieces(&scene.ws->c.outbox), 1);
    while (!ends_with(&peer, "\x8a\x05three", 7)) {
        net_world_turn(&scene.world);
        peer_read(&peer);
    }
    assert_int_equal(peer.got.len, frame->len + 7);
    assert_int_equal(frame->refs, 1);
    bytes_unref(frame);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void what_is_unsent_is_a_reference_and_is_said_when_gone(void **state)
{
    struct scene scene;
    struct peer peer;
    struct bytes *frame = big_frame(8 << 20);
    struct bytes *small = ws_frame(SLICE("end"), true);
    int64_t before = metrics[M_BYTES_SENT];
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_true(send_frame(&scene, small));
    assert_int_equal(small->refs, 1);
    ws_peer_await(&scene.world, &peer, "B(end)");
    ws_peer_clear(&peer);
    assert_false(send_frame(&scene, frame));
    assert_false(send_frame(&scene, small));
    assert_int_equal(frame->refs, 2);
    assert_int_equal(small->refs, 2);
    assert_true(ws_unsent(scene.ws) > 0);
    assert_int_equal(metrics[M_BYTES_SENT] - before, frame->len + 2 * small->len);
    while (!scene.drained) {
        net_world_turn(&scene.world);
        peer_read(&peer);
    }
    peer_await(&scene.world, &peer,
               "\x82\x03"
               "end");
    assert_int_equal(scene.drained, 1);
    assert_int_equal(frame->refs, 1);
    assert_int_equal(small->refs, 1);
    assert_true(send_frame(&scene, small));
    bytes_unref(frame);
    bytes_unref(small);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void references_are_given_back_when_the_peer_goes(void **state)
{
    struct scene scene;
    struct peer peers[10];
    struct bytes *frame = big_frame(8 << 20);
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    for (int i = 0; i < 10; i++) {
        ws_peer_open(&scene.world, &peers[i], "/");
        assert_false(send_frame(&scene, frame));
    }
    assert_int_equal(frame->refs, 11);
    for (int i = 0; i < 10; i++)
        peer_close(&peers[i]);
    scene.closed = 0;
    net_world_until(&scene.world, has_closed, &scene);
    while (frame->refs > 1)
        net_world_turn(&scene.world);
    bytes_unref(frame);
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 10);
}

/* Sending to a peer that has reset finds that out, but tells it later. */
static void a_lost_peer_is_told_later(void **state)
{
    struct scene scene;
    struct peer peer;
    struct linger at_once = { .l_onoff = 1 };
    struct bytes *frame = ws_frame(SLICE("hello"), false);
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    peer_close(&peer);
    assert_false(send_frame(&scene, frame));
    assert_false(send_frame(&scene, frame));
    assert_true(ws_closing(scene.ws));
    ws_close(scene.ws, 1000, "too late");
    net_world_until(&scene.world, has_closed, &scene);
    assert_int_equal(scene.closed, 1);
    bytes_unref(frame);
    net_world_close(&scene.world);
}

static void a_peer_is_pinged_and_lives_by_its_pongs(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .ws_ping_ms = 150, .ws_pong_ms = 40 });
    ws_peer_open(&scene.world, &peer, "/");
    for (int i = 0; i < 3; i++) {
        ws_peer_await(&scene.world, &peer, "P()");
        ws_peer_clear(&peer);
        say(&scene, &peer, PONG, "");
    }
    ws_peer_await(&scene.world, &peer, "P()");
    ws_peer_clear(&peer);
    peer_await_end(&scene.world, &peer); /* no pong this time */
    assert_true(ws_peer_said(&peer, "X1008"));
    assert_true(peer_has(&peer, "no pong"));
    net_world_until(&scene.world, has_closed, &scene);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* While bytes are unsent only the long deadline counts. */
static void a_peer_that_does_not_read_falls_too_far_behind(void **state)
{
    struct scene scene;
    struct peer peer;
    struct bytes *frame = big_frame(8 << 20);
    int64_t before = metrics[M_TOO_FAR_BEHIND];
    (void)state;
    open_scene(&scene, (struct server_options){
                           .ws_ping_ms = 10, .ws_pong_ms = 10, .ws_stall_ms = 150 });
    ws_peer_open(&scene.world, &peer, "/");
    uint64_t began = uv_hrtime();
    assert_false(send_frame(&scene, frame));
    while (metrics[M_TOO_FAR_BEHIND] == before && !scene.closed)
        net_world_turn(&scene.world);
    assert_in_range((uv_hrtime() - began) / 1000000, 130, 5000);
    assert_true(ws_closing(scene.ws));
    while (!ends_with(&peer, "\x88\x10\x10\x06too far behind", 18)) {
        assert_false(peer.ended); /* it reads now, and finds the reason at the end */
        peer_read(&peer);
        net_world_turn(&scene.world);
    }
    say(&scene, &peer, CLOSE, "\x10\x06");
    peer_await_end(&scene.world, &peer);
    assert_int_equal(metrics[M_TOO_FAR_BEHIND] - before, 1);
    bytes_unref(frame);
    peer_close(&peer);
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 1);
}

static void a_peer_that_reads_slowly_is_not_too_far_behind(void **state)
{
    struct scene scene;
    struct peer peer;
    struct bytes *frame = big_frame(16 << 20);
    (void)state;
    open_scene(&scene, (struct server_options){
                           .ws_ping_ms = 20, .ws_pong_ms = 2000, .ws_stall_ms = 60 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_false(send_frame(&scene, frame));
    uint64_t began = uv_hrtime();
    while (!scene.drained) {
        char *place = buf_reserve(&peer.got, 65536);
        uint64_t next = uv_hrtime() + 1000000;
        ssize_t len = recv(peer.fd, place, 65536, MSG_DONTWAIT);
        peer.got.len += len > 0 ? (size_t)len : 0;
        while (uv_hrtime() < next)
            net_world_turn(&scene.world);
    }
    assert_true(uv_hrtime() - began > 100 * 1000000u);
    assert_int_equal(scene.closed, 0);
    assert_false(ws_closing(scene.ws));
    bytes_unref(frame);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void closing_shakes_hands(void **state)
{
    struct scene scene;
    struct peer peer;
    struct bytes *frame = ws_frame(SLICE("late"), false);
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_false(ws_closing(scene.ws));
    ws_close(scene.ws, 4200, "drain");
    ws_close(scene.ws, 1000, "again");
    assert_true(ws_closing(scene.ws));
    assert_false(send_frame(&scene, frame));
    ws_peer_await(&scene.world, &peer, "X4200");
    assert_true(ends_with(&peer,
                          "\x88\x07\x10\x68"
                          "drain",
                          9));
    say(&scene, &peer, TEXT, "was under way");
    say(&scene, &peer, PING, "was under way");
    net_world_turn(&scene.world);
    assert_int_equal(scene.messages, 0);
    assert_false(peer.ended);
    say(&scene, &peer, CLOSE, "\x10\x68");
    peer_await_end(&scene.world, &peer);
    assert_true(ws_peer_said(&peer, "X4200"));
    peer_close(&peer);
    net_world_until(&scene.world, has_closed, &scene);
    bytes_unref(frame);
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 1);
}

static void a_peer_that_does_not_shake_hands_is_left(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ .closing_timeout_ms = 40 });
    ws_peer_open(&scene.world, &peer, "/");
    ws_close(scene.ws, 1001, NULL);
    ws_peer_await(&scene.world, &peer, "X1001");
    net_world_until(&scene.world, has_closed, &scene);
    peer_await_end(&scene.world, &peer);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void a_long_reason_is_cut(void **state)
{
    struct scene scene;
    struct peer peer;
    char reason[201];
    (void)state;
    memset(reason, 'r', sizeof(reason));
    reason[sizeof(reason) - 1] = 0;
    open_scene(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    ws_close(scene.ws, 4000, reason);
    ws_peer_await(&scene.world, &peer, "X4000");
    assert_int_equal(peer.got.len, 2 + 125);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void close_it(struct scene *scene, struct ws *ws)
{
    (void)scene;
    ws_close(ws, 4000, "as you like");
}

static void close_server(struct scene *scene, struct ws *ws)
{
    (void)ws;
    server_close(scene->world.server, net_world_on_closed);
}

static bool world_is_closed(void *owner)
{
    return ((struct scene *)owner)->world.closed;
}

static void a_handler_may_close_in_the_middle(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scene scene;
        struct peer peer;
        struct buf frames = { 0 };
        open_scene(&scene, (struct server_options){ 0 });
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

static void between_messages_nothing_is_held(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_null(scene.ws->input);
    say(&scene, &peer, TEXT_BEGIN, "half");
    net_world_turn(&scene.world);
    assert_non_null(scene.ws->input);
    say(&scene, &peer, 0x80, "");
    net_world_turn(&scene.world);
    assert_int_equal(scene.messages, 1);
    assert_null(scene.ws->input);
    assert_null(scene.ws->c.outbox.backlog);
    assert_null(scene.ws->c.pending.ptr);
    assert_int_equal(scene.world.server->input_count, 1);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void what_a_peer_leaves_unfinished_is_freed(void **state)
{
    static const char *const parts[] = { "\x81", "\x81\x85\1\2", "\x81\x85\0\0\0\0hel",
                                         "\x01\x83\0\0\0\0"
                                         "abc",
                                         "\x89\x83\0\0\0\0a" };
    static const size_t lens[] = { 1, 4, 9, 9, 7 };
    (void)state;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct scene scene;
        struct peer peer;
        open_scene(&scene, (struct server_options){ 0 });
        ws_peer_open(&scene.world, &peer, "/");
        peer_send(&scene.world, &peer, (struct slice){ parts[i], lens[i] });
        net_world_turn(&scene.world);
        peer_close(&peer);
        net_world_until(&scene.world, has_closed, &scene);
        net_world_close(&scene.world);
    }
}

/* The token of a handshake may have to be looked up: the answer comes later, and what the
 * client says meanwhile is not lost. */
static void the_handshake_may_be_answered_later(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
    say(&scene, &peer, TEXT, "hello");
    net_world_turn(&scene.world);
    scene.ws = ws_accept(scene.waiting, "runs.v1.json", &ops, &scene);
    assert_non_null(scene.ws);
    assert_int_equal(scene.messages, 0); /* not from inside */
    peer_await(&scene.world, &peer, "sec-websocket-protocol: runs.v1.json\r\n");
    net_world_turn(&scene.world);
    assert_int_equal(scene.messages, 1);
    assert_int_equal(server_open_exchanges(scene.world.server), 0);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void a_peer_that_left_meanwhile_is_not_accepted(void **state)
{
    struct scene scene;
    struct peer peer;
    (void)state;
    open_scene(&scene, (struct server_options){ 0 });
    peer_open(&scene.world, &peer);
    peer_send(&scene.world, &peer,
              SLICE("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
    net_world_turn(&scene.world);
    peer_close(&peer);
    while (!scene.waiting->gone)
        net_world_turn(&scene.world);
    assert_null(ws_accept(scene.waiting, NULL, &ops, &scene));
    assert_int_equal(server_open_exchanges(scene.world.server), 0);
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_fragments_than_allowed_are_refused),
        cmocka_unit_test(a_flood_of_messages_is_overload),
        cmocka_unit_test(credit_for_messages_comes_back),
        cmocka_unit_test(only_the_newest_pong_waits),
        cmocka_unit_test(what_is_unsent_is_a_reference_and_is_said_when_gone),
        cmocka_unit_test(references_are_given_back_when_the_peer_goes),
        cmocka_unit_test(a_lost_peer_is_told_later),
        cmocka_unit_test(a_peer_is_pinged_and_lives_by_its_pongs),
        cmocka_unit_test(a_peer_that_does_not_read_falls_too_far_behind),
        cmocka_unit_test(a_peer_that_reads_slowly_is_not_too_far_behind),
        cmocka_unit_test(closing_shakes_hands),
        cmocka_unit_test(a_peer_that_does_not_shake_hands_is_left),
        cmocka_unit_test(a_long_reason_is_cut),
        cmocka_unit_test(a_handler_may_close_in_the_middle),
        cmocka_unit_test(between_messages_nothing_is_held),
        cmocka_unit_test(what_a_peer_leaves_unfinished_is_freed),
        cmocka_unit_test(the_handshake_may_be_answered_later),
        cmocka_unit_test(a_peer_that_left_meanwhile_is_not_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
