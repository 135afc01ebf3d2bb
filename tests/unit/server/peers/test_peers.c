/* Connections between two gateways, over real sockets: proofs, messages with MACs, and a peer
 * that does not read. tests/integration/followers.test.mjs has the strangers. */
#include "tests/support/world/unit.h"

#include <uv.h>

#include "base/log.h"
#include "server/operator/operator_call.h"
#include "server/peers/peer_link.h"
#include "server/peers/peer_server.h"
#include "server/peers/peer_wire.h"

#define KEY "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
#define OTHER "a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"

enum { LEADER = 7, FOLLOWER = 8, LINKS = 2, WATCHDOG_S = 60 };

/* A follower, and the messages that it got. */
struct follower {
    struct peer_link *link; /* NULL: it has ended, or was not opened */
    bool opened, closed;
    struct buf heard;
    char why[160];
};

static struct {
    uv_loop_t uv;
    struct loop *loop;
    struct vault *vault;
    struct peer_server *server;
    uint64_t leader; /* 0: it does not lead */
    struct peer_conn *peers[LINKS];
    unsigned peer_count, gone;
    struct buf heard;
    char why[160];
    bool closed;
    struct follower followers[LINKS];
} scene;

/* ---- the leader ---- */

static uint64_t leader_id(void *owner)
{
    (void)owner;
    return scene.leader;
}

static void on_peer(void *owner, struct peer_conn *peer)
{
    (void)owner;
    assert_int_equal(peer_conn_id(peer), FOLLOWER);
    assert_string_equal(peer_conn_address(peer), "127.0.0.1");
    scene.peers[scene.peer_count++] = peer;
}

static void on_peer_message(void *owner, struct peer_conn *peer, struct slice message)
{
    (void)owner;
    (void)peer;
    buf_add(&scene.heard, message);
}

static void on_gone(void *owner, struct peer_conn *peer, const char *why)
{
    (void)owner;
    (void)peer;
    scene.gone++;
    snprintf(scene.why, sizeof(scene.why), "%s", why);
}

static void on_server_closed(void *owner)
{
    (void)owner;
    scene.closed = true;
}

static struct vault *open_vault(const char *key)
{
    struct vault *vault;
    struct failure why;
    assert_int_equal(vault_open(slice_of(key), NULL, &vault, &why), OK);
    return vault;
}

static void start_leader(size_t unsent_max)
{
    const struct listen_options address = { .host = "127.0.0.1" };
    struct failure why = { 0 };
    struct peer_server_options options = { .address = &address,
                                           .vault = scene.vault,
                                           .unsent_max = unsent_max,
                                           .leader_id = leader_id,
                                           .on_peer = on_peer,
                                           .on_message = on_peer_message,
                                           .on_gone = on_gone,
                                           .closed = on_server_closed };
    if (peer_server_create(scene.loop, &options, &scene.server, &why))
        fail_msg("%s", why.text);
}

/* ---- followers ---- */

static void on_open(void *owner)
{
    ((struct follower *)owner)->opened = true;
}

static void on_message(void *owner, struct slice message)
{
    buf_add(&((struct follower *)owner)->heard, message);
}

static void on_closed(void *owner, const char *why)
{
    struct follower *follower = owner;
    follower->link = NULL;
    follower->closed = true;
    snprintf(follower->why, sizeof(follower->why), "%s", why);
}

static struct follower *open_link(int which, struct vault *vault, uint64_t leader)
{
    struct follower *follower = &scene.followers[which];
    char url[64];
    struct failure why = { 0 };
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", peer_server_port(scene.server));
    struct peer_link_options options = { .url = url,
                                         .leader = leader,
                                         .me = FOLLOWER,
                                         .vault = vault,
                                         .on_open = on_open,
                                         .on_message = on_message,
                                         .on_closed = on_closed,
                                         .owner = follower };
    if (peer_link_open(scene.loop, &options, &follower->link, &why))
        fail_msg("%s", why.text);
    return follower;
}

static void until(const bool *holds)
{
    while (!*holds)
        uv_run(&scene.uv, UV_RUN_ONCE);
}

static void until_heard(const struct buf *heard, size_t len)
{
    while (heard->len < len)
        uv_run(&scene.uv, UV_RUN_ONCE);
}

