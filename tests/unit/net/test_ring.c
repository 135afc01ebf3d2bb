/* Many sends leave as one system call, and each sender gets its own result. */
#include "tests/support/world/unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "net/ring.h"

enum { PEERS = 200, BIG = 1 << 20, SENT_MAX = 300 };

struct peer {
    struct ring_sender sender;
    int in, out;
    ssize_t result;
    size_t count; /* of the pieces that were sent */
    unsigned told;
};

struct world {
    struct ring *ring;
    struct peer peers[PEERS];
};

static void on_sent(struct ring_sender *sender, const struct piece *pieces, size_t count,
                    ssize_t result)
{
    struct peer *peer = container_of(sender, struct peer, sender);
    assert_int_equal(sender->place, 0);
    assert_true(count && pieces[0].text.len);
    peer->result = result;
    peer->count = count;
    peer->told++;
}

static int set_up(void **state)
{
    struct world *world = mem_new(struct world);
    struct failure why = { 0 };
    int size = 4096;
    if (ring_create(&world->ring, &why))
        fail_msg("this machine has no io_uring for its tests: %s", why.text);
    ring_tell(world->ring, on_sent);
    for (int i = 0; i < PEERS; i++) {
        int fds[2];
        assert_int_equal(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        world->peers[i].in = fds[0];
        world->peers[i].out = fds[1];
    }
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < PEERS; i++) {
        close(world->peers[i].in);
        if (world->peers[i].out >= 0)
            close(world->peers[i].out);
    }
    ring_destroy(world->ring);
    free(world);
    return 0;
}

static struct bytes *text_of(int n)
{
    char text[32];
    snprintf(text, sizeof(text), "frame %d,", n);
    return bytes_create(slice_of(text));
}

static bool send_pieces(struct world *world, int to, const struct piece *pieces,
                        size_t count)
{
    struct peer *peer = &world->peers[to];
    return ring_send(world->ring, &peer->sender, peer->in, pieces, count);
}

static bool send_frames(struct world *world, int to, struct bytes *const *frames,
                        size_t count)
{
    struct piece pieces[SENT_MAX];
    for (size_t i = 0; i < count; i++)
        pieces[i] = piece_of(frames[i]);
    return send_pieces(world, to, pieces, count);
}

static void assert_got(const struct peer *peer, const char *expected)
{
    char got[256] = { 0 };
    ssize_t len = recv(peer->out, got, sizeof(got) - 1, MSG_DONTWAIT);
    assert_int_equal(len, strlen(expected));
    assert_string_equal(got, expected);
}

/* There are more than a batch has slots for: the first ones leave on their own. */
static void each_peer_gets_its_own_frames(void **state)
{
    struct world *world = *state;
    struct bytes *frames[PEERS];
    for (int i = 0; i < PEERS; i++) {
        frames[i] = text_of(i);
        assert_true(send_frames(world, i, &frames[i], 1));
    }
    assert_true(world->peers[PEERS - 1].sender.place);
    assert_false(world->peers[0].sender.place);
    ring_flush(world->ring);
    ring_flush(world->ring);
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(world->peers[i].told, 1);
        assert_int_equal(world->peers[i].result, frames[i]->len);
        assert_got(&world->peers[i], frames[i]->data);
        assert_int_equal(frames[i]->refs, 1);
        bytes_unref(frames[i]);
    }
}

static void frames_of_one_sender_keep_their_order(void **state)
{
    struct world *world = *state;
    struct bytes *frames[] = { text_of(1), text_of(2), text_of(3) };
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < PEERS; i++)
            assert_true(send_frames(world, i, frames, 3));
        ring_flush(world->ring);
        for (int i = 0; i < PEERS; i++)
            assert_got(&world->peers[i], "frame 1,frame 2,frame 3,");
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(frames[i]->refs, 1);
        bytes_unref(frames[i]);
    }
}

/* Sends a frame; flushes first if it does not fit into the batch. */
static void send_or_flush(struct world *world, int to, struct bytes *frame)
{
    if (send_frames(world, to, &frame, 1))
        return;
    assert_true(world->peers[to].sender.place);
    ring_flush(world->ring);
    assert_true(send_frames(world, to, &frame, 1));
}

/* First two senders take turns, then so many that the batch is full in between. */
static void several_sends_of_one_connection_leave_as_one(void **state)
{
    struct world *world = *state;
    struct bytes *frames[] = { text_of(1), text_of(2), text_of(3) };
    for (int i = 0; i < 3; i++) {
        assert_true(send_frames(world, 0, &frames[i], 1));
        assert_true(send_frames(world, 1, &frames[i], 1));
        assert_true(send_pieces(world, 1, &(struct piece){ SLICE("own,"), NULL }, 1));
    }
    ring_flush(world->ring);
    assert_int_equal(world->peers[0].told, 1);
    assert_int_equal(world->peers[1].told, 1);
    assert_got(&world->peers[0], "frame 1,frame 2,frame 3,");
    assert_got(&world->peers[1], "frame 1,own,frame 2,own,frame 3,own,");

    for (int to = 0; to < PEERS; to++)
        for (int i = 0; i < 3; i++)
            send_or_flush(world, to, frames[i]);
    ring_flush(world->ring);
    for (int to = 0; to < PEERS; to++)
        assert_got(&world->peers[to], "frame 1,frame 2,frame 3,");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(frames[i]->refs, 1);
        bytes_unref(frames[i]);
    }
}

