/* Bytes that the kernel does not accept at once wait in order, as references only. */
#include "tests/support/world/unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/rope.h"
#include "net/outbox.h"

struct pipe {
    int in, out;
    struct outbox outbox;
    struct buf got;
};

static void open_pipe(struct pipe *pipe)
{
    int fds[2], size = 4096;
    *pipe = (struct pipe){ 0 };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    pipe->in = fds[0];
    pipe->out = fds[1];
}

static void close_pipe(struct pipe *pipe)
{
    close(pipe->in);
    close(pipe->out);
    outbox_finish(&pipe->outbox);
    buf_finish(&pipe->got);
}

static void read_some(struct pipe *pipe, size_t most)
{
    char *place = buf_reserve(&pipe->got, most);
    ssize_t len = recv(pipe->out, place, most, MSG_DONTWAIT);
    pipe->got.len += len > 0 ? (size_t)len : 0;
}

static struct bytes *filled(size_t len, char with)
{
    struct bytes *bytes = bytes_create_empty(len);
    memset(bytes->data, with, len);
    return bytes;
}

static struct piece shared(struct bytes *bytes)
{
    return (struct piece){ bytes_slice(bytes), bytes };
}

/* Reads until nothing is left, whatever the size of a read. */
static void drain(struct pipe *pipe, size_t step)
{
    bool progress;
    enum outbox_status status;
    do {
        read_some(pipe, step);
        status = outbox_flush(&pipe->outbox, pipe->in, &progress);
    } while (status == OUTBOX_UNSENT);
    assert_int_equal(status, OUTBOX_EMPTY);
    for (size_t before = 0; before != pipe->got.len || !before;) {
        before = pipe->got.len;
        read_some(pipe, step);
    }
}

static void bytes_that_are_sent_at_once_are_not_kept(void **state)
{
    struct pipe pipe;
    struct bytes *world = bytes_create(SLICE("world"));
    (void)state;
    open_pipe(&pipe);
    struct piece pieces[] = { { SLICE("hello "), NULL },
                              shared(world),
                              { SLICE(""), NULL } };
    assert_int_equal(outbox_send(&pipe.outbox, pipe.in, pieces, 3), OUTBOX_EMPTY);
    assert_null(pipe.outbox.backlog);
    assert_int_equal(world->refs, 1);
    read_some(&pipe, 100);
    assert_true(slice_is(buf_slice(&pipe.got), "hello world"));
    bytes_unref(world);
    close_pipe(&pipe);
}

static void empty_send_succeeds(void **state)
{
    struct pipe pipe;
    bool progress;
    (void)state;
    open_pipe(&pipe);
    assert_int_equal(outbox_send(&pipe.outbox, pipe.in, NULL, 0), OUTBOX_EMPTY);
    assert_int_equal(outbox_flush(&pipe.outbox, pipe.in, &progress), OUTBOX_EMPTY);
    assert_false(progress);
    assert_int_equal(outbox_unsent(&pipe.outbox), 0);
    close_pipe(&pipe);
}

static void unsent_bytes_are_sent_later_in_order(void **state)
{
    static const size_t steps[] = { 1000, 4096, 100000 };
    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct pipe pipe;
        char borrowed[3000];
        open_pipe(&pipe);
        struct bytes *a = filled(100000, 'a'), *c = filled(50000, 'c');
        memset(borrowed, 'b', sizeof(borrowed));
        struct piece pieces[] = {
            shared(a), { { borrowed, sizeof(borrowed) }, NULL }, shared(c), shared(a)
        };
        assert_int_equal(outbox_send(&pipe.outbox, pipe.in, pieces, 4), OUTBOX_UNSENT);
        memset(borrowed, 'x', sizeof(borrowed)); /* copied when it was sent */
        assert_int_equal(a->refs, 3);
        assert_int_equal(c->refs, 2);
        assert_true(outbox_unsent(&pipe.outbox) > 0);
        drain(&pipe, steps[i]);
        assert_int_equal(pipe.got.len, 253000);
        for (size_t at = 0; at < pipe.got.len; at++)
            if (pipe.got.ptr[at] != (at < 100000   ? 'a'
                                     : at < 103000 ? 'b'
                                     : at < 153000 ? 'c'
                                                   : 'a'))
                fail_msg("at %zu is '%c'", at, pipe.got.ptr[at]);
        assert_int_equal(a->refs, 1);
        assert_int_equal(c->refs, 1);
        bytes_unref(a);
        bytes_unref(c);
        close_pipe(&pipe);
    }
}

