/* WebSockets under load: floods, slow peers and silent peers. */
#include "tests/support/world/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/metrics.h"
#include "net/http/server_state.h"
#include "tests/support/world/ws_scene.h"

static void too_many_fragments_are_rejected(void **state)
{
    static const char *const contents[] = { "a", "" }; /* empty fragments count as well */
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct ws_scene scene;
        struct peer peer;
        ws_scene_open(&scene, (struct server_options){ 0 });
        ws_peer_open(&scene.world, &peer, "/");
        ws_scene_say(&scene, &peer, TEXT_BEGIN, contents[i]);
        for (int n = 0; n < 63; n++)
            ws_scene_say(&scene, &peer, GO_ON, contents[i]);
        net_world_turn(&scene.world);
        assert_false(ws_peer_said(&peer, "X1008"));
        ws_scene_say(&scene, &peer, GO_ON, contents[i]);
        ws_peer_await(&scene.world, &peer, "X1008");
        peer_await_end(&scene.world, &peer);
        assert_true(peer_has(&peer, "too many fragments"));
        peer_close(&peer);
        net_world_close(&scene.world);
        assert_int_equal(scene.closed, 1);
    }
}

static void unfinished_messages_are_limited_together(void **state)
{
    struct ws_scene scene;
    struct peer peers[3];
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_unfinished_max = 10 });
    for (int i = 0; i < 3; i++)
        ws_peer_open(&scene.world, &peers[i], "/");
    ws_scene_say(&scene, &peers[0], TEXT_BEGIN, "abcde");
    ws_scene_say(&scene, &peers[1], TEXT_BEGIN, "abcde");
    ws_scene_say(&scene, &peers[2], TEXT, "a longer one, but whole");
    net_world_turn(&scene.world);
    assert_int_equal(scene.messages, 1);
    assert_int_equal(scene.world.server->unfinished, 10);
    ws_scene_say(&scene, &peers[2], TEXT_BEGIN, "x");
    ws_peer_await(&scene.world, &peers[2], "X4103");
    ws_scene_say(&scene, &peers[0], END, "");
    peer_close(&peers[1]);
    while (scene.world.server->unfinished)
        net_world_turn(&scene.world);
    assert_int_equal(scene.messages, 2);
    peer_close(&peers[0]);
    peer_close(&peers[2]);
    net_world_close(&scene.world);
}

/* Unauthenticated peers share a budget; when it is full, the oldest of them is closed. */
static void unauthenticated_peers_have_a_memory_budget_of_their_own(void **state)
{
    struct ws_scene scene;
    struct peer unauthenticated[3], known;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_unfinished_max = 10,
                                                   .ws_unauthenticated_max = 10 });
    for (int i = 0; i < 3; i++) {
        ws_peer_open(&scene.world, &unauthenticated[i], "/stranger");
        ws_scene_say(&scene, &unauthenticated[i], TEXT_BEGIN, "abcde");
    }
    ws_peer_open(&scene.world, &known, "/");
    ws_scene_say(&scene, &known, TEXT_BEGIN, "abcdefghij");
    ws_peer_await(&scene.world, &unauthenticated[0], "X4103");
    peer_await_end(&scene.world, &unauthenticated[0]);
    ws_scene_say(&scene, &known, END, "");
    for (int i = 1; i < 3; i++)
        ws_scene_say(&scene, &unauthenticated[i], END, "");
    while (scene.messages < 3)
        net_world_turn(&scene.world);
    assert_int_equal(scene.world.server->unauthenticated_unfinished, 0);
    for (int i = 0; i < 3; i++)
        peer_close(&unauthenticated[i]);
    peer_close(&known);
    net_world_close(&scene.world);
}

static void trust(struct ws_scene *scene, struct ws *ws)
{
    (void)scene;
    ws_trust(ws);
}