/* Neither a peer that does not read nor one that is gone delays the others. */
static void each_sender_gets_its_own_result(void **state)
{
    struct world *world = *state;
    struct bytes *big = bytes_create_empty(RING_BYTES), *small = text_of(7);
    memset(big->data, 'x', big->len);
    close(world->peers[2].out);
    world->peers[2].out = -1;
    assert_true(send_frames(world, 0, &big, 1));
    assert_true(send_frames(world, 1, &small, 1));
    assert_true(send_frames(world, 2, &small, 1));
    assert_true(send_frames(world, 3, &small, 1));
    ring_flush(world->ring);
    assert_true(world->peers[0].result > 0 && world->peers[0].result < (ssize_t)big->len);
    assert_int_equal(world->peers[1].result, small->len);
    assert_int_equal(world->peers[2].result, -EPIPE);
    assert_int_equal(world->peers[3].result, small->len);
    while (world->peers[0].result > 0) {
        assert_true(send_frames(world, 0, &big, 1));
        ring_flush(world->ring);
    }
    assert_int_equal(world->peers[0].result, -EAGAIN);
    bytes_unref(big);
    bytes_unref(small);
}

/* The owner may change borrowed bytes after the call. */
static void borrowed_bytes_are_copied(void **state)
{
    struct world *world = *state;
    struct bytes *frame = text_of(1);
    char before[16], large[20000] = { 0 };
    for (int i = 0; i < PEERS; i++) {
        snprintf(before, sizeof(before), "%d: ", i);
        struct piece pieces[] = { { slice_of(before), NULL },
                                  { { 0 }, NULL },
                                  piece_of(frame),
                                  { SLICE("\n"), NULL } };
        assert_true(send_pieces(world, i, pieces, 4));
    }
    memset(before, 'x', sizeof(before));
    ring_flush(world->ring);
    for (int i = 0; i < PEERS; i++) {
        char expected[32];
        snprintf(expected, sizeof(expected), "%d: frame 1,\n", i);
        assert_got(&world->peers[i], expected);
    }
    assert_int_equal(frame->refs, 1);
    assert_false(
        send_pieces(world, 0, &(struct piece){ { large, sizeof(large) }, NULL }, 1));
    struct piece half = { { large, sizeof(large) / 2 }, NULL };
    assert_true(send_pieces(world, 0, &half, 1));
    assert_true(send_pieces(world, 1, &half, 1));
    assert_int_equal(world->peers[0].told, 2); /* both did not fit in the batch */
    ring_flush(world->ring);
    assert_true(world->peers[1].result > 0); /* as much as the socket accepts */
    bytes_unref(frame);
}

static void copied_bytes_of_one_sender_are_one_piece(void **state)
{
    struct world *world = *state;
    struct bytes *frame = text_of(1);
    struct piece pieces[] = { { SLICE("head,"), NULL }, { SLICE("body,"), NULL } };
    struct piece shared = piece_of(frame);
    for (int i = 0; i < 4; i++)
        assert_true(send_pieces(world, i, pieces, 2));
    assert_true(send_pieces(world, 3, pieces, 2));
    assert_true(send_pieces(world, 2, pieces, 2)); /* those of another one are in between */
    assert_true(send_pieces(world, 1, &shared, 1));
    assert_true(send_pieces(world, 1, pieces, 2));
    ring_flush(world->ring);
    const size_t counts[] = { 1, 3, 2, 1 };
    const char *const expected[] = { "head,body,", "head,body,frame 1,head,body,",
                                     "head,body,head,body,", "head,body,head,body," };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(world->peers[i].count, counts[i]);
        assert_got(&world->peers[i], expected[i]);
    }
    assert_int_equal(frame->refs, 1);
    bytes_unref(frame);
}

static void too_large_frames_are_not_batched(void **state)
{
    struct world *world = *state;
    struct bytes *big = bytes_create_empty(BIG), *small = text_of(1), *many[SENT_MAX];
    for (size_t i = 0; i < SENT_MAX; i++)
        many[i] = small;
    assert_false(send_frames(world, 0, &big, 1));
    assert_false(send_frames(world, 0, many, SENT_MAX));
    assert_false(send_frames(world, 0, many, 0));
    assert_false(world->peers[0].sender.place);
    assert_true(send_frames(world, 0, many, 200));
    assert_true(send_frames(world, 1, many, 200));
    assert_int_equal(world->peers[0].told, 1); /* both did not fit in the batch */
    ring_flush(world->ring);
    assert_int_equal(world->peers[1].result, 200 * small->len);
    assert_int_equal(small->refs, 1);
    bytes_unref(big);
    bytes_unref(small);
}

/* Many large frames would take a whole turn. */
static void batch_of_large_frames_is_short(void **state)
{
    struct world *world = *state;
    struct bytes *large = bytes_create_empty(RING_BYTES / 2);
    for (int i = 0; i < 3; i++)
        assert_true(send_frames(world, i, &large, 1));
    assert_int_equal(world->peers[0].told, 1);
    assert_int_equal(world->peers[1].told, 1);
    assert_true(world->peers[2].sender.place);
    ring_flush(world->ring);
    assert_int_equal(world->peers[2].told, 1);
    bytes_unref(large);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(each_peer_gets_its_own_frames),
        CASE(frames_of_one_sender_keep_their_order),
        CASE(several_sends_of_one_connection_leave_as_one),
        CASE(each_sender_gets_its_own_result),
        CASE(borrowed_bytes_are_copied),
        CASE(copied_bytes_of_one_sender_are_one_piece),
        CASE(too_large_frames_are_not_batched),
        CASE(batch_of_large_frames_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