/* Nothing overtakes waiting bytes, even if the kernel's buffer has space again. */
static void frames_are_queued_after_waiting_bytes(void **state)
{
    struct pipe pipe;
    char expected[2000];
    (void)state;
    open_pipe(&pipe);
    struct bytes *big = filled(200000, '-');
    assert_int_equal(outbox_send_frames(&pipe.outbox, pipe.in, &big, 1), OUTBOX_UNSENT);
    for (int i = 0; i < 2000; i++) {
        char c = expected[i] = (char)('a' + i % 26);
        struct bytes *frame = bytes_create((struct slice){ &c, 1 });
        if (i % 100 == 0)
            read_some(&pipe, 10000);
        assert_int_equal(outbox_send_frames(&pipe.outbox, pipe.in, &frame, 1),
                         OUTBOX_UNSENT);
        bytes_unref(frame);
    }
    drain(&pipe, 5000);
    assert_int_equal(pipe.got.len, 202000);
    assert_memory_equal(pipe.got.ptr + 200000, expected, 2000);
    assert_int_equal(big->refs, 1);
    bytes_unref(big);
    close_pipe(&pipe);
}

static void many_frames_are_sent_in_one_call(void **state)
{
    struct pipe pipe;
    struct bytes *frames[OUTBOX_PIECES_MAX];
    (void)state;
    open_pipe(&pipe);
    for (size_t i = 0; i < OUTBOX_PIECES_MAX; i++)
        frames[i] = filled(1000, (char)('0' + i));
    assert_int_equal(outbox_send_frames(&pipe.outbox, pipe.in, frames, OUTBOX_PIECES_MAX),
                     OUTBOX_UNSENT);
    drain(&pipe, 777);
    assert_int_equal(pipe.got.len, 1000 * OUTBOX_PIECES_MAX);
    for (size_t i = 0; i < OUTBOX_PIECES_MAX; i++) {
        assert_int_equal(pipe.got.ptr[i * 1000], '0' + i);
        assert_int_equal(pipe.got.ptr[i * 1000 + 999], '0' + i);
        assert_int_equal(frames[i]->refs, 1);
        bytes_unref(frames[i]);
    }
    close_pipe(&pipe);
}

static void lost_connection_drops_unsent_bytes(void **state)
{
    struct pipe pipe;
    bool progress;
    (void)state;
    open_pipe(&pipe);
    struct bytes *big = filled(200000, '-');
    assert_int_equal(outbox_send_frames(&pipe.outbox, pipe.in, &big, 1), OUTBOX_UNSENT);
    close(pipe.out);
    assert_int_equal(outbox_flush(&pipe.outbox, pipe.in, &progress), OUTBOX_LOST);
    assert_int_equal(outbox_unsent(&pipe.outbox), 0);
    assert_int_equal(big->refs, 1);
    assert_int_equal(outbox_send_frames(&pipe.outbox, pipe.in, &big, 1), OUTBOX_LOST);
    struct piece piece = shared(big);
    assert_int_equal(outbox_send(&pipe.outbox, pipe.in, &piece, 1), OUTBOX_LOST);
    assert_int_equal(big->refs, 1);
    bytes_unref(big);
    pipe.out = open("/dev/null", O_RDONLY);
    close_pipe(&pipe);
}

static void frames_that_are_never_sent_are_released(void **state)
{
    struct pipe pipe;
    (void)state;
    open_pipe(&pipe);
    struct bytes *big = filled(200000, '-');
    assert_int_equal(outbox_send_frames(&pipe.outbox, pipe.in, &big, 1), OUTBOX_UNSENT);
    assert_int_equal(big->refs, 2);
    close_pipe(&pipe);
    assert_int_equal(big->refs, 1);
    bytes_unref(big);
}

/* Makes a frame around a value of megabytes that other owners hold as well. */
static struct bytes *frame_around(struct bytes *value, bool quoted)
{
    struct rope rope = { 0 };
    rope_clear(&rope);
    if (quoted)
        rope_add_json(&rope.text, value, bytes_slice(value));
    else
        rope_add(&rope.text, value, bytes_slice(value));
    struct bytes *frame = rope_join(SLICE("<"), &rope, SLICE(">"));
    rope_finish(&rope);
    return frame;
}