static struct follower *follow(int which)
{
    struct follower *follower = open_link(which, scene.vault, LEADER);
    until(&follower->opened);
    while (scene.peer_count <= (unsigned)which)
        uv_run(&scene.uv, UV_RUN_ONCE);
    return follower;
}

static void assert_refused(struct follower *follower, const char *why)
{
    until(&follower->closed);
    assert_false(follower->opened);
    assert_int_equal(scene.peer_count, 0);
    if (!strstr(follower->why, why))
        fail_msg("\"%s\" does not contain \"%s\"", follower->why, why);
}

/* ---- setup ---- */

static int open_scene(void **state)
{
    (void)state;
    alarm(WATCHDOG_S);
    memset(&scene, 0, sizeof(scene));
    uv_loop_init(&scene.uv);
    scene.loop = loop_create(&scene.uv);
    scene.vault = open_vault(KEY);
    scene.leader = LEADER;
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    for (int i = 0; i < LINKS; i++) {
        struct follower *follower = &scene.followers[i];
        if (follower->link) {
            peer_link_cut(follower->link, "the test ends");
            until(&follower->closed);
        }
        buf_finish(&follower->heard);
    }
    peer_server_close(scene.server);
    until(&scene.closed);
    assert_int_equal(scene.gone, scene.peer_count);
    buf_finish(&scene.heard);
    vault_close(scene.vault);
    loop_destroy(scene.loop);
    uv_run(&scene.uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&scene.uv), 0);
    return 0;
}

static void send_one(struct peer_conn *peer, struct slice content)
{
    struct peer_message message;
    peer_message_make(scene.server, &message, content);
    peer_conn_send(peer, &message);
    peer_message_finish(&message);
}

/* ---- cases ---- */

static void messages_go_both_ways_once_both_have_proved_the_key(void **state)
{
    (void)state;
    start_leader(0);
    struct follower *follower = follow(0);
    peer_link_send(follower->link, SLICE("hello"));
    peer_link_send(follower->link, SLICE("\0\xff"));
    until_heard(&scene.heard, 7);
    assert_memory_equal(scene.heard.ptr, "hello\0\xff", 7);
    send_one(scene.peers[0], SLICE("one"));
    send_one(scene.peers[0], SLICE(""));
    send_one(scene.peers[0], SLICE("two"));
    until_heard(&follower->heard, 6);
    assert_memory_equal(follower->heard.ptr, "onetwo", 6);
}

static void message_with_the_longest_command_arrives(void **state)
{
    (void)state;
    char command[PEER_TEXT_MAX - PEER_MAC_LEN];
    memset(command, 'x', sizeof(command));
    assert_true(sizeof(command) > OPERATOR_LINE_MAX + 2 * OPERATOR_ACTOR_MAX + 512);
    start_leader(0);
    struct follower *follower = follow(0);
    peer_link_send(follower->link, (struct slice){ command, sizeof(command) });
    until_heard(&scene.heard, sizeof(command));
    assert_memory_equal(scene.heard.ptr, command, sizeof(command));
}

static void message_is_shared_by_followers(void **state)
{
    (void)state;
    enum { LONG = 3 << 20 };
    struct bytes *long_one = bytes_create_empty(LONG);
    struct peer_message message;
    for (size_t i = 0; i < LONG; i++)
        long_one->data[i] = (char)(i * 7919 >> 4);
    start_leader(0);
    struct follower *a = follow(0), *b = follow(1);
    send_one(scene.peers[0], SLICE("only a"));
    peer_message_make(scene.server, &message, bytes_slice(long_one));
    for (int i = 0; i < LINKS; i++)
        peer_conn_send(scene.peers[i], &message);
    peer_message_finish(&message);
    send_one(scene.peers[1], SLICE("only b"));
    until_heard(&a->heard, 6 + LONG);
    until_heard(&b->heard, 6 + LONG);
    assert_memory_equal(a->heard.ptr, "only a", 6);
    assert_memory_equal(a->heard.ptr + 6, long_one->data, LONG);
    assert_memory_equal(b->heard.ptr, long_one->data, LONG);
    assert_memory_equal(b->heard.ptr + LONG, "only b", 6);
    bytes_unref(long_one);
}