static void unauthenticated_peer_may_send_less_until_it_is_trusted(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_message_max = 20,
                                                   .ws_unauthenticated_message_max = 10 });
    scene.on_message = trust;
    ws_peer_open(&scene.world, &peer, "/stranger");
    ws_scene_say(&scene, &peer, TEXT, "0123456789");
    ws_scene_say(&scene, &peer, TEXT_BEGIN, "0123456789");
    ws_scene_say(&scene, &peer, END, "0123456789");
    while (scene.messages < 2)
        net_world_turn(&scene.world);
    peer_close(&peer);
    ws_peer_open(&scene.world, &peer, "/stranger");
    ws_scene_say(&scene, &peer, TEXT, "0123456789a");
    ws_peer_await(&scene.world, &peer, "X1009");
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void flood_of_messages_is_closed_as_overload(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_messages_per_s = 1 });
    ws_peer_open(&scene.world, &peer, "/");
    for (int i = 0; i < 202; i++)
        ws_scene_say(&scene, &peer, TEXT, "a");
    ws_peer_await(&scene.world, &peer, "X4103");
    peer_await_end(&scene.world, &peer);
    assert_in_range(scene.messages, 200, 201);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* Uses up all the time that a turn has. */
static void take_the_turn(struct ws_scene *scene, struct ws *ws)
{
    struct loop *loop = scene->world.loop;
    (void)ws;
    scene->late += !loop_time_left(loop);
    scene->waited += scene->world.server->unfinished > 0;
    while (loop_time_left(loop))
        ;
}

static void add_messages(struct buf *bytes, int count)
{
    for (int i = 0; i < count; i++)
        ws_peer_add_frame(bytes, TEXT, SLICE("a"));
}

static void messages_that_arrive_at_once_are_read_over_several_turns(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    struct buf bytes = { 0 };
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    scene.on_message = take_the_turn;
    ws_peer_open(&scene.world, &peer, "/");
    add_messages(&bytes, 20);
    peer_send(&scene.world, &peer, buf_slice(&bytes));
    peer_send(&scene.world, &peer, buf_slice(&bytes));
    while (scene.messages < 40)
        net_world_turn(&scene.world);
    /* A turn's end handles one message that it left over, once per batch that arrived. */
    assert_in_range(scene.late, 0, 2);
    assert_in_range(scene.waited, 36, 39); /* all but the first of each batch */
    assert_int_equal(scene.world.server->unfinished, 0);
    assert_true(ws_peer_said(&peer, ""));

    peer_send(&scene.world, &peer, buf_slice(&bytes)); /* the peer leaves in the middle */
    peer_close(&peer);
    net_world_until(&scene.world, ws_scene_has_closed, &scene);
    buf_finish(&bytes);
    net_world_close(&scene.world);
}

static void pending_messages_count_against_the_budget(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    struct buf bytes = { 0 };
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_unfinished_max = 100 });
    scene.on_message = take_the_turn;
    ws_peer_open(&scene.world, &peer, "/");
    add_messages(&bytes, 20);
    peer_send(&scene.world, &peer, buf_slice(&bytes));
    ws_peer_await(&scene.world, &peer, "X4103");
    peer_await_end(&scene.world, &peer);
    assert_int_equal(scene.messages, 1);
    assert_int_equal(scene.world.server->unfinished, 0);
    peer_close(&peer);
    buf_finish(&bytes);
    net_world_close(&scene.world);
}

