/* A message of the leader opens once, at its place in one connection, and unchanged. */
#include "tests/support/world/unit.h"

#include "server/peers/peer_wire.h"

static const struct peer_key session = { { 1, 2, 3 } }, another = { { 4, 5, 6 } };

static struct {
    struct peer_group *leader, *follower;
    struct peer_mac *out, *in;
} scene;

static int open_scene(void **state)
{
    unsigned char wrapped[PEER_GROUP_KEY_LEN];
    (void)state;
    scene.leader = peer_group_create();
    peer_group_wrap(scene.leader, &session, wrapped);
    scene.follower = peer_group_unwrap(wrapped, &session);
    scene.out = peer_mac_create(&session, PEER_LEADER);
    scene.in = peer_mac_create(&session, PEER_LEADER);
    return 0;
}

static int close_scene(void **state)
{
    (void)state;
    peer_group_destroy(scene.leader);
    peer_group_destroy(scene.follower);
    peer_mac_destroy(scene.out);
    peer_mac_destroy(scene.in);
    return 0;
}

/* Makes a message as the leader sends it. */
static struct buf sealed(struct peer_mac *out, const char *content)
{
    struct buf message = { 0 };
    struct peer_seal seal;
    unsigned char mac[PEER_MAC_LEN];
    peer_group_seal(scene.leader, slice_of(content), &seal);
    peer_mac_next(out, seal.hash, mac);
    buf_add(&message, (struct slice){ (const char *)mac, sizeof(mac) });
    buf_add(&message, (struct slice){ (const char *)seal.bytes, PEER_SEAL_LEN });
    buf_add_text(&message, content);
    return message;
}

static bool opens(const struct buf *message)
{
    struct slice content = buf_slice(message);
    return peer_wire_open_sealed(scene.in, scene.follower, &content) &&
           slice_is(content, "content");
}

static void message_opens_once(void **state)
{
    (void)state;
    struct buf first = sealed(scene.out, "content"), second = sealed(scene.out, "content");
    assert_true(opens(&first));
    assert_true(opens(&second));
    assert_false(opens(&second));
    buf_finish(&first);
    buf_finish(&second);
}

static void changed_or_shorter_message_does_not_open(void **state)
{
    (void)state;
    struct buf message = sealed(scene.out, "content");
    for (size_t i = 0; i < message.len; i++) {
        struct slice cut = { message.ptr, i };
        peer_mac_destroy(scene.in);
        scene.in = peer_mac_create(&session, PEER_LEADER);
        message.ptr[i] ^= 1;
        assert_false(opens(&message));
        message.ptr[i] ^= 1;
        peer_mac_destroy(scene.in);
        scene.in = peer_mac_create(&session, PEER_LEADER);
        assert_false(peer_wire_open_sealed(scene.in, scene.follower, &cut));
    }
    buf_finish(&message);
}

/* All followers get the same seal. */
static void message_of_another_connection_does_not_open(void **state)
{
    (void)state;
    struct peer_mac *other = peer_mac_create(&another, PEER_LEADER);
    struct buf message = sealed(other, "content");
    assert_false(opens(&message));
    buf_finish(&message);
    peer_mac_destroy(other);
}

/* The head of one message, and the content of another. */
static void content_of_another_message_does_not_open(void **state)
{
    (void)state;
    struct buf message = sealed(scene.out, "CONTENT"), other = sealed(scene.out, "content");
    size_t head = message.len - 7;
    memcpy(message.ptr + head, other.ptr + head, 7);
    assert_false(opens(&message));
    buf_finish(&message);
    buf_finish(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(message_opens_once),
        TEST(changed_or_shorter_message_does_not_open),
        TEST(message_of_another_connection_does_not_open),
        TEST(content_of_another_message_does_not_open),
    };
    return cmocka_run_group_tests_name("peer_wire", tests, NULL, NULL);
}