static void follower_with_another_key_is_refused(void **state)
{
    (void)state;
    struct vault *other = open_vault(OTHER);
    start_leader(0);
    assert_refused(open_link(0, other, LEADER), "encryption key");
    vault_close(other);
}

static void follower_proves_both_keys_of_a_rotation(void **state)
{
    (void)state;
    struct vault *other = open_vault(OTHER);
    struct failure why;
    assert_int_equal(vault_offer(other, SLICE(KEY), &why), OK);
    start_leader(0);
    struct follower *follower = open_link(0, other, LEADER);
    until(&follower->opened);
    vault_close(other);
}

static void another_gateway_than_the_leader_is_not_followed(void **state)
{
    (void)state;
    start_leader(0);
    assert_refused(open_link(0, scene.vault, LEADER + 1), "another gateway");
}

static void gateway_that_does_not_lead_accepts_no_follower(void **state)
{
    (void)state;
    scene.leader = 0;
    start_leader(0);
    assert_refused(open_link(0, scene.vault, LEADER), "does not lead");
}

static void peer_with_too_many_unsent_bytes_is_cut(void **state)
{
    (void)state;
    enum { PIECE = 1 << 20, UNSENT = 4 << 20, TIMES = 64 };
    struct bytes *piece = bytes_create_empty(PIECE);
    memset(piece->data, 'x', PIECE);
    start_leader(UNSENT);
    struct follower *follower = follow(0);
    struct peer_message message;
    peer_message_make(scene.server, &message, bytes_slice(piece));
    for (int i = 0; i < TIMES; i++) /* in one turn, in which the follower reads nothing */
        peer_conn_send(scene.peers[0], &message);
    peer_message_finish(&message);
    assert_int_equal(scene.gone, 0); /* not called from within the call */
    until(&follower->closed);
    while (!scene.gone)
        uv_run(&scene.uv, UV_RUN_ONCE);
    assert_string_equal(scene.why, "it reads too slowly");
    assert_true(follower->heard.len < (size_t)TIMES * PIECE);
    bytes_unref(piece);
}

static void one_message_may_be_longer_than_the_limit(void **state)
{
    (void)state;
    enum { LONG = 8 << 20 };
    struct bytes *long_one = bytes_create_empty(LONG);
    memset(long_one->data, 'x', LONG);
    start_leader(64 << 10);
    struct follower *follower = follow(0);
    send_one(scene.peers[0], bytes_slice(long_one));
    until_heard(&follower->heard, LONG);
    bytes_unref(long_one);
}

static void leader_knows_what_a_follower_has_yet_to_read(void **state)
{
    (void)state;
    enum { PIECE = LINK_MARK, TIMES = 32 };
    struct bytes *piece = bytes_create_empty(PIECE);
    memset(piece->data, 'x', PIECE);
    start_leader(0);
    struct follower *follower = follow(0);
    const struct peer_conn *peer = scene.peers[0];
    for (int i = 0; i < TIMES; i++) /* in one turn, in which the follower reads nothing */
        send_one(scene.peers[0], bytes_slice(piece));
    assert_true(peer_conn_unread(peer) > (size_t)TIMES * PIECE);
    assert_int_equal(peer_conn_rate(peer)->read, 0);
    until_heard(&follower->heard, (size_t)TIMES * PIECE);
    while (peer_conn_unread(peer))
        uv_run(&scene.uv, UV_RUN_ONCE);
    assert_true(peer_conn_rate(peer)->read > (size_t)TIMES * PIECE);
    assert_true(peer_conn_rate(peer)->least_ms > 0);
    bytes_unref(piece);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)
    const struct CMUnitTest tests[] = {
        TEST(messages_go_both_ways_once_both_have_proved_the_key),
        TEST(message_with_the_longest_command_arrives),
        TEST(message_is_shared_by_followers),
        TEST(follower_with_another_key_is_refused),
        TEST(follower_proves_both_keys_of_a_rotation),
        TEST(another_gateway_than_the_leader_is_not_followed),
        TEST(gateway_that_does_not_lead_accepts_no_follower),
        TEST(peer_with_too_many_unsent_bytes_is_cut),
        TEST(one_message_may_be_longer_than_the_limit),
        TEST(leader_knows_what_a_follower_has_yet_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