static void message_credit_is_refilled(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_messages_per_s = 1000,
                                                   .ws_messages_burst = 5 });
    ws_peer_open(&scene.world, &peer, "/");
    for (int i = 0; i < 50; i++) {
        uint64_t next = uv_hrtime() + 2 * 1000000u; /* credit for two messages */
        ws_scene_say(&scene, &peer, TEXT, "a");
        while (uv_hrtime() < next)
            net_world_turn(&scene.world);
    }
    while (scene.messages < 50)
        net_world_turn(&scene.world);
    assert_true(ws_peer_said(&peer, ""));
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* A peer that pings without reading costs the memory of one pong, and gets the newest. */
static void only_the_newest_pong_is_queued(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    struct bytes *frame = ws_scene_big_frame(8 << 20);
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_false(ws_scene_send(&scene, frame));
    ws_scene_say(&scene, &peer, PING, "one");
    ws_scene_say(&scene, &peer, PING, "two");
    ws_scene_say(&scene, &peer, PING, "three");
    net_world_turn(&scene.world);
    assert_true(slice_is(bytes_slice(scene.ws->pong), "three"));
    assert_int_equal(outbox_pieces(&scene.ws->c.outbox), 1);
    while (!ws_scene_ends_with(&peer, "\x8a\x05three", 7)) {
        net_world_turn(&scene.world);
        peer_read(&peer);
    }
    assert_int_equal(peer.got.len, frame->len + 7);
    assert_int_equal(frame->refs, 1);
    bytes_unref(frame);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void unsent_frames_are_references_released_when_sent(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    struct bytes *frame = ws_scene_big_frame(8 << 20);
    struct bytes *small = ws_frame(SLICE("end"), true);
    int64_t before = metrics[M_BYTES_SENT];
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    assert_true(ws_scene_send(&scene, small));
    assert_int_equal(small->refs, scene.world.ring ? 2 : 1); /* until the turn ends */
    ws_peer_await(&scene.world, &peer, "B(end)");
    assert_int_equal(small->refs, 1);
    ws_peer_clear(&peer);
    assert_false(ws_scene_send(&scene, frame));
    assert_false(ws_scene_send(&scene, small));
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
    assert_true(ws_scene_send(&scene, small));
    bytes_unref(frame);
    bytes_unref(small);
    peer_close(&peer);
    net_world_close(&scene.world);
}

static void peer_without_pong_is_closed(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_ping_ms = 100, .ws_stall_ms = 400 });
    ws_peer_open(&scene.world, &peer, "/");
    for (int i = 0; i < 3; i++) {
        ws_peer_await(&scene.world, &peer, "P()");
        ws_peer_clear(&peer);
        ws_scene_say(&scene, &peer, PONG, "");
    }
    ws_peer_await(&scene.world, &peer, "P()");
    ws_peer_clear(&peer);
    peer_await_end(&scene.world, &peer); /* no pong for this ping */
    assert_true(ws_peer_said(&peer, "X1008"));
    assert_true(peer_has(&peer, "no pong"));
    net_world_until(&scene.world, ws_scene_has_closed, &scene);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* While bytes are unsent, only the long deadline counts. */
static void peer_that_does_not_read_is_closed_as_too_far_behind(void **state)
{
    struct ws_scene scene;
    struct peer peer;
    struct bytes *frame = ws_scene_big_frame(8 << 20);
    int64_t before = metrics[M_TOO_FAR_BEHIND];
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_ping_ms = 10, .ws_stall_ms = 150 });
    ws_peer_open(&scene.world, &peer, "/");
    uint64_t began = uv_hrtime();
    assert_false(ws_scene_send(&scene, frame));
    while (metrics[M_TOO_FAR_BEHIND] == before && !scene.closed)
        net_world_turn(&scene.world);
    assert_true((uv_hrtime() - began) / 1000000 >= 130);
    assert_true(ws_closing(scene.ws));
    while (!ws_scene_ends_with(&peer, "\x88\x10\x10\x06too far behind", 18)) {
        assert_false(peer.ended); /* it reads now, and finds the reason at the end */
        peer_read(&peer);
        net_world_turn(&scene.world);
    }
    ws_scene_say(&scene, &peer, CLOSE, "\x10\x06");
    peer_await_end(&scene.world, &peer);
    assert_int_equal(metrics[M_TOO_FAR_BEHIND] - before, 1);
    bytes_unref(frame);
    peer_close(&peer);
    net_world_close(&scene.world);
    assert_int_equal(scene.closed, 1);
}

