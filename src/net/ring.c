/* ring.c - the batch lies in two arrays that never move: the kernel reads vectors and headers of
 * messages while it sends.
 *
 *   places   [ sender, its frames, result ] …     one for each send, numbered as it is submitted
 *   frames, vectors                               of all of them, in the order of the places
 *
 * A ring that fails is given up, and what it has not sent is sent as without one. */
#include "net/ring.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rope.h"

enum {
    PLACES =
        64, /* a quarter of a millisecond of sends: a turn asks for its time between two batches */
    FRAMES = 256,
    SEND_FLAGS = MSG_NOSIGNAL | MSG_DONTWAIT,
};

struct ring_place {
    struct ring_sender *sender;
    struct msghdr message;
    uint32_t first, count; /* of ring::frames and ring::vectors */
    int fd;
    ssize_t result;
    bool done;
};

struct ring {
    struct io_uring uring;
    bool broken; /* and closed */
    ring_sent_fn *sent;
    struct ring_place places[PLACES];
    uint32_t place_count;
    struct bytes *frames[FRAMES]; /* references */
    struct iovec vectors[FRAMES];
    uint32_t frame_count;
    size_t bytes; /* of all of them: RING_BYTES at most */
};

/* ---- making ---- */

/* It may send, and nothing else, until the process ends. */
static int restrict_ring(struct io_uring *uring)
{
    struct io_uring_restriction allowed[] = {
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_SEND },
        { .opcode = IORING_RESTRICTION_SQE_OP, .sqe_op = IORING_OP_SENDMSG },
        { .opcode = IORING_RESTRICTION_REGISTER_OP,
          .register_op = IORING_REGISTER_ENABLE_RINGS },
    };
    unsigned count = sizeof(allowed) / sizeof(allowed[0]), fd = (unsigned)uring->ring_fd;
    int trouble = io_uring_register(fd, IORING_REGISTER_RESTRICTIONS, allowed, count);
    return trouble < 0 ? trouble
                       : io_uring_register(fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

enum err ring_create(struct ring **ring, struct failure *why)
{
    struct ring *made = mem_new(struct ring);
    int trouble =
        io_uring_queue_init(PLACES, &made->uring,
                            IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL |
                                IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    if (trouble) {
        free(made);
        return explain(why, ERR_INVALID, "io_uring_setup: %s", strerror(-trouble));
    }
    trouble = restrict_ring(&made->uring);
    if (trouble) {
        io_uring_queue_exit(&made->uring);
        free(made);
        return explain(why, ERR_INVALID, "io_uring_register: %s", strerror(-trouble));
    }
    *ring = made;
    return OK;
}

void ring_destroy(struct ring *ring)
{
    if (!ring)
        return;
    assert(!ring->place_count);
    if (!ring->broken)
        io_uring_queue_exit(&ring->uring);
    free(ring);
}

void ring_tell(struct ring *ring, ring_sent_fn *sent)
{
    ring->sent = sent;
}

/* ---- a batch ---- */

static bool fits(struct bytes *const *frames, size_t count, size_t *total)
{
    *total = 0;
    if (!count || count > FRAMES)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (bytes_are_parts(frames[i]))
            return false;
        *total += frames[i]->len;
    }
    return *total <= RING_BYTES;
}

static bool has_room(const struct ring *ring, size_t count, size_t total)
{
    return ring->place_count < PLACES && ring->frame_count + count <= FRAMES &&
           ring->bytes + total <= RING_BYTES;
}

static void prepare(struct ring *ring, struct ring_place *place)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    struct iovec *vector = &ring->vectors[place->first];
    assert(sqe); /* there are as many as places */
    if (place->count == 1) {
        io_uring_prep_send(sqe, place->fd, vector->iov_base, vector->iov_len, SEND_FLAGS);
    } else {
        place->message = (struct msghdr){ .msg_iov = vector, .msg_iovlen = place->count };
        io_uring_prep_sendmsg(sqe, place->fd, &place->message, SEND_FLAGS);
    }
    io_uring_sqe_set_data64(sqe, (uint64_t)(place - ring->places));
}

bool ring_send(struct ring *ring, struct ring_sender *sender, int fd,
               struct bytes *const *frames, size_t count)
{
    size_t total;
    assert(!sender->waits);
    if (ring->broken || !fits(frames, count, &total))
        return false;
    if (!has_room(ring, count, total))
        ring_flush(ring);
    ring->bytes += total;
    struct ring_place *place = &ring->places[ring->place_count++];
    *place = (struct ring_place){
        .sender = sender, .first = ring->frame_count, .count = (uint32_t)count, .fd = fd
    };
    for (size_t i = 0; i < count; i++) {
        ring->frames[ring->frame_count] = bytes_ref(frames[i]);
        ring->vectors[ring->frame_count++] =
            (struct iovec){ frames[i]->data, frames[i]->len };
    }
    sender->waits = true;
    if (!ring->broken)
        prepare(ring, place);
    return true;
}

/* How many there were. */
static unsigned take_results(struct ring *ring)
{
    struct io_uring_cqe *cqe;
    unsigned head, count = 0;
    io_uring_for_each_cqe(&ring->uring, head, cqe)
    {
        struct ring_place *place = &ring->places[cqe->user_data];
        place->result = cqe->res;
        place->done = true;
        count++;
    }
    io_uring_cq_advance(&ring->uring, count);
    return count;
}

/* What stays in a closed ring is never sent, so it cannot be sent twice. */
static void give_up(struct ring *ring, int trouble)
{
    log_warn("io_uring failed: frames are sent one by one from now on", "reason",
             strerror(-trouble), NULL);
    io_uring_queue_exit(&ring->uring);
    ring->broken = true;
}

static void send_alone(const struct ring *ring, struct ring_place *place)
{
    struct msghdr message = { .msg_iov = (struct iovec *)&ring->vectors[place->first],
                              .msg_iovlen = place->count };
    place->result = sendmsg(place->fd, &message, SEND_FLAGS);
    if (place->result < 0)
        place->result = -errno;
}

/* Nothing is waited for: what may not wait is over when it was submitted. But who sends once more
 * what a kernel has not answered for yet would send it twice. */
static void submit(struct ring *ring)
{
    unsigned left = ring->place_count;
    while (left && !ring->broken) {
        int count = io_uring_submit_and_wait(&ring->uring, left);
        left -= take_results(ring);
        if (count < 0 && count != -EINTR)
            give_up(ring, count);
    }
}

static void finish(struct ring *ring, struct ring_place *place)
{
    struct bytes **frames = &ring->frames[place->first];
    if (!place->done)
        send_alone(ring, place);
    place->sender->waits = false;
    ring->sent(place->sender, frames, place->count, place->result);
    for (uint32_t i = 0; i < place->count; i++)
        bytes_unref(frames[i]);
}

void ring_flush(struct ring *ring)
{
    if (!ring->place_count)
        return;
    submit(ring);
    for (uint32_t i = 0; i < ring->place_count; i++)
        finish(ring, &ring->places[i]);
    ring->place_count = ring->frame_count = 0;
    ring->bytes = 0;
}