static void parts_of_a_rope_are_read_as_they_are_sent(void **state)
{
    static const size_t steps[] = { 777, 4096, 1000000 };
    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct pipe pipe;
        struct bytes *value = filled(200000, '"'), *small = filled(10, '-');
        struct bytes *quoted = frame_around(value, true),
                     *plain = frame_around(value, false);
        struct bytes *frames[] = { small, quoted, plain };
        struct piece pieces[] = { piece_of(quoted), { SLICE("\n"), NULL } };
        size_t before;
        open_pipe(&pipe);
        assert_int_equal(outbox_send_frames(&pipe.outbox, pipe.in, frames, 3),
                         OUTBOX_UNSENT);
        outbox_send(&pipe.outbox, pipe.in, pieces, 2);
        before = outbox_unsent(&pipe.outbox);
        assert_true(before > 0);
        drain(&pipe, steps[i]);
        assert_int_equal(outbox_unsent(&pipe.outbox), 0);
        assert_int_equal(outbox_send(&pipe.outbox, pipe.in, pieces, 2), OUTBOX_UNSENT);
        drain(&pipe, steps[i]);
        assert_int_equal(pipe.got.len, 10 + 3 * 400004 + 200002 + 2);
        struct slice got = slice_from(buf_slice(&pipe.got), 10);
        assert_memory_equal(got.ptr, "<\"\\\"\\\"", 6);
        assert_memory_equal(got.ptr + 400000, "\\\"\">", 4);
        assert_memory_equal(got.ptr + 400004, "<\"\"\"", 4);
        assert_memory_equal(got.ptr + 600004, "\">", 2);
        assert_memory_equal(got.ptr + 600006, got.ptr, 400004);
        assert_memory_equal(got.ptr + 1000010, "\n<", 2);
        assert_memory_equal(got.ptr + 1000011, got.ptr, 400004);
        bytes_unref(small);
        bytes_unref(quoted);
        bytes_unref(plain);
        assert_int_equal(value->refs, 1);
        bytes_unref(value);
        close_pipe(&pipe);
    }
}

/* A value counts until its last outbox has sent it, changes its quota or ends. */
static void shared_value_counts_once(void **state)
{
    enum { VALUE = 300000 };
    struct quota outer = { .limit = 1 << 30 }, quota = outer, other = outer;
    struct pipe pipes[3];
    struct bytes *value = filled(VALUE, 'v'), *frame = frame_around(value, false);
    size_t own = rope_own_len(frame);
    (void)state;
    quota.outer = other.outer = &outer;
    for (size_t i = 0; i < 3; i++) {
        open_pipe(&pipes[i]);
        outbox_count_in(&pipes[i].outbox, &quota);
        for (size_t n = 0; n < 2; n++)
            assert_int_equal(outbox_send_frames(&pipes[i].outbox, pipes[i].in, &frame, 1),
                             OUTBOX_UNSENT);
        assert_int_equal(outbox_own(&pipes[i].outbox), 2 * own);
        assert_true(outbox_unsent(&pipes[i].outbox) > VALUE);
        assert_int_equal(quota.used, VALUE);
    }
    assert_int_equal(outer.used, VALUE);

    outbox_count_in(&pipes[1].outbox, &other);
    assert_int_equal(quota.used, VALUE);
    assert_int_equal(other.used, VALUE);
    assert_int_equal(outer.used, 2 * VALUE);
    close_pipe(&pipes[1]);
    assert_int_equal(other.used, 0);
    drain(&pipes[0], 100000);
    assert_int_equal(outbox_own(&pipes[0].outbox), 0);
    assert_int_equal(quota.used, VALUE);
    bytes_unref(frame);
    bytes_unref(value); /* the last reference is the outbox's */
    drain(&pipes[2], 100000);
    assert_int_equal(quota.used, 0);
    assert_int_equal(outer.used, 0);
    close_pipe(&pipes[0]);
    close_pipe(&pipes[2]);
}

static void one_call_sends_part_of_a_large_frame(void **state)
{
    struct pipe pipe;
    int size = 16 << 20;
    bool progress;
    (void)state;
    open_pipe(&pipe);
    setsockopt(pipe.in, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
    setsockopt(pipe.in, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    struct bytes *value = filled(3 << 20, '"'), *frame = frame_around(value, true);
    assert_int_equal(outbox_send_frames(&pipe.outbox, pipe.in, &frame, 1), OUTBOX_UNSENT);
    assert_in_range(frame->len - outbox_unsent(&pipe.outbox), 1, 512 * 1024);
    for (size_t before; (before = outbox_unsent(&pipe.outbox));) {
        outbox_flush(&pipe.outbox, pipe.in, &progress);
        assert_in_range(before - outbox_unsent(&pipe.outbox), progress, 512 * 1024);
        read_some(&pipe, 4096);
    }
    bytes_unref(frame);
    assert_int_equal(value->refs, 1);
    bytes_unref(value);
    close_pipe(&pipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_are_sent_at_once_are_not_kept),
        cmocka_unit_test(empty_send_succeeds),
        cmocka_unit_test(unsent_bytes_are_sent_later_in_order),
        cmocka_unit_test(frames_are_queued_after_waiting_bytes),
        cmocka_unit_test(many_frames_are_sent_in_one_call),
        cmocka_unit_test(lost_connection_drops_unsent_bytes),
        cmocka_unit_test(frames_that_are_never_sent_are_released),
        cmocka_unit_test(parts_of_a_rope_are_read_as_they_are_sent),
        cmocka_unit_test(shared_value_counts_once),
        cmocka_unit_test(one_call_sends_part_of_a_large_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