/* In total it takes longer than the limit, but it makes progress all the time. */
static void a_peer_that_reads_slowly_is_not_too_far_behind(void **state)
{
    enum { STALL_MS = 1000, STEP_MS = 5 };
    struct ws_scene scene;
    struct peer peer;
    struct bytes *frame = ws_scene_big_frame(24 << 20);
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_stall_ms = STALL_MS });
    ws_peer_open(&scene.world, &peer, "/");
    assert_false(ws_scene_send(&scene, frame));
    uint64_t began = uv_hrtime();
    while (!scene.drained && !ws_closing(scene.ws)) {
        char *place = buf_reserve(&peer.got, 65536);
        uint64_t next = uv_hrtime() + STEP_MS * 1000000u;
        ssize_t len = recv(peer.fd, place, 65536, MSG_DONTWAIT);
        peer.got.len += len > 0 ? (size_t)len : 0;
        while (uv_hrtime() < next)
            net_world_turn(&scene.world);
    }
    assert_true(uv_hrtime() - began > STALL_MS * 1000000u);
    assert_int_equal(scene.drained, 1);
    assert_false(ws_closing(scene.ws));
    bytes_unref(frame);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* Thus a peer that reads slowly shows that it is alive while it reads. Its pongs do not
 * count as too many control frames, however many they are. */
static void pings_are_sent_between_large_frames(void **state)
{
    enum { FRAMES = 40, ANSWERS = FRAMES - 1 };
    struct ws_scene scene;
    struct peer peer;
    struct bytes *frame = ws_scene_big_frame(20 * 1024);
    (void)state;
    ws_scene_open(&scene, (struct server_options){ 0 });
    ws_peer_open(&scene.world, &peer, "/");
    for (int i = 0; i < FRAMES; i++) {
        ws_scene_send(&scene, frame);
        while (peer.got.len < frame->len && !peer.ended) {
            net_world_turn(&scene.world);
            peer_read(&peer);
        }
        ws_peer_clear(&peer);
    }
    assert_int_equal(scene.ws->asked, ANSWERS);
    assert_true(ws_reads_still(scene.ws));
    for (int i = 0; i < ANSWERS; i++)
        ws_scene_say(&scene, &peer, PONG, "");
    while (ws_reads_still(scene.ws))
        net_world_turn(&scene.world);
    assert_false(ws_closing(scene.ws));
    bytes_unref(frame);
    peer_close(&peer);
    net_world_close(&scene.world);
}

/* It reads nothing for longer than the limit, but still sends pongs. */
static void peer_that_sends_pongs_is_not_too_far_behind(void **state)
{
    enum { STALL_MS = 1500 };
    struct ws_scene scene;
    struct peer peer;
    struct bytes *frame = ws_scene_big_frame(24 << 20);
    (void)state;
    ws_scene_open(&scene, (struct server_options){ .ws_stall_ms = STALL_MS });
    ws_peer_open(&scene.world, &peer, "/");
    assert_false(ws_scene_send(&scene, frame));
    uint64_t began = uv_hrtime(), said = 0;
    while (uv_hrtime() - began < 2 * STALL_MS * 1000000u) {
        net_world_turn(&scene.world);
        if (uv_hrtime() - said < STALL_MS * 1000000u / 3)
            continue;
        said = uv_hrtime();
        ws_scene_say(&scene, &peer, PONG, "");
    }
    assert_false(ws_closing(scene.ws));
    bytes_unref(frame);
    peer_close(&peer);
    net_world_close(&scene.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pings_are_sent_between_large_frames),
        cmocka_unit_test(peer_that_sends_pongs_is_not_too_far_behind),
        cmocka_unit_test(too_many_fragments_are_rejected),
        cmocka_unit_test(unfinished_messages_are_limited_together),
        cmocka_unit_test(unauthenticated_peers_have_a_memory_budget_of_their_own),
        cmocka_unit_test(unauthenticated_peer_may_send_less_until_it_is_trusted),
        cmocka_unit_test(flood_of_messages_is_closed_as_overload),
        cmocka_unit_test(messages_that_arrive_at_once_are_read_over_several_turns),
        cmocka_unit_test(pending_messages_count_against_the_budget),
        cmocka_unit_test(message_credit_is_refilled),
        cmocka_unit_test(only_the_newest_pong_is_queued),
        cmocka_unit_test(unsent_frames_are_references_released_when_sent),
        cmocka_unit_test(peer_without_pong_is_closed),
        cmocka_unit_test(peer_that_does_not_read_is_closed_as_too_far_behind),
        cmocka_unit_test(a_peer_that_reads_slowly_is_not_too_far_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
